"""The environment: read once, and refused with a message that names the variable."""

from datetime import timedelta
from pathlib import Path

import pytest

from core.model.errors import ConfigurationError
from core.settings import Settings


def test_without_variables_every_setting_has_its_default() -> None:
    assert Settings.read({"PATH": "/bin", "AWS_REGION": "x"}) == Settings()
    assert Settings().stalled_after == timedelta(minutes=15)
    assert Settings().sweep_size == 100


def test_every_setting_is_read_from_its_variable() -> None:
    settings = Settings.read(
        {
            "WEFT_TABLE": "docs",
            "WEFT_EMBEDDER": "embedded",
            "WEFT_EMBEDDED_MODEL": "/models/one",
            "WEFT_VECTORS": "embedded",
            "WEFT_STALLED_AFTER_S": "120",
            "WEFT_BATCH_SIZE": "7",
        }
    )
    assert (settings.table, settings.embedder, settings.vectors) == ("docs", "embedded", "embedded")
    assert settings.embedded_model == Path("/models/one")
    assert settings.stalled_after == timedelta(seconds=120)
    assert settings.sweep_size == 7


@pytest.mark.parametrize("value", ["0", "-1", "-900"])
def test_zero_or_less_means_the_default_for_recovery(value: str) -> None:
    settings = Settings.read({"WEFT_STALLED_AFTER_S": value, "WEFT_BATCH_SIZE": value})
    assert settings.stalled_after == timedelta(minutes=15)
    assert settings.sweep_size == 100


def test_an_empty_variable_is_an_absent_one() -> None:
    names = [f"WEFT_{name.upper()}" for name in Settings.model_fields]
    assert Settings.read(dict.fromkeys(names, "")) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WEFT_TABLE", "ab"),
        ("WEFT_EMBEDDER", "openai"),
        ("WEFT_RERANKER", "cohere"),
        ("WEFT_BEDROCK_RERANKER_MODEL", "arn:aws:bedrock:us-east-1::foundation-model/cohere.rerank-v3-5:0"),
        ("WEFT_RERANK_SECONDS", "0"),
        ("WEFT_RERANK_SECONDS", "30"),
        ("WEFT_VECTORS", "pinecone"),
        ("WEFT_BEDROCK_DIMENSIONS", "0"),
        ("WEFT_INLINE_BYTES", "many"),
        ("WEFT_INLINE_BYTES", "0"),
        ("WEFT_INLINE_BYTES", str(5 * 1024 * 1024)),
        ("WEFT_OBJECT_BYTES", "0"),
        ("WEFT_ANSWER_BYTES", str(6 * 1024 * 1024)),
        ("WEFT_CALL_SECONDS", "30"),
        ("WEFT_STALLED_AFTER_S", "soon"),
        ("WEFT_STALLED_AFTER_S", "1.5"),
        ("WEFT_STALLED_AFTER_S", "1"),
        ("WEFT_STALLED_AFTER_S", "119"),
        ("WEFT_STALLED_AFTER_S", str(10**12)),
        ("WEFT_WRITER_LIFE_S", "59"),
        ("WEFT_WRITER_LIFE_S", str(10**15)),
        ("WEFT_BATCH_SIZE", "x"),
        ("WEFT_RECOVERY_INTERVAL_S", "x"),
        ("WEFT_INGEST_CONCURRENCY", "0"),
        ("WEFT_INGEST_CONCURRENCY", "33"),
        ("WEFT_UPLOAD_SECONDS", "0"),
    ],
)
def test_a_wrong_value_is_refused_by_its_variables_name(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}: "):
        Settings.read({name: value})


@pytest.mark.parametrize("value", ["1", ""])
def test_an_unknown_variable_is_refused_by_its_name(value: str) -> None:
    with pytest.raises(ConfigurationError, match="WEFT_TABEL: "):
        Settings.read({"WEFT_TABEL": value})


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigurationError) as refused:
        Settings.read({"WEFT_CALL_SECONDS": "0", "WEFT_EMBEDDER": "x"})
    assert {part.split(":")[0] for part in str(refused.value).split("; ")} == {"WEFT_CALL_SECONDS", "WEFT_EMBEDDER"}


def test_a_refused_value_is_not_repeated() -> None:
    with pytest.raises(ConfigurationError) as refused:
        Settings.read({"WEFT_CALL_SECONDS": "hunter2"})
    assert "hunter2" not in str(refused.value)
