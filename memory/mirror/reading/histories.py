"""An agent's folder: its charter, and its history to memories (SPEC 8).

A history is read section by section, a section being what stands below an H1 or H2:

* `Learnings`, `Key learnings`, `Lessons learned`: `learning`s. A bullet is one; a paragraph is one, together with a list it leads
  into; a part with a heading of its own is one as a whole, unless it is nothing but bullets: then each of them is one.
* `Core Context`, `Project Context`, `Project Learnings (from init)`, `My Role`: one `core_context` each.
* any other section with a date, and `Recent Updates`: `update`, the log of what was done. Without a date: `learning`.
* a line that begins with a pushpin tells what the team decided, not what the agent learned: `update`, wherever it stands.

All are `medium`. A memory has no title, so the headings a text stood under are put above it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.enums import MemoryType
from memory.mirror.dates import find_stamp, split_date
from memory.mirror.names import UNKNOWN
from memory.mirror.reading.collecting import Collector
from memory.mirror.reading.markdown import Block, Heading, Outline, bullets, extents, outline, unbulleted
from memory.mirror.reading.records import CharterRecord, MemoryRecord
from memory.mirror.wording import bare, cut_title, one_line

PUSHPIN = "📌"
_LEARNED = re.compile(
    r"(?:key |recent |main |my |consolidated |earlier )*(?:learnings?|lessons(?: learned)?)\b"
)
_CORE = re.compile(
    r"(?:core|project|team|domain) context|project learnings|(?:project )?(?:overview|background|summary)$|my (?:role|domain)|"
    r"role$|identity$|stack$|tech stack|key facts"
)
_UPDATES = re.compile(
    r"(?:recent|team|latest) (?:updates?|work|activity)|updates?$|current work|session|work log|log$|archived summary"
)
_TYPED = re.compile(r"\[(core_context|learning|pattern|update)\]", re.IGNORECASE)
_SEED = re.compile(
    r"(?:initial setup complete|agent .{1,60} initialized and ready for work|(?:no|none) (?:learnings?|entries|updates)?.{0,12}yet"
    r"|none|n/a|tbd)\W*$",
    re.IGNORECASE,
)
_BEGINS_DATED = re.compile(r"[\W_]*\d{4}-")
_KEY_WORDS = 8


@dataclass(frozen=True)
class _Section:
    """Lines `start` to `stop` below `heading`; `name` is `learnings`, `core_context`, `log` or, above the first heading, `preamble`."""

    heading: Heading | None
    start: int
    stop: int
    name: str


@dataclass(frozen=True)
class _Piece:
    """One memory to be: the headings put above its `body`, and the lines it stands on. `whole` says that it is all its heading has."""

    section: _Section
    above: tuple[Heading, ...]
    start: int
    stop: int
    body: str
    kind: MemoryType
    whole: bool = False


def read_charter(text: str, into: Collector) -> None:
    """Takes the charter of the agent the folder is named after."""
    into.take(
        CharterRecord(
            path=into.path,
            line=1,
            source=into.place.source,
            agent=_folder_agent(into),
            title="",
            content=text.strip("\n"),
            created=None,
            place=into.place_for("charter", ""),
        )
    )


def spelled(folder: str, charter: str) -> str:
    """The agent's name as the first heading of its charter spells it: `# Ana — Tester`. Without it, the folder's name."""
    title = re.match(r"\s*#{1,3}[ \t]+(.+)", charter)
    name = re.search(rf"(?<![\w-]){re.escape(folder)}(?![\w-])", title[1], re.IGNORECASE) if title else None
    return name[0] if name else folder


def read_history(text: str, into: Collector) -> None:
    """Takes the memories of a history's text, whose line ends are `\\n`."""
    outlined = outline(text)
    for section in _sections(outlined):
        if section.name == "preamble":
            _take_preamble(outlined, section, into)
        elif section.name == "learnings":
            _take_learnings(outlined, section, into)
        elif section.name == "updates":
            _take_blocks(outlined, section, (), into)
        else:
            _take_whole(outlined, section, into)
    for index in sorted(outlined.comments):
        if index - 1 not in outlined.comments:
            into.skip("text", index + 1, outlined.lines[index], "comment")


