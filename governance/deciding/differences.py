"""What differs between two versions of something, as lines a page can draw. Pure: values in, values out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

CONTEXT = 2
"""Unchanged lines shown around a change."""
_LONGEST = 4_000
"""Lines of either side that are compared; beyond that a text is shown as replaced whole."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a difference. `kind` is `added`, `removed`, `same`, or `gap` for lines left out."""

    kind: str
    text: str


def lines_between(before: str, after: str) -> list[Line]:
    """The changed lines of two texts with a little around them; empty when the texts are equal."""
    return between(before.splitlines(), after.splitlines())


def between(old: Sequence[str], new: Sequence[str]) -> list[Line]:
    """The changed lines of two lists of lines."""
    if old == new:
        return []
    head, tail = _alike_at_the_ends(old, new)
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(old), len(new)) > _LONGEST:
        return [*_as("removed", old), *_as("added", new)]
    groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT)
    return list(_drawn(groups, old, new, cut=head > 0))


def _alike_at_the_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines at the beginning and at the end need no comparing, since they are the same and far from a change.

    The matcher's time grows with the square of lines that repeat, as the braces of JSON do; most changes are in one place.
    """
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    return max(head - CONTEXT, 0), max(tail - CONTEXT, 0)


def _alike(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines the two begin with in common."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))


def _drawn(groups: Iterable[Any], old: Sequence[str], new: Sequence[str], *, cut: bool) -> Iterator[Line]:
    for number, group in enumerate(groups):
        if number or cut or group[0][1] > 0:
            yield Line("gap", "…")
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from _as("same", old[old_from:old_to])
            else:
                yield from _as("removed", old[old_from:old_to])
                yield from _as("added", new[new_from:new_to])


def _as(kind: str, lines: Iterable[str]) -> Iterator[Line]:
    return (Line(kind, line) for line in lines)


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a row before and after. Long texts are compared line by line, short values as a whole."""

    field: str
    lines: tuple[Line, ...]


def fields_between(
    before: Mapping[str, Any], after: Mapping[str, Any], fields: Sequence[str]
) -> tuple[FieldChange, ...]:
    """Those of `fields` that differ, in the order given."""
    return tuple(
        FieldChange(field, tuple(lines_between(as_text(before.get(field)), as_text(after.get(field)))))
        for field in fields
        if as_text(before.get(field)) != as_text(after.get(field))
    )


def as_text(value: Any) -> str:
    """A column's value as a reader sees it: a list of tags by commas, nothing for nothing."""
    if value is None or value == []:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
