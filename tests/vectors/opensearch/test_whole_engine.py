"""A whole engine on OpenSearch, as the settings ask for it."""

from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest
from moto import mock_aws

from core.model.component import TenantFilter
from core.model.errors import ConfigurationError
from core.model.query import RetrieveQuery
from core.settings import Settings
from core.vectors.opensearch.store import OpenSearchVectorStore
from core.wiring import build_engine
from tests.support.engines import ACME, GLOBEX, World, make_world
from tests.support.loopback import Answer, serving
from tests.support.opensearch import ON_OPENSEARCH, store_on


def settings(url: str, **more: str) -> Settings:
    given: Mapping[str, str] = {"vectors": "opensearch", "embedder": "embedded", "opensearch_url": url, **more}
    return Settings.read({f"WEFT_{name.upper()}": value for name, value in given.items()})


class TestSettings:
    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"opensearch_url": ""}, "WEFT_OPENSEARCH_URL"),
            ({"opensearch_auth": "aoss"}, "WEFT_OPENSEARCH_DIALECT=serverless"),
            ({"opensearch_engine": "nmslib"}, "WEFT_OPENSEARCH_ENGINE"),
            ({"opensearch_index": "Upper"}, "WEFT_OPENSEARCH_INDEX"),
        ],
    )
    def test_what_does_not_fit_is_refused_by_name(self, wrong: dict[str, str], said: str) -> None:
        with pytest.raises(ConfigurationError, match=said):
            settings("http://127.0.0.1:9200", **wrong)

    def test_a_store_that_does_not_answer_keeps_no_engine_from_starting(self) -> None:
        with serving(lambda _: Answer(200)) as url:
            pass
        with mock_aws():
            engine = build_engine(settings(url))
            assert engine.status.components().tenant_filter is TenantFilter.UNVERIFIED
            assert engine.status.components().vector_store.name == "opensearch"
            assert engine.status.health().stores["vectors"] == "failing"
            engine.stop()

    def test_a_store_that_refuses_the_credentials_does(self) -> None:
        with mock_aws(), serving(lambda _: Answer(403)) as url, pytest.raises(ConfigurationError, match="credentials"):
            build_engine(settings(url))

    def test_a_server_without_k_nn_is_said_to_lack_it(self) -> None:
        def respond(request: object) -> Answer:
            missing = b'{"error": {"type": "index_not_found_exception"}}'
            unknown = b'{"error": {"type": "mapper_parsing_exception"}}'
            return Answer(404, missing) if getattr(request, "method", "") == "GET" else Answer(400, unknown)

        with mock_aws(), serving(respond) as url, pytest.raises(ConfigurationError, match="k-NN plugin"):
            build_engine(settings(url))


@ON_OPENSEARCH
class TestEngine:
    @pytest.fixture
    def world(self, opensearch: str, prefix: str) -> Iterator[World]:
        with mock_aws(), closing(make_world(vectors=store_on(opensearch, prefix))) as world:
            yield world

    def test_the_settings_make_a_store_whose_tenant_filter_is_verified(self, opensearch: str, prefix: str) -> None:
        with mock_aws():
            engine = build_engine(settings(opensearch, opensearch_index=prefix))
            assert engine.status.components().tenant_filter is TenantFilter.VERIFIED
            assert engine.status.components().vector_store.type == "faiss, exact"
            assert engine.status.health().stores["vectors"] == "ok"
            engine.stop()

    def test_what_is_ingested_is_found_at_once_by_its_tenant_alone_until_it_is_deleted(self, world: World) -> None:
        assert isinstance(world.vectors, OpenSearchVectorStore)
        mine, theirs = world.collection(), world.collection(tenant=GLOBEX)
        document = world.ingest(mine, "red apples grow on trees").document_id
        world.ingest(theirs, "red apples are theirs", GLOBEX)
        query = RetrieveQuery(query="red apples", collections=[mine.id])
        assert [hit.chunk.text for hit in world.engine.retrieve(ACME, query).hits] == ["red apples grow on trees"]
        assert document is not None
        world.engine.documents.delete(ACME, document)
        assert world.engine.retrieve(ACME, query).hits == []
        assert [world.vector_count(ACME), world.vector_count(GLOBEX)] == [0, 1]