def _folder_agent(into: Collector) -> str:
    return into.names.agent(into.place.agent) or UNKNOWN


def _sections(outlined: Outline) -> Iterator[_Section]:
    tops = [heading for heading in outlined.headings if heading.level <= 2]
    yield _Section(None, 0, tops[0].line - 1 if tops else len(outlined.lines), "preamble")
    for index, (heading, stop) in enumerate(extents(tops, len(outlined.lines))):
        name = _name(heading)
        # The first H1 is the file's title. What stands below it is a section only if it says so.
        is_title = index == 0 and heading.level == 1 and name in ("log", "learning")
        yield _Section(None if is_title else heading, heading.line, stop, "preamble" if is_title else name)


def _name(heading: Heading) -> str:
    word = bare(split_date(one_line(heading.text)).title)
    if _CORE.match(word):
        return "core_context"
    if _LEARNED.match(word):
        return "learnings"
    if _UPDATES.match(word):
        return "updates" if "update" in word else "log"
    return "log" if split_date(one_line(heading.text)).stamp else "learning"


# --- whole sections -----------------------------------------------------------------------------------------------


def _take_whole(outlined: Outline, section: _Section, into: Collector) -> None:
    if outlined.has_text(section.start, section.stop):
        kind = {"core_context": MemoryType.CORE_CONTEXT, "log": MemoryType.UPDATE}.get(
            section.name, MemoryType.LEARNING
        )
        above = (section.heading,) if section.heading and section.name != "core_context" else ()
        body = outlined.body(section.start, section.stop)
        _take(outlined, _Piece(section, above, section.start, section.stop, body, kind, whole=True), into)


def _take_preamble(outlined: Outline, section: _Section, into: Collector) -> None:
    """Above the first section: pushpins are updates, a motto or quote is no memory, other text is learned."""
    for block in _joined(outlined, section.start, section.stop):
        line = outlined.lines[block.start]
        if re.match(r"\s*(?:>|\*[^*].*\*$|_.*_$)", line):
            into.skip("text", block.start + 1, line, "preamble")
        else:
            _take_block(outlined, section, (), block, into)


# --- learnings ----------------------------------------------------------------------------------------------------


def _take_learnings(outlined: Outline, section: _Section, into: Collector) -> None:
    inner = outlined.headings_within(section.start, section.stop)
    stop = inner[0].line - 1 if inner else section.stop
    _take_blocks(outlined, _Section(section.heading, section.start, stop, section.name), (), into)
    for group in _parts(inner, section.stop):
        _take_part(outlined, section, group, into)


def _parts(headings: Sequence[Heading], stop: int) -> Iterator[tuple[Sequence[Heading], int]]:
    """Splits at the headings of the uppermost level: each part with the headings in it and where it ends."""
    starts = [0] if headings else []
    for index, heading in enumerate(headings):
        if index and heading.level <= headings[starts[-1]].level:
            starts.append(index)
    for start, end in zip(starts, [*starts[1:], len(headings)], strict=False):
        yield headings[start:end], headings[end].line - 1 if end < len(headings) else stop


def _take_part(
    outlined: Outline, section: _Section, part: tuple[Sequence[Heading], int], into: Collector
) -> None:
    headings, stop = part
    first = headings[0]
    inner = extents(headings, stop)
    if not any(outlined.has_text(heading.line, end) for heading, end in inner):
        return
    if _only_bullets(outlined, first.line, stop):
        for (heading, end), above in zip(inner, _chains(headings), strict=True):
            _take_blocks(outlined, _Section(section.heading, heading.line, end, section.name), above, into)
    else:
        kind = _typed(first) or MemoryType.LEARNING
        body = outlined.body(first.line, stop)
        _take(outlined, _Piece(section, (first,), first.line, stop, body, kind, whole=True), into)


def _chains(headings: Sequence[Heading]) -> Iterator[tuple[Heading, ...]]:
    """For each heading those that stand over it, and itself, outermost first."""
    chain: list[Heading] = []
    for heading in headings:
        chain = [above for above in chain if above.level < heading.level]
        chain.append(heading)
        yield tuple(chain)


