"""BM25: the formula, and what it promises of every score."""

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.ranking.bm25 import K1, B, Statistics, score, term_score

terms = st.sampled_from(["a", "b", "c", "d"])
records = st.lists(st.lists(terms, max_size=12), min_size=1, max_size=8)


def statistics(texts: list[list[str]]) -> Statistics:
    containing = {term: sum(term in text for text in texts) for term in "abcd"}
    return Statistics(len(texts), sum(map(len, texts)), containing)


def counts(text: list[str]) -> dict[str, int]:
    return {term: text.count(term) for term in text}


@given(records, st.lists(terms, unique=True))
def test_it_is_what_the_formula_says(texts: list[list[str]], query: list[str]) -> None:
    known = statistics(texts)
    average = sum(map(len, texts)) / len(texts)
    for text in texts:
        expected = 0.0
        for term in query:
            if term in text:
                having = sum(term in other for other in texts)
                idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
                tf = text.count(term)
                expected += idf * tf / (tf + K1 * (1 - B + B * len(text) / average))
        assert math.isclose(score(query, known, counts(text), len(text)), expected, rel_tol=1e-12)


@given(records, st.lists(terms, unique=True))
def test_a_record_scores_above_0_exactly_when_it_has_a_term_of_the_question(
    texts: list[list[str]], query: list[str]
) -> None:
    known = statistics(texts)
    for text in texts:
        scored = score(query, known, counts(text), len(text))
        assert (scored > 0) == (not set(query).isdisjoint(text))
        assert scored >= 0


@given(st.floats(0.01, 10), st.integers(1, 50), st.integers(1, 500), st.floats(1, 100))
def test_more_of_a_term_scores_higher_and_ever_less_so_and_a_longer_record_lower(
    idf: float, frequency: int, length: int, average: float
) -> None:
    one, two, three = (term_score(idf, float(frequency + more), float(length), average) for more in range(3))
    assert one < two < three < idf, "and never above the weight of the term"
    assert three - two < two - one
    assert term_score(idf, float(frequency), float(length + 1), average) < one


@given(st.integers(1, 1000))
def test_the_rarer_a_term_the_more_it_counts_and_none_counts_nothing(number: int) -> None:
    idfs = [Statistics(number, number, {"a": containing}).idf("a") for containing in range(number + 1)]
    assert all(rarer > commoner for rarer, commoner in pairwise(idfs))
    assert idfs[-1] > 0, "even what every record has"


@given(records, st.lists(terms, unique=True, min_size=1))
def test_arrays_give_the_same_numbers_to_the_last_digit(texts: list[list[str]], query: list[str]) -> None:
    known = statistics(texts)
    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    total = np.zeros(len(texts))
    for term in query:
        frequencies = np.array([text.count(term) for text in texts], dtype=np.float64)
        having = frequencies > 0
        total[having] += term_score(known.idf(term), frequencies[having], lengths[having], known.average_length)
    assert total.tolist() == [score(query, known, counts(text), len(text)) for text in texts]


def test_records_without_terms_divide_by_nothing() -> None:
    assert Statistics(3, 0, {}).average_length == 1.0
    assert score(["a"], Statistics(3, 0, {}), {}, 0) == 0
