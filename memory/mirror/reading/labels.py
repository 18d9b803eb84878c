"""Label lines: `**By:** Ana`, `- **Status**: done`, `**Author:** Ana | **Date:** 2026-03-04`, `| **Author** | Ana |` (SPEC 8)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memory.mirror.reading.markdown import Outline

AUTHORS = (
    "by",
    "author",
    "authors",
    "author(s)",
    "decided by",
    "directive by",
    "proposed by",
    "decision by",
    "decider",
    "reviewer",
    "reviewed by",
    "validator",
    "from",
    "lead",
    "agent",
    "owner",
)
"""Labels that name who wrote a record, the surest first."""
SIGNATURES = frozenset(AUTHORS[:9]) | {"date"}
"""Labels that make the heading above them the head of a record."""
RATIONALES = ("rationale", "why", "reason", "reasoning")

# The second colon is the wide one of East Asian texts.
_COLONS = ":\uff1a"
_BOLD = re.compile(
    rf"(?:\*\*|__)[ \t]{{0,4}}([^*{_COLONS}\n|]{{1,40}}?)[ \t]{{0,4}}"
    rf"(?:[{_COLONS}][ \t]{{0,4}}(?:\*\*|__)|(?:\*\*|__)[ \t]{{0,4}}[{_COLONS}])"
)
_PLAIN = re.compile(
    r"(By|Authors?|Date|Status|Type|What|Why|Rationale|Decided by|Proposed by|Requested by)"
    rf"[ \t]*[{_COLONS}][ \t]+(\S.*)$"
)
_PREFIX = re.compile(r"[ \t>]*(?:[-*+][ \t]+)?")
_SEPARATOR = re.compile(r"(?:[|·•]|[ \t]{2,}|—)[ \t]*$")


@dataclass(frozen=True)
class Label:
    """`name` in lower case; `line` is the 0-based line it stands on."""

    name: str
    value: str
    line: int


def labels(outlined: Outline, start: int, stop: int) -> Iterator[Label]:
    """The labels in lines `start` to `stop`, fences and comments left out."""
    for index in range(start, stop):
        line = outlined.lines[index]
        # A label is short; a line without a colon or a bar holds none.
        if index not in outlined.shielded and any(sign in line for sign in (*_COLONS, "|")):
            for name, value in line_labels(line):
                yield Label(name, value, index)


def line_labels(line: str) -> list[tuple[str, str]]:
    """The labels of one line, names in lower case. A bold word inside running text is not a label."""
    prefix = _PREFIX.match(line)
    text = line[prefix.end() if prefix else 0 :]
    if text.startswith("|"):
        return _cells(text)
    first = _BOLD.match(text)
    if first is None:
        plain = _PLAIN.match(text)
        return [(plain[1].lower(), _value(plain[2]))] if plain else []
    starts = [
        first,
        *(m for m in _BOLD.finditer(text, first.end()) if _SEPARATOR.search(text[: m.start()][-8:])),
    ]
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return [
        (match[1].strip().lower(), _value(text[match.end() : end]))
        for match, end in zip(starts, ends, strict=True)
    ]


def _cells(text: str) -> list[tuple[str, str]]:
    cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
    name = cells[0].strip("*_: ").lower()
    known = name in AUTHORS or name in ("date", "status", "type", *RATIONALES)
    return [(name, _value(cells[1]))] if known and len(cells) == 2 else []


def _value(text: str) -> str:
    # A backslash at the end is a line break in Markdown.
    return text.strip().removesuffix("\\").rstrip().rstrip("|·•").strip()


def first_value(found: Iterable[Label], *names: str) -> str | None:
    """The value of the first label in the order of `names`; None when none has one."""
    by_name: dict[str, str] = {}
    for label in found:
        if label.value:
            by_name.setdefault(label.name, label.value)
    return next((by_name[name] for name in names if name in by_name), None)
