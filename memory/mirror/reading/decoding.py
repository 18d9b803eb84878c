r"""Bytes to text, and a note on everything that changed (SPEC 8).

Foreign files come as UTF-8 with or without a byte order mark, now and then as UTF-16 with one, with any line ends. Decoding never
fails. Line ends become `\n` (B33: the same file with LF, CRLF or a BOM gives the same rows); NULs and bytes that are not UTF-8
become U+FFFD, since no database stores them; everything else is kept as it came.
"""

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

# A file with CRLF that went through another conversion has CR CR LF: still the end of one line.
_BREAK = re.compile(r"\r+\n|\r|\n")
_LONE_CR = re.compile(r"\r(?!\r*\n)")
_REPLACEMENT = re.compile("\ufffd")
_NUL = re.compile("\x00")
_BAD_BYTES = re.compile(r"[\ud800-\udfff]+")
_CONTROL = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]")
_INNER_BOM = re.compile(r"^\ufeff", re.MULTILINE)
_CONFLICT = re.compile(r"^(?:<{7} .*|={7}|>{7} .*)$", re.MULTILINE)
LINES_NAMED = 10


@dataclass(frozen=True)
class TextNote:
    """Something a person should know about a text: `line` is the first place, `detail` says how often and where else."""

    line: int
    code: str
    detail: str = ""


@dataclass(frozen=True)
class Decoded:
    """`added` holds the lines of the text that no `\\n` of the file began, counted from 1."""

    text: str
    notes: tuple[TextNote, ...]
    added: tuple[int, ...] = ()

    def file_line(self, line: int) -> int:
        """The line of the file, as git and editors count it, for a line of the text."""
        return line - bisect_right(self.added, line)


def decode(data: bytes) -> Decoded:
    """The text of a file, its lines ended by `\\n` alone."""
    text, notes = _characters(data)
    added: tuple[int, ...] = ()
    if "\r" in text:
        notes.append(_line_ends(text))
        added = _added(text) if "\n" in text else ()
        text = _BREAK.sub("\n", text)
    notes += _noted(text, "replacement_characters", _REPLACEMENT)
    for code, pattern in (("bad_bytes_replaced", _BAD_BYTES), ("nul_replaced", _NUL)):
        if found := _noted(text, code, pattern):
            notes += found
            text = pattern.sub("\ufffd", text)
    notes += _noted(text, "control_characters", _CONTROL)
    return Decoded(text, tuple(notes), added)


def _characters(data: bytes) -> tuple[str, list[TextNote]]:
    """Text in which a byte that is not UTF-8 stands as a lone surrogate, still to be replaced."""
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            return data[2:].decode(encoding, "replace"), [TextNote(1, "utf_16", "read as UTF-16")]
    bom = data.startswith(codecs.BOM_UTF8)
    text = data[3 if bom else 0 :].decode("utf-8", "surrogateescape")
    return text, [TextNote(1, "bom_removed")] if bom else []


def _added(text: str) -> tuple[int, ...]:
    """A lone carriage return among other line ends is mostly a damaged character, and nobody else counts it as a line."""
    return tuple(number for number, match in enumerate(_BREAK.finditer(text), start=2) if match[0] == "\r")


def _line_ends(text: str) -> TextNote:
    crlf = text.count("\r\n")
    lone = len(_LONE_CR.findall(text))
    plain = text.count("\n") - crlf
    counts = [f"{count} {name}" for count, name in ((crlf, "CRLF"), (lone, "CR"), (plain, "LF")) if count]
    return TextNote(1, "line_ends_changed", ", ".join(counts) + " became LF")


def _noted(text: str, code: str, pattern: re.Pattern[str]) -> list[TextNote]:
    lines = _lines_of(text, (match.start() for match in pattern.finditer(text)))
    if not lines:
        return []
    named = list(dict.fromkeys(lines))[:LINES_NAMED]
    return [TextNote(lines[0], code, f"{len(lines)} in line " + ", ".join(map(str, named)))]


def _lines_of(text: str, positions: Iterable[int]) -> list[int]:
    lines: list[int] = []
    line, seen = 1, 0
    for position in positions:
        line += text.count("\n", seen, position)
        seen = position
        lines.append(line)
    return lines


def without_inner_boms(text: str) -> Decoded:
    """A byte order mark at the start of a later line is what joining two files leaves behind; it would hide a heading."""
    if "\ufeff" not in text:
        return Decoded(text, ())
    notes = _noted(text, "bom_removed", _INNER_BOM)
    return Decoded(_INNER_BOM.sub("", text), tuple(notes))


def conflict_notes(text: str) -> list[TextNote]:
    """Lines git left behind when a merge went wrong. They stay in the text."""
    found = _noted(text, "conflict_markers", _CONFLICT)
    return found if "<<<<<<< " in text and ">>>>>>> " in text else []