def _only_bullets(outlined: Outline, start: int, stop: int) -> bool:
    kinds = {block.kind for block in _blocks(outlined, start, stop)}
    return kinds == {"bullet"}


def _typed(heading: Heading) -> MemoryType | None:
    """`### [learning] 2026-03-04`, as the product this one learned from writes its histories."""
    match = _TYPED.match(heading.text)
    return MemoryType(match[1].lower()) if match else None


# --- blocks -------------------------------------------------------------------------------------------------------


def _blocks(outlined: Outline, start: int, stop: int) -> list[Block]:
    """What is neither a rule nor a comment between two lines."""
    return [block for block in outlined.blocks_within(start, stop) if block.kind not in ("rule", "comment")]


def _joined(outlined: Outline, start: int, stop: int) -> list[Block]:
    """Blocks, a list joined to the paragraph that leads into it, and code, numbers and quotes to what stands above them."""
    joined: list[Block] = []
    for block in _blocks(outlined, start, stop):
        last = joined[-1] if joined else None
        if last and (block.kind == "other" or _leads(outlined, last, block)):
            joined[-1] = Block(last.kind, last.start, block.stop, block.list)
        else:
            joined.append(block)
    return joined


def _leads(outlined: Outline, last: Block, block: Block) -> bool:
    """Whether a bullet belongs to the text above it: no blank line between them, a colon before it, or its list was begun there."""
    if block.kind != "bullet" or last.kind != "text":
        return False
    colon = outlined.lines[last.stop - 1].rstrip(" *_").endswith(":")
    return block.list == last.list or (block.start == block.list and (block.start == last.stop or colon))


def _take_blocks(outlined: Outline, section: _Section, above: tuple[Heading, ...], into: Collector) -> None:
    for block in _joined(outlined, section.start, section.stop):
        _take_block(outlined, section, above, block, into)


def _take_block(
    outlined: Outline, section: _Section, above: tuple[Heading, ...], block: Block, into: Collector
) -> None:
    text = outlined.body(block.start, block.stop)
    if block.kind == "bullet":
        text = unbulleted(text)
    kind = MemoryType.UPDATE if _pinned(text) or section.name == "updates" else MemoryType.LEARNING
    _take(outlined, _Piece(section, above, block.start, block.stop, text, kind), into)


def _take(outlined: Outline, piece: _Piece, into: Collector) -> None:
    if _SEED.match(piece.body):
        into.skip("text", piece.start + 1, piece.body, "boilerplate")
        return
    heading = " / ".join(h.text for h in piece.above)
    above = "\n".join(h.raw for h in piece.above)
    top, nested = bullets(outlined, piece.start, piece.stop)
    into.take(
        MemoryRecord(
            path=into.path,
            line=piece.above[-1].line if piece.whole and piece.above else piece.start + 1,
            source=into.place.source,
            agent=_folder_agent(into),
            title=cut_title(one_line(heading)),
            content=f"{above}\n\n{piece.body}" if above else piece.body,
            created=_created(piece),
            place=into.place_for(
                "memory", heading if piece.whole and heading else f"{heading}\n{_key(piece.body)}"
            ),
            type=str(piece.kind),
            section=piece.section.name,
            bullets=top,
            nested=nested,
        )
    )


def _pinned(text: str) -> bool:
    return text.lstrip(" *_").startswith(PUSHPIN)


def _created(piece: _Piece) -> datetime | None:
    """The date the text itself begins with, else that of the nearest heading that has one."""
    begins = _BEGINS_DATED.match(piece.body) or _pinned(piece.body)
    if begins and (own := find_stamp(piece.body[:120].split("\n", 1)[0])):
        return own.at
    nearest = [*reversed(piece.above), piece.section.heading]
    stamps = (split_date(one_line(heading.text)).stamp for heading in nearest if heading)
    return next((stamp.at for stamp in stamps if stamp), None)


def _key(text: str) -> str:
    """What a text without a heading is recognised by when it changes: its bold beginning, or its first words."""
    bold = re.match(r"\s*\*\*(.{3,120}?)\*\*", text)
    return bold[1] if bold else " ".join(text.split(None, _KEY_WORDS)[:_KEY_WORDS])
