"""Marks on text that tries to command its reader, and the characters a reader cannot see (SPEC 9, Inbox).

Marks for the reviewer, never a block: the compiler's envelope is what keeps text from acting. Pure: text in, values out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from memory.compiling.envelope import BEGIN, END, HEADING


@dataclass(frozen=True, slots=True)
class Flag:
    """One thing a reviewer should look at: a code, a sentence, and the words that caused it."""

    code: str
    says: str
    example: str


@dataclass(frozen=True, slots=True)
class Sign:
    code: str
    says: str
    pattern: re.Pattern[str]


def _sign(code: str, says: str, pattern: str) -> Sign:
    return Sign(code, says, re.compile(pattern, re.IGNORECASE | re.MULTILINE))


SIGNS = (
    _sign(
        "boundary_marker",
        "Holds words that mark the borders of a prompt",
        rf"{BEGIN}|{END}|{re.escape(HEADING)}|<\|(?:im_start|im_end|endoftext|system|user|assistant)\|>|\[/?INST\]|<</?SYS>>",
    ),
    _sign(
        "role_change",
        "Speaks as if it were the system, or gives the reader another role",
        r"^\s*(?:#+\s*)?(?:\*\*)?(?:system|assistant|developer)(?:\*\*)?\s*(?:prompt|message)?\s*:"
        r"|\byou are (?:now|no longer)\b|\bact as (?:an? |the )|\bpretend (?:to be|you)\b|\bfrom now on,? you\b"
        r"|\bnew (?:system )?(?:instructions?|persona)\b|</?(?:system|assistant|instructions?)>",
    ),
    _sign(
        "override",
        "Tells the reader to set other instructions aside",
        r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,40}\b(?:previous|prior|earlier|above|preceding|all|any|other"
        r"|your|these|those|system)\b[^.\n]{0,40}\b(?:instructions?|rules?|prompts?|guidelines|decisions?|context|constraints"
        r"|polic(?:y|ies)|safeguards?)\b",
    ),
    _sign(
        "claims_authority",
        "Claims an approval or asks for one",
        r"\b(?:already|pre-?)\s?approved\b|\bapprove (?:all|everything|this (?:entry|memory|decision))\b|\bauto-?approve\b"
        r"|\bdo not (?:tell|inform|show|mention)\b[^.\n]{0,30}\b(?:user|owner|human|reviewer)s?\b",
    ),
    _sign(
        "credential_link",
        "Holds a link with a user name, a password or a key in it",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/@:]{1,100}:[^\s/@]{1,100}@[^\s]+"
        r"|\bhttps?://[^\s\"'<>]{1,300}[?&](?:api_?key|key|token|access_token|secret|password|passwd|sig|signature)=[^\s&]+",
    ),
    _sign(
        "secret",
        "Holds what looks like a credential",
        r"\b(?:aw[rp]_[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}"
        r"|xox[abprs]-[A-Za-z0-9-]{10,})|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----",
    ),
    _sign(
        "encoded_blob",
        "Holds a long encoded passage nobody can read",
        r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{200,}={0,2}|(?<![0-9a-f])(?:[0-9a-f]{2}){80,}(?![0-9a-f])"
        r"|(?:\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|%[0-9a-f]{2}){16,}|data:[\w/+.-]{1,60};base64,",
    ),
)

_EXAMPLE = 80
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
"""Controls but tab and line feed, format and bidirectional characters, line and paragraph separators, fillers, variation
selectors, tags. The Arabic number signs, format characters too, are drawn by every font and stay out."""
_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
_CONTROL_NAMES = {
    0x1B: "ESCAPE",
    0x08: "BACKSPACE",
    0x0D: "CARRIAGE RETURN",
    0x0C: "FORM FEED",
    0x0B: "LINE TABULATION",
}
_LONGEST = 65_536


def flags_of(*texts: str) -> tuple[Flag, ...]:
    """The flags of some texts read together, each kind once, in a fixed order."""
    text = "\n".join(text for text in texts if text)[: 3 * _LONGEST]
    signs = (_flag(sign, text) for sign in SIGNS)
    return tuple(flag for flag in (*signs, _unseen_flag(text)) if flag is not None)


def _flag(sign: Sign, text: str) -> Flag | None:
    found = sign.pattern.search(text)
    return Flag(sign.code, sign.says, _shortened(found.group().strip())) if found else None


def _shortened(text: str) -> str:
    return text if len(text) <= _EXAMPLE else f"{text[: _EXAMPLE - 1]}…"


def _unseen_flag(text: str) -> Flag | None:
    names = dict.fromkeys(piece.text for piece in pieces(text) if piece.unseen)
    if not names:
        return None
    return Flag(
        "unseen_characters",
        "Holds invisible, bidirectional or tag characters",
        _shortened(", ".join(names)),
    )


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text as a reader should see it. `unseen`: `text` is the name of what stands there, not the characters."""

    text: str
    unseen: bool = False


def pieces(text: str) -> Iterator[Piece]:
    """The text cut at its invisible characters; a run of the same one is named once, with its number."""
    text = text.replace("\r\n", "\n")
    end = 0
    for found in _UNSEEN.finditer(text):
        hidden = "".join(text[i] for i in range(*found.span()) if not _belongs_to_emoji(text, i))
        if not hidden:
            continue
        if found.start() > end:
            yield Piece(text[end : found.start()])
        yield from (Piece(name, unseen=True) for name in _names(hidden))
        end = found.end()
    if end < len(text):
        yield Piece(text[end:])


def _belongs_to_emoji(text: str, index: int) -> bool:
    """The joiner inside a family, and the selector that asks for the coloured picture: part of what is seen."""
    if text[index] == _EMOJI_STYLE:
        return index > 0 and _is_symbol(text[index - 1])
    return text[index] == _JOINER and _between_emoji(text, index)


def _between_emoji(text: str, index: int) -> bool:
    before, after = text[index - 1 : index], text[index + 1 : index + 2]
    return bool(before and after) and (_is_symbol(before) or before == _EMOJI_STYLE) and _is_symbol(after)


def _is_symbol(character: str) -> bool:
    return (
        character > "\x7f" and unicodedata.category(character) in ("So", "Sk", "Sm", "Po")
    ) or character in "#*0123456789"


def _names(characters: str) -> Iterator[str]:
    for is_tag, run in groupby(characters, key=_is_tag):
        hidden = "".join(run)
        if is_tag:
            yield f"HIDDEN TAGS “{_untagged(hidden)}”"
            continue
        for character, same in groupby(hidden):
            number = len(list(same))
            yield _name(character) + (f" ×{number}" if number > 1 else "")


def _is_tag(character: str) -> bool:
    return "\U000e0000" <= character <= "\U000e007f"


def _untagged(hidden: str) -> str:
    """What tag characters spell: each stands for the ASCII character below it."""
    return "".join(chr(ord(tag) - 0xE0000) for tag in hidden if "\U000e0020" <= tag <= "\U000e007e")


def _name(character: str) -> str:
    number = ord(character)
    name = unicodedata.name(character, "") or _CONTROL_NAMES.get(number, "CONTROL CHARACTER")
    return f"{name} U+{number:04X}"


def has_unseen(texts: Iterable[str]) -> bool:
    """Whether any of the texts holds a character that cannot be seen."""
    return any(piece.unseen for text in texts for piece in pieces(text))
