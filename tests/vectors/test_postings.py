"""An inverted index that is merged again and again says what a plain list of rows says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.vectors.postings import Postings

terms = st.sampled_from(["a", "aa", "b", "b\0", "é", "\uffff", "😀"])
rows = st.lists(st.dictionaries(terms, st.integers(1, 3), max_size=4), max_size=6)


@given(data=st.data())
def test_merged_postings_answer_as_the_rows_do(data: st.DataObject) -> None:
    postings, held = Postings.empty(), list[dict[str, int]]()
    for _ in range(data.draw(st.integers(1, 4), "merges")):
        places = range(len(held))
        kept = sorted(data.draw(st.sets(st.sampled_from(places)) if places else st.just(set()), "kept"))
        added = data.draw(rows, "added")
        postings = postings.merged(np.array(kept, dtype=np.intp), added)
        held = [held[row] for row in kept] + added
    assert postings.terms == sorted({term for row in held for term in row}), "a term without a row is dropped"
    wanted = data.draw(st.lists(terms), "wanted")
    assert postings.with_any(wanted).tolist() == [not set(wanted).isdisjoint(row) for row in held]
    for term in wanted:
        found_rows, counts = postings.of(term)
        expected = [(row, have[term]) for row, have in enumerate(held) if term in have]
        assert sorted(zip(found_rows.tolist(), counts.tolist(), strict=True)) == expected
    low, high = data.draw(terms, "low"), data.draw(terms, "high")
    for includes_low, includes_high in [(True, True), (True, False), (False, True), (False, False)]:
        found = postings.between(low, high, includes_low=includes_low, includes_high=includes_high)
        assert found.tolist() == [
            any(
                (low < term or (includes_low and term == low)) and (term < high or (includes_high and term == high))
                for term in row
            )
            for row in held
        ]


def test_memory_grows_with_terms_and_rows() -> None:
    none = np.empty(0, dtype=np.intp)
    one = Postings.empty().merged(none, [{"a": 1}])
    two = Postings.empty().merged(none, [{"a": 1, "b": 1}, {"a": 1}])
    assert Postings.empty().size_bytes < one.size_bytes < two.size_bytes
