"""What the figures of the floors and of the benchmark are made of."""

import math
from pathlib import Path

import numpy as np
import pytest

from tests.quality import corpora, own
from tests.quality.corpora import Corpus
from tests.quality.kept import Kept, KeptEmbedder
from tests.quality.measures import ndcg, recall
from tests.support.embedder import HashedEmbedder


def test_a_ranking_in_order_of_the_grades_has_all_the_gain() -> None:
    assert ndcg(["a", "b", "x"], {"a": 2, "b": 1}) == 1.0


def test_a_gain_is_a_grade_by_the_logarithm_of_its_rank() -> None:
    best = 2 + 1 / math.log2(3)
    assert ndcg(["b", "a"], {"a": 2, "b": 1}) == pytest.approx((1 + 2 / math.log2(3)) / best)
    assert ndcg(["x", "b"], {"a": 2, "b": 1}) == pytest.approx((1 / math.log2(3)) / best)


def test_what_comes_after_the_depth_counts_for_nothing() -> None:
    ranking = [*map(str, range(10)), "a"]
    assert ndcg(ranking, {"a": 1}) == 0.0
    assert ndcg(ranking, {"a": 1}, depth=11) == pytest.approx(1 / math.log2(12))
    assert recall(ranking, {"a": 1, "3": 1}, depth=10) == 0.5


def test_more_answers_than_fit_can_still_have_all_the_gain() -> None:
    many = {str(number): 1 for number in range(30)}
    assert ndcg(list(many), many) == pytest.approx(1.0)


def test_a_text_is_embedded_once_also_by_the_next_run(tmp_path: Path) -> None:
    path, model = tmp_path / "new" / "kept.sqlite", HashedEmbedder()
    first, second = Kept(path), Kept(path)
    vectors = KeptEmbedder(model, first).embed(["one", "two"]).vectors
    assert KeptEmbedder(model, second).embed(["two", "one", "three"]).vectors[:2] == vectors[::-1]
    assert model.embedded == ["one", "two", "three"]
    np.testing.assert_array_equal(HashedEmbedder().embed(["one"]).vectors[0], vectors[0])
    first.close()
    second.close()


def test_a_live_model_is_asked_each_time() -> None:
    kept, model = Kept(None), HashedEmbedder()
    embedder = KeptEmbedder(model, kept)
    embedder.embed(["one"])
    embedder.live = True
    embedder.embed(["one"])
    assert model.embedded == ["one", "one"]
    kept.close()


def test_a_collection_is_read_from_its_three_files(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text(
        '{"id": "d1", "title": "Title", "text": "text\\u2028more"}\n{"id": "d2", "title": "", "text": "text"}\n'
    )
    (tmp_path / "queries.jsonl").write_text('{"id": "q1", "text": "asked"}\n{"id": "q2", "text": "not judged"}\n')
    (tmp_path / "qrels.tsv").write_text("q1\td1\t2\nq1\td2\t0\n")
    assert corpora.read(tmp_path) == Corpus(
        name=tmp_path.name,
        documents={"d1": "Title\ntext\u2028more", "d2": "text"},
        questions={"q1": "asked"},
        judgments={"q1": {"d1": 2}},
    )


def test_fewer_drawn_questions_are_among_more() -> None:
    handbook = own.handbook()
    few, more = handbook.asking(5, seed=3).questions, handbook.asking(20, seed=3).questions
    assert len(few) == 5
    assert few.items() < more.items()


def test_a_part_of_a_collection_has_the_questions_that_it_answers() -> None:
    part = own.handbook().of(10)
    assert len(part.documents) == 10
    assert part.questions
    assert all(part.judgments[name].keys() <= part.documents.keys() for name in part.questions)
