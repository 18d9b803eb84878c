"""The marks around each record of our own export: they bring a text back byte for byte (SPEC 8, Export).

    <!-- agentweaver:record 5f0c… {"v":1,"kind":"decision","id":12,"data":{…}} -->
    ## Any heading or label a person should see
    <!-- agentweaver:text 5f0c… -->
    the text, as it is
    **Rationale:** <!-- agentweaver:rationale 5f0c… -->
    the rationale, as it is
    <!-- agentweaver:end 5f0c… -->

The hexadecimal word is half a SHA-256 over text and rationale, so no text can hold its own end mark: it would have to hold its
own digest. It is also how an edit by hand is noticed: then the text is what the file says now, and `edited` is true. A text may
hold headings, rules, fences, front matter, comments, look-alike marks, or a whole export.

Files end lines with `\\n` alone. What such a file cannot hold, the carriage returns, is carried beside the text as the kinds of its
line breaks (`12n1rn`: twelve `\\n`, one `\\r\\n`). The metadata is one line of ASCII JSON in which `--` and `>` cannot occur.
"""

import hashlib
import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

KINDS = frozenset({"decision", "memory", "entry", "session"})
VERSION = 1

_RECORD = re.compile(r"<!-- agentweaver:record ([0-9a-f]{32}) (\{.*\}) -->[ \t]*")
_INNER = re.compile(r"(?:\*\*Rationale:\*\* )?<!-- agentweaver:(text|rationale|end) ([0-9a-f]{32}) -->[ \t]*")
_BREAK = re.compile(r"\r\n|\r|\n")
_RUN = re.compile(r"(\d{1,7})(rn|r|n)")
_NAMES = {"\n": "n", "\r": "r", "\r\n": "rn"}
_BREAKS = {name: characters for characters, name in _NAMES.items()}
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class MarkedRecord:
    """One exported row. `data` holds what else the row has, as JSON: agent, type, importance, tags, created, source, revision …"""

    kind: str
    id: int | None
    text: str
    rationale: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FoundRecord:
    """A record found in a file: lines `start` to `stop` (0-based, half-open). `head` is what stood between its marks for people.

    `edited`: the text or rationale was changed by hand. `head_edited`: the visible lines were; they are not read.
    """

    record: MarkedRecord
    start: int
    stop: int
    head: str
    edited: bool
    head_edited: bool


@dataclass(frozen=True)
class Unwrapped:
    """`rest` is the file with every record's lines blank, so its line numbers hold; `broken` the 0-based lines of marks that lead nowhere."""

    found: tuple[FoundRecord, ...]
    rest: str
    broken: tuple[int, ...]


def wrap(record: MarkedRecord, head: str = "") -> str:
    """The lines of a record, each ended by `\\n`. `head` is shown above the text. Raises ValueError for what no row can hold."""
    for text in (record.text, record.rationale or "", head):
        if "\x00" in text or _SURROGATE.search(text):
            raise ValueError("a NUL or a lone surrogate cannot be written")
    if record.kind not in KINDS or "\r" in head:
        raise ValueError("unknown kind, or a carriage return in the visible lines")
    word = _word(record.text, record.rationale)
    lines = [f"<!-- agentweaver:record {word} {_metadata(record, head)} -->"]
    lines += [head.rstrip("\n")] if head.strip("\n") else []
    lines += [f"<!-- agentweaver:text {word} -->", _stored(record.text)]
    if record.rationale is not None:
        lines += [f"**Rationale:** <!-- agentweaver:rationale {word} -->", _stored(record.rationale)]
    return "\n".join([*lines, f"<!-- agentweaver:end {word} -->", ""])


def unwrap(text: str) -> Unwrapped:
    """Finds the records of a file, whose line ends are `\\n`. Never raises; linear in time, also for marks that lead nowhere."""
    lines = text.split("\n")
    marks = _inner_marks(lines)
    found: list[FoundRecord] = []
    broken: list[int] = []
    index = 0
    while index < len(lines):
        head = (
            _RECORD.fullmatch(lines[index]) if lines[index].startswith("<!-- agentweaver:record ") else None
        )
        if head is None:
            index += 1
        elif record := _found(lines, index, head[1], head[2], marks):
            found.append(record)
            index = record.stop
        else:
            broken.append(index)
            index += 1
    for record in found:
        lines[record.start : record.stop] = [""] * (record.stop - record.start)
    return Unwrapped(tuple(found), "\n".join(lines), tuple(broken))


