"""No two rows of the table share a key, and no partition holds rows of two tenants."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from core.metadata import table
from core.metadata.table import Key
from core.model.ids import MAX_ATTEMPT, MAX_CHUNKS, ChunkId, CollectionId, DocumentId, UploadId
from core.model.tenant import Tenant

tenants = st.text("aA0._:@=+-", min_size=1, max_size=6).map(Tenant)
numbers = st.integers(0, 3)
collections = numbers.map(lambda number: CollectionId.new(number, 0))
documents = numbers.map(lambda number: DocumentId.new(number, 0))
chunks = st.builds(ChunkId.of, documents, st.integers(1, MAX_ATTEMPT), st.integers(0, MAX_CHUNKS - 1))
texts = st.text(st.sampled_from("aT#COLNMEDSVHGB_0"), min_size=1, max_size=12)
hashes = st.text("0123456789abcdef", min_size=64, max_size=64)

things = st.one_of(
    st.tuples(st.just(table.collection), tenants, collections),
    st.tuples(st.just(table.name), tenants, texts),
    st.tuples(st.just(table.gate), tenants, collections, st.integers(0, table.GATES - 1)),
    st.tuples(st.just(table.fields), tenants, collections),
    st.tuples(st.just(table.head), tenants, documents),
    st.tuples(st.just(table.info), tenants, documents),
    st.tuples(st.just(table.late_writer_mark), tenants, documents, st.none() | st.integers(1, MAX_ATTEMPT)),
    st.tuples(st.just(table.chunk), tenants, chunks),
    st.tuples(st.just(table.source), tenants, collections, hashes),
    st.tuples(st.just(table.version), tenants, collections, hashes, documents),
    st.tuples(st.just(table.content), tenants, collections, hashes),
    st.tuples(st.just(table.upload), tenants, numbers.map(lambda number: UploadId.new(number, 0))),
)


def key_of(thing: tuple[object, ...]) -> Key:
    function, *parts = thing
    return function(*parts)  # type: ignore[operator,no-any-return]


@given(things, things)
def test_two_different_rows_never_share_a_key(one: tuple[object, ...], other: tuple[object, ...]) -> None:
    assert (key_of(one) == key_of(other)) == (one == other)


def test_rows_with_similar_names_never_share_a_key() -> None:
    both = [CollectionId.new(number, 0) for number in (1, 2)]
    papers = [DocumentId.new(number, 0) for number in (1, 2)]
    digests = ["0" * 64, "0" * 63 + "1"]
    neighbours: list[tuple[object, ...]] = []
    for tenant in (Tenant("a"), Tenant("A"), Tenant("a.b")):
        neighbours += [(table.name, tenant, name) for name in ("a", "a#b", "COL#a", str(both[0]))]
        for collection in both:
            neighbours += [(table.collection, tenant, collection)]
            neighbours += [(table.gate, tenant, collection, number) for number in range(table.GATES)]
            neighbours += [
                (kind, tenant, collection, digest) for kind in (table.source, table.content) for digest in digests
            ]
            neighbours += [(table.version, tenant, collection, digest, paper) for digest in digests for paper in papers]
            neighbours += [(table.job, tenant, collection, kind) for kind in ("reindex", "reconcile")]
        for paper in papers:
            neighbours += [(kind, tenant, paper) for kind in (table.head, table.info, table.late_writer_mark)]
            neighbours += [(table.late_writer_mark, tenant, paper, attempt) for attempt in range(1, MAX_ATTEMPT + 1)]
            neighbours += [
                (table.chunk, tenant, ChunkId.of(paper, attempt, index))
                for attempt in (1, 11, 15)
                for index in (0, 1, 255, 256, 257, 65536, MAX_CHUNKS - 1)
            ]
    assert len({key_of(neighbour) for neighbour in neighbours}) == len(set(neighbours)) == len(neighbours)


@given(things)
def test_the_tenant_is_read_back_from_every_key(thing: tuple[object, ...]) -> None:
    assert table.tenant_of(key_of(thing)) == thing[1]


@given(things, things)
def test_no_partition_holds_rows_of_two_tenants(one: tuple[object, ...], other: tuple[object, ...]) -> None:
    if one[1] != other[1]:
        assert key_of(one).pk != key_of(other).pk
        assert not key_of(one).pk.startswith(f"T#{other[1]}#")


@given(things)
def test_every_key_is_within_the_limits_of_DynamoDB(thing: tuple[object, ...]) -> None:
    key = key_of(thing)
    assert len(key.pk.encode()) <= 2048
    assert len(key.sk.encode()) <= 1024


@given(documents)
def test_the_keys_of_a_documents_rows_name_the_document(document: DocumentId) -> None:
    tenant = Tenant("a")
    for key in (table.head(tenant, document), table.info(tenant, document), table.late_writer_mark(tenant, document)):
        assert table.document_of(key) == document


@given(st.lists(st.integers(0, MAX_CHUNKS - 1), min_size=2, max_size=8), documents)
def test_chunks_of_a_partition_sort_in_document_order(indexes: list[int], document: DocumentId) -> None:
    tenant = Tenant("a")
    keys = [table.chunk(tenant, ChunkId.of(document, 1, index)) for index in indexes]
    for one, index in zip(keys, indexes, strict=True):
        for other, place in zip(keys, indexes, strict=True):
            if one.pk == other.pk:
                assert (one.sk < other.sk) == (index < place)


def test_a_partition_of_chunk_rows_holds_256_chunks() -> None:
    tenant, document = Tenant("a"), DocumentId.new(1, 1)
    partitions = {table.chunk(tenant, ChunkId.of(document, 1, index)).pk for index in range(512)}
    assert len(partitions) == 2


def test_every_listing_has_a_partition_of_its_own_in_the_index() -> None:
    tenant, one, other = Tenant("a"), CollectionId.new(1, 1), CollectionId.new(2, 2)
    partitions = [
        table.documents_of_tenant(tenant),
        table.documents_of_collection(tenant, one),
        table.documents_of_collection(tenant, other),
        table.entries_of_collection(tenant, one),
        table.documents_of_tenant(Tenant("b")),
    ]
    assert len(set(partitions)) == len(partitions)


def test_a_key_without_a_tenant_has_no_tenant() -> None:
    for pk in ("SYSTEM", "D#doc_1", "T#", "T", ""):
        assert table.tenant_of(Key(pk, "HEAD")) is None


moments = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))


@given(moments, moments)
def test_due_times_sort_as_text(one: datetime, other: datetime) -> None:
    one, other = (moment.replace(microsecond=0) for moment in (one, other))
    assert (table.due_at(one) < table.due_at(other)) == (one < other)
    if one <= other:
        assert table.stalled_since(one) <= table.stalled_since(other), "none that is stalled is overlooked"


@given(moments)
def test_a_heartbeat_moves_its_row_at_most_every_five_minutes(moment: datetime) -> None:
    rounded = table.moment_of(table.stalled_since(moment))
    start = datetime.fromisoformat(rounded)
    assert timedelta(0) <= moment - start < timedelta(minutes=5)
    assert table.stalled_since(start) == table.stalled_since(moment)


@given(documents)
def test_the_sweeps_index_is_spread_over_its_shards(document: DocumentId) -> None:
    assert table.sweep_shard(document) in {f"SWEEP#{number}" for number in range(table.SWEEP_SHARDS)}
    assert len({table.sweep_shard(DocumentId.new(number, number)) for number in range(200)}) == table.SWEEP_SHARDS
