"""The structure of a Markdown text: headings, blocks, front matter. Pure, with line numbers counted from 1.

Blocks come from markdown-it (CommonMark, no inline parsing), so headings inside fences, comments, lists and quotes are not
headings. One rule is switched off on purpose: a line of text with `---` under it is text and a rule here, not a heading, because
ledgers put rules between records without a blank line. Lines are split at `\\n` alone.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_FRONT_MATTER = 16_384
"""Characters. What is longer is text."""

_parser = MarkdownIt("commonmark").disable(["lheading", "reference"])
_parser.core.ruler.enableOnly(["normalize", "block"])

_BULLET = re.compile(r"[-*+][ \t]+")
_COUNTED = re.compile(r"[ \t]*[-*] ")


@dataclass(frozen=True)
class Heading:
    """`raw` is the whole line without trailing space, `text` what follows the hashes."""

    level: int
    line: int
    raw: str
    text: str


@dataclass(frozen=True)
class Block:
    """A piece of top-level text between headings: lines `start` to `stop` (0-based, half-open), trimmed of blank lines.

    `kind` is `text`, `bullet` (one item of a bulleted list), `rule`, `comment` or `other` (fences, numbered lists, quotes).
    `list` is the line on which a bullet's list begins.
    """

    kind: str
    start: int
    stop: int
    list: int = -1


@dataclass(frozen=True)
class Outline:
    lines: tuple[str, ...]
    headings: tuple[Heading, ...]
    blocks: tuple[Block, ...]
    shielded: frozenset[int]
    """0-based lines inside fences, code and comments: nothing there is a label or a bullet."""
    comments: frozenset[int]
    rules: frozenset[int]

    def headings_within(self, start: int, stop: int) -> tuple[Heading, ...]:
        """The headings on the 0-based lines `start` to `stop`."""
        first = bisect_left(self.headings, start + 1, key=attrgetter("line"))
        last = bisect_left(self.headings, stop + 1, key=attrgetter("line"))
        return self.headings[first:last]

    def blocks_within(self, start: int, stop: int) -> tuple[Block, ...]:
        """The blocks that begin on the 0-based lines `start` to `stop`."""
        first = bisect_left(self.blocks, start, key=attrgetter("start"))
        last = bisect_left(self.blocks, stop, key=attrgetter("start"))
        return self.blocks[first:last]

    def is_blank(self, index: int) -> bool:
        """Nothing to read there: white space, a rule or a comment."""
        return not self.lines[index].strip() or index in self.rules or index in self.comments

    def has_text(self, start: int, stop: int) -> bool:
        return any(not self.is_blank(index) for index in range(start, stop))

    def first_text(self, start: int, stop: int) -> int | None:
        return next((index for index in range(start, stop) if not self.is_blank(index)), None)

    def body(self, start: int, stop: int) -> str:
        """Lines `start` to `stop`, without blank lines around them and without the rules that part records."""
        while start < stop and not self.lines[start].strip():
            start += 1
        while stop > start and (not self.lines[stop - 1].strip() or stop - 1 in self.rules):
            stop -= 1
        return "\n".join(self.lines[start:stop])


@dataclass
class _Finding:
    headings: list[Heading] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    shielded: set[int] = field(default_factory=set)
    comments: set[int] = field(default_factory=set)
    rules: set[int] = field(default_factory=set)
    list: int = -1


def outline(text: str) -> Outline:
    """The structure of `text`, whose line ends are `\\n`. Linear in time; front matter is not known here."""
    lines = text.split("\n")
    found = _Finding()
    for token in _parser.parse(text):
        if token.map is not None:
            _take(token, token.map[0], min(token.map[1], len(lines)), lines, found)
    return Outline(
        tuple(lines),
        tuple(found.headings),
        tuple(found.blocks),
        frozenset(found.shielded),
        frozenset(found.comments),
        frozenset(found.rules),
    )


def _take(token: Token, start: int, stop: int, lines: list[str], found: _Finding) -> None:
    is_comment = token.type == "html_block" and token.content.lstrip().startswith("<!--")
    if token.type in ("fence", "code_block") or is_comment:
        found.shielded.update(range(start, stop))
    if token.type == "heading_open" and token.level == 0:
        found.headings.append(_heading(lines[start], start))
    elif kind := _block_kind(token, is_comment):
        _take_block(kind, start, stop, lines, found)


def _take_block(kind: str, start: int, stop: int, lines: list[str], found: _Finding) -> None:
    if kind == "list":
        found.list = start
        return
    if kind == "comment":
        found.comments.update(range(start, stop))
    elif kind == "rule":
        found.rules.add(start)
    while stop > start and not lines[stop - 1].strip():
        stop -= 1
    if stop > start:
        found.blocks.append(Block(kind, start, stop, found.list if kind == "bullet" else -1))


_KINDS = {
    "paragraph_open": "text",
    "hr": "rule",
    "fence": "other",
    "code_block": "other",
    "html_block": "other",
    "bullet_list_open": "list",
    "ordered_list_open": "other",
    "blockquote_open": "other",
}


def _block_kind(token: Token, is_comment: bool) -> str:
    if token.level == 1 and token.type == "list_item_open" and token.info == "" and token.markup in "-*+":
        return "bullet"
    if token.level != 0:
        return ""
    return "comment" if is_comment else _KINDS.get(token.type, "")


def _heading(line: str, index: int) -> Heading:
    raw = line.strip()
    text = raw.lstrip("#")
    level = len(raw) - len(text)
    bare = text.rstrip("#")
    # Hashes at the end close a heading only behind white space: `C#` keeps its own.
    closed = bare if not bare or bare[-1].isspace() else text
    return Heading(level, index + 1, raw, closed.strip())


def extents(headings: Sequence[Heading], stop: int) -> list[tuple[Heading, int]]:
    """Each heading with the 0-based line at which the next of them stands; the last reaches to `stop`."""
    stops = [*(heading.line - 1 for heading in headings[1:]), stop]
    return list(zip(headings, stops, strict=False))


def bullets(outlined: Outline, start: int, stop: int) -> tuple[int, int]:
    """Lines `start` to `stop`: those with a `-` or `*` in column 1, and those with an indented one, outside fences and comments."""
    lines = (outlined.lines[index] for index in range(start, stop) if index not in outlined.shielded)
    counted = [line[0] in "-*" for line in lines if _COUNTED.match(line)]
    return sum(counted), len(counted) - sum(counted)


def unbulleted(text: str) -> str:
    """A list item without its bullet, its further lines moved to the left by as much as they all allow."""
    first, _, rest = text.partition("\n")
    match = _BULLET.match(first)
    width = match.end() if match else 0
    lines = [line[width:] if not line[:width].strip() else line for line in rest.split("\n")]
    return "\n".join([first[width:], *lines]) if rest else first[width:]


@dataclass(frozen=True)
class FrontMatter:
    """YAML at the start of a file. Every value is a string or a list of strings: nothing is guessed to be a date or a truth value.

    `stop` is the 0-based line where the text begins; `raw` the lines between the two rules.
    """

    values: dict[str, str | list[str]]
    stop: int
    raw: str

    def text(self, *keys: str) -> str:
        """The first value that is not blank, as one string, trimmed; empty when there is none."""
        found = (value for key in keys if isinstance(value := self.values.get(key, ""), str))
        return next((value.strip() for value in found if value.strip()), "")


_LISTS = ("tags", "active_issues")


def front_matter(lines: Sequence[str]) -> FrontMatter | None:
    """The front matter of a file, or None. A file that only begins with a rule line has none.

    YAML that is broken is read line by line as `key: rest of the line`, which is how it was written (B30).
    """
    if not lines or lines[0].rstrip() != "---":
        return None
    size = 0
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            raw = list(lines[1:index])
            values = _yaml_values(raw)
            return FrontMatter(values, index + 1, "\n".join(raw)) if values else None
        size += len(line) + 1
        if size > MAX_FRONT_MATTER:
            return None
    return None


def _yaml_values(raw: list[str]) -> dict[str, str | list[str]]:
    written = dict(_pairs(raw))
    if not written:
        return {}
    try:
        # BaseLoader makes strings only: `yes` and `2026-01-01` stay what they are, and no object is ever built.
        loaded: Any = yaml.load("\n".join(raw), Loader=yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError):
        loaded = None
    if not isinstance(loaded, dict):
        return dict(written)
    return {str(key): _meant(str(key), value, written.get(str(key), "")) for key, value in loaded.items()}


def _pairs(raw: list[str]) -> Iterator[tuple[str, str]]:
    for line in raw:
        match = re.match(r"([A-Za-z_][\w-]{0,40}):(?:[ \t]+(.*))?$", line)
        if match:
            yield match[1], (match[2] or "").strip()


def _meant(key: str, value: Any, written: str) -> str | list[str]:
    if isinstance(value, str):
        # What YAML takes for a comment (`#x`, `a #b`), a tag or an anchor was meant as written.
        comment = "#" in written and written.partition("#")[0].rstrip() == value
        return written if comment or written.startswith(("!", "&")) else value
    if key in _LISTS and isinstance(value, list):
        return [item for item in value if isinstance(item, str)]
    return written
