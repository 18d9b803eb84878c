"""What differs between two texts, as lines a page can draw (SPEC 9)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from governance.deciding.differences import Line, between, lines_between

LINES = st.lists(st.sampled_from(["{", "}", "a", "b"]), max_size=12)


def test_a_change_is_shown_with_two_lines_around_it_and_a_mark_for_those_before() -> None:
    old = [f"line {number}" for number in range(20)]
    new = [*old[:10], "new", *old[11:]]
    assert between(old, new) == [
        Line("gap", "…"), Line("same", "line 8"), Line("same", "line 9"), Line("removed", "line 10"),
        Line("added", "new"), Line("same", "line 11"), Line("same", "line 12"),
    ]  # fmt: skip


def test_a_change_in_the_first_line_has_no_mark_before_it() -> None:
    assert lines_between("a\nb\nc\nd", "A\nb\nc\nd") == [
        Line("removed", "a"), Line("added", "A"), Line("same", "b"), Line("same", "c"),
    ]  # fmt: skip


def test_equal_texts_differ_in_nothing() -> None:
    assert lines_between("a\nb", "a\nb") == []


def test_changes_in_two_places_are_shown_apart() -> None:
    old = [str(number) for number in range(30)]
    new = [*old[:3], "x", *old[3:25], "y", *old[25:]]
    kinds = [(line.kind, line.text) for line in between(old, new) if line.kind != "same"]
    assert kinds == [("gap", "…"), ("added", "x"), ("gap", "…"), ("added", "y")]


@given(LINES, LINES)
def test_without_what_was_removed_and_with_what_was_added_the_old_lines_are_the_new(
    old: list[str], new: list[str]
) -> None:
    lines = between(old, new)
    counted = Counter(old)
    counted.subtract(line.text for line in lines if line.kind == "removed")
    counted.update(line.text for line in lines if line.kind == "added")
    assert {text: number for text, number in counted.items() if number} == dict(Counter(new))