def _word(text: str, rationale: str | None) -> str:
    return hashlib.sha256(json.dumps([text, rationale]).encode()).hexdigest()[:32]


def _digest_of_head(head: str) -> str:
    return hashlib.sha256(head.rstrip("\n").encode()).hexdigest()[:16]


def _metadata(record: MarkedRecord, head: str) -> str:
    values: dict[str, Any] = {"v": VERSION, "kind": record.kind, "id": record.id}
    if head.strip("\n"):
        values["head"] = _digest_of_head(head)
    for name, text in (("breaks", record.text), ("rationale_breaks", record.rationale or "")):
        if "\r" in text:
            values[name] = _break_runs(text)
    values["data"] = record.data
    written = json.dumps(values, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    # Inside strings only: outside of them JSON has neither `--` nor `>`. Written twice, since `---` holds two overlapping pairs.
    return (
        written.replace("--", "-\\u002d")
        .replace("--", "-\\u002d")
        .replace(">", "\\u003e")
        .replace("<", "\\u003c")
    )


def _stored(text: str) -> str:
    return _BREAK.sub("\n", text)


def _break_runs(text: str) -> str:
    names = (_NAMES[match[0]] for match in _BREAK.finditer(text))
    return "".join(f"{sum(1 for _ in run)}{name}" for name, run in groupby(names))


def _restored(stored: str, runs: Any) -> str:
    """The text with its own line breaks. Breaks that do not fit the lines belong to a text that was edited, and are left."""
    if not isinstance(runs, str) or not re.fullmatch(rf"(?:{_RUN.pattern})+", runs):
        return stored
    counted = [(int(count), name) for count, name in _RUN.findall(runs)]
    lines = stored.split("\n")
    if sum(count for count, _ in counted) != len(lines) - 1:
        return stored
    breaks = [_BREAKS[name] for count, name in counted for _ in range(count)]
    return "".join(line + end for line, end in zip(lines, [*breaks, ""], strict=True))


def _inner_marks(lines: list[str]) -> dict[tuple[str, str], list[int]]:
    marks: dict[tuple[str, str], list[int]] = {}
    for index, line in enumerate(lines):
        if "<!-- agentweaver:" in line and (match := _INNER.fullmatch(line)):
            marks.setdefault((match[1], match[2]), []).append(index)
    return marks


def _after(marks: dict[tuple[str, str], list[int]], name: str, word: str, index: int) -> int | None:
    places = marks.get((name, word), [])
    at = bisect_right(places, index)
    return places[at] if at < len(places) else None


def _found(
    lines: list[str], start: int, word: str, metadata: str, marks: dict[tuple[str, str], list[int]]
) -> FoundRecord | None:
    begin = _after(marks, "text", word, start)
    end = _after(marks, "end", word, begin) if begin is not None else None
    values = _parsed(metadata)
    if begin is None or end is None or values is None:
        return None
    middle = _after(marks, "rationale", word, begin)
    middle = middle if middle is not None and middle < end else None
    text = _restored(
        "\n".join(lines[begin + 1 : middle if middle is not None else end]), values.get("breaks")
    )
    rationale = None
    if middle is not None:
        rationale = _restored("\n".join(lines[middle + 1 : end]), values.get("rationale_breaks"))
    head = "\n".join(lines[start + 1 : begin])
    return FoundRecord(
        record=MarkedRecord(values["kind"], values["id"], text, rationale, values["data"]),
        start=start,
        stop=end + 1,
        head=head,
        edited=_word(text, rationale) != word,
        head_edited=(_digest_of_head(head) if head.strip("\n") else None) != values.get("head"),
    )


def _parsed(metadata: str) -> dict[str, Any] | None:
    try:
        values = json.loads(metadata)
    except (ValueError, RecursionError):
        return None
    number = values.get("id")
    good = (
        values.get("v") == VERSION
        and values.get("kind") in [*KINDS]
        and isinstance(values.get("data"), dict)
        and (number is None or (type(number) is int and 0 < number < 2**63))
    )
    return {"id": None, **values} if good else None
