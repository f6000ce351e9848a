"""Mutants apply to the code as it is now; an edit changes what it names and nothing else, or it is an error."""

import pytest

from tests.proofs import mutants
from tests.proofs.edits import (
    Edit,
    always,
    becomes,
    clause,
    condition,
    instead,
    never,
    parameter,
    skip,
    value,
    without,
)
from tests.proofs.mutation import Mutant, switched_off

MINE = "#state = :ready AND attempt = :attempt"


def is_due(moment: int, attempt: int, *, limit: int = 3) -> bool:
    """Whether a moment has come; never for a moment of zero."""
    return moment != 0 and (moment, attempt) == (limit, 1)


def total(number: int, chunks: list[int]) -> dict[str, int]:
    seen = [number]
    if number < 0:
        raise ValueError
    seen.append(max(chunks))
    return {"sum": number + sum(chunks), "seen": len(seen)}


def conditions_of(*, counted: bool) -> list[str]:
    return [MINE, f"{MINE} AND reserved = :reserved", "revision = :revision" if counted else "attribute_exists(pk)"]


def mutant(*edits: Edit) -> Mutant:
    return Mutant("a mutant of a test", *edits, probes=[])


def test_every_mutant_applies_to_the_code_as_it_is_now() -> None:
    for each in mutants.MUTANTS:
        with switched_off(each):
            pass


def test_every_mutant_has_a_name_of_its_own_and_a_probe() -> None:
    assert len({each.name for each in mutants.MUTANTS}) == len(mutants.MUTANTS)
    assert all(each.probes for each in mutants.MUTANTS)


@pytest.mark.parametrize(
    ("edit", "answer"),
    [
        (always(is_due, "limit"), [False, True, False, True]),
        (always(is_due, "attempt"), [False, True, True, False]),
        (never(is_due, "0"), [False, False, False, False]),
        (condition(is_due, "moment 0", "_2 == _1"), [False, False, False, False]),
        (parameter(is_due, "attempt", "1"), [False, True, True, False]),
    ],
)
def test_an_edit_of_a_condition_replaces_that_condition_alone(edit: Edit, answer: list[bool]) -> None:
    def answers() -> list[bool]:
        return [is_due(0, 1), is_due(3, 1), is_due(3, 2), is_due(4, 1)]

    assert answers() == [False, True, False, False]
    with switched_off(mutant(edit)):
        assert answers() == answer
    assert answers() == [False, True, False, False], "the function is as it was"


@pytest.mark.parametrize(
    ("edit", "answer"),
    [
        (becomes(total, "max()", "_1"), {"sum": 13, "seen": 2}),
        (becomes(total, "number + sum()", "_2"), {"sum": 3, "seen": 2}),
        (skip(total, "append()"), {"sum": 13, "seen": 1}),
        (instead(total, "append()", "_\n_"), {"sum": 13, "seen": 3}),
        (value(total, "seen", "_ + 1"), {"sum": 13, "seen": 3}),
        (without(total, "seen"), {"sum": 13}),
        (skip(total, "number ~sum ~ValueError ~0"), {"sum": 13, "seen": 1}),
    ],
)
def test_an_edit_changes_what_its_words_name(edit: Edit, answer: dict[str, int]) -> None:
    with switched_off(mutant(edit)):
        assert total(10, [1, 2]) == answer


def test_a_clause_goes_and_the_rest_of_its_condition_stays() -> None:
    with switched_off(mutant(clause(conditions_of, "reserved"))):
        assert conditions_of(counted=False)[1] == MINE
    with switched_off(mutant(clause(conditions_of, "revision"))):
        assert conditions_of(counted=True)[2] == "attribute_exists(pk)"


@pytest.mark.parametrize(
    "edit",
    [
        never(is_due, "heartbeat"),
        never(total, "number total"),
        becomes(total, "chunks", "_"),
        becomes(total, "max()", "max(_1)"),
        becomes(total, "max()", "_2"),
        without(total, "chunks"),
        clause(conditions_of, "attempt"),
        parameter(total, "heartbeat", "1"),
    ],
)
def test_an_edit_that_does_not_apply_or_changes_nothing_is_an_error(edit: Edit) -> None:
    with pytest.raises(LookupError, match=edit.function.__name__), switched_off(mutant(edit)):
        pass


def test_a_mutant_of_something_that_is_no_function_is_an_error() -> None:
    with pytest.raises(TypeError, match="no function"):
        never(mutants.Verdict, "seen")
