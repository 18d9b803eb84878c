"""A ledger file to decisions: which heading starts a record is decided for each file (SPEC 8, `squad-format-survey`).

The level alone does not tell. A heading is *marked* when it has a date, or when the lines right below it say who decided or when.
The level that most marked headings have is the file's record level. Then, from top to bottom:

* a marked heading starts a record, unless it stands deeper than the open record, off the record level and without a leading date;
* a heading that is only a date, or that has marked headings below it and no text of its own, is a group: its records may take its date;
* a usual part (`Context`, `Decision` ...) belongs to the open record whatever its level, because inbox files are pasted in whole (B02);
* a heading without any mark at the level of the open record is a record with an unknown date (B04); a deeper one is a part of it;
  In a file that puts a rule line above its records, one without such a line is a part as well;
* `Active Decisions` and the like are group headings; `Governance` is furniture, text and all.

Text that belongs to no record is reported as skipped.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import Enum

from memory.enums import DecisionType
from memory.mirror.dates import DatedHeading, split_date
from memory.mirror.names import UNKNOWN
from memory.mirror.reading.collecting import Collector
from memory.mirror.reading.labels import SIGNATURES, labels
from memory.mirror.reading.markdown import Heading, Outline, extents, outline
from memory.mirror.reading.proposals import Facts, Span, read_facts
from memory.mirror.reading.records import DecisionRecord
from memory.mirror.wording import announces_record, is_container, is_furniture, is_part, one_line

SIGNED_WITHIN = 8
"""Lines below a heading in which a label makes it the head of a record."""


class Role(Enum):
    RECORD = "record"
    PART = "part"
    GROUP = "group"
    TITLE = "title"
    FURNITURE = "furniture"


@dataclass(frozen=True)
class Head:
    """A heading and what it shows of itself. `stop` is the 0-based line of the next heading."""

    heading: Heading
    stop: int
    dated: DatedHeading
    signed: bool
    part: bool
    has_text: bool
    author: str | None
    below_rule: bool

    @property
    def level(self) -> int:
        return self.heading.level

    @property
    def leads_with_date(self) -> bool:
        return self.dated.place == "start" and not self.dated.bare

    @property
    def marked(self) -> bool:
        """Has a date or an author of its own."""
        if self.leads_with_date:
            return True
        return not self.part and (self.signed or self.dated.place == "end" or self.author is not None)


@dataclass
class _Walk:
    """The state while going down a file. `reach` is the level a heading without marks must have, or stay above, to end the record."""

    heads: list[Head]
    level: int | None
    marked_below: list[bool]
    fallback: int | None
    parted: bool
    record: int | None = None
    reach: int = 0
    furniture: int | None = None
    groups: list[tuple[int, str | None]] = field(default_factory=list)

    def role(self, index: int) -> Role:
        role = self._judge(index)
        self._step(self.heads[index], role)
        return role

    def group_date(self) -> str | None:
        return next((date for _, date in reversed(self.groups) if date), None)

    def _judge(self, index: int) -> Role:
        head = self.heads[index]
        if is_furniture(head.heading.text) and not head.marked:
            return Role.FURNITURE
        if head.dated.bare:
            return self._bare_date(index)
        if head.marked:
            return self._marked(index)
        return self._inside(index) if self.record is not None else self._outside(index)

    def _bare_date(self, index: int) -> Role:
        """A date alone groups what stands below it; with text and nothing below, it is all the heading a record has."""
        head = self.heads[index]
        below = index + 1 < len(self.heads) and self.heads[index + 1].level > head.level
        return Role.RECORD if head.has_text and not below else Role.GROUP

    def _marked(self, index: int) -> Role:
        head = self.heads[index]
        if not head.has_text and self.marked_below[index]:
            return Role.GROUP
        starts = (
            head.leads_with_date
            or self.record is None
            or head.level <= self.reach
            or head.level == self.level
        )
        return Role.RECORD if starts else Role.PART

    def _inside(self, index: int) -> Role:
        """A heading without marks while a record is open."""
        head = self.heads[index]
        parted = self.parted and head.below_rule and head.level == self.level and not head.part
        if head.level > self.reach and not parted:
            return Role.PART
        if is_container(head.heading.text):
            return Role.GROUP
        if head.part:
            return Role.PART
        if self.marked_below[index]:
            return Role.GROUP
        if self.parted and not head.below_rule:
            return Role.PART
        return Role.RECORD if head.level == self.record or head.level == 1 else Role.PART

    def _outside(self, index: int) -> Role:
        """A heading without marks while no record is open."""
        head = self.heads[index]
        if self.furniture is not None and head.level > self.furniture:
            return Role.PART
        if index == 0 and head.level == 1 and not announces_record(head.heading.text):
            return Role.TITLE
        if is_container(head.heading.text) or self.marked_below[index]:
            return Role.GROUP
        if self.level is None and self.fallback is not None and head.level != self.fallback:
            return Role.GROUP if head.level < self.fallback else Role.PART
        if head.part and not self.groups:
            return Role.PART
        shallow = self.level is not None and head.level < self.level
        return Role.GROUP if shallow and not head.has_text else Role.RECORD

    def _step(self, head: Head, role: Role) -> None:
        if role is Role.PART:
            if self.record is not None and head.level <= self.reach:
                # A pasted file has its own levels: from here on they count as parts of this record.
                self.reach = head.level - 1
            return
        self.furniture = head.level if role is Role.FURNITURE else None
        self.groups = [group for group in self.groups if group[0] < head.level]
        self.record = head.level if role is Role.RECORD else None
        self.reach = head.level
        if role is Role.GROUP:
            self.groups.append((head.level, head.dated.stamp.raw if head.dated.stamp else None))


@dataclass(frozen=True)
class _Piece:
    """A stretch of the file that is one record, or text outside of records."""

    role: Role
    span: Span
    group_date: str | None = None


def read_ledger(text: str, into: Collector) -> None:
    """Takes the decisions of a ledger's text, whose line ends are `\\n`."""
    outlined = outline(text)
    for piece in _pieces(outlined, into):
        if piece.role is Role.RECORD:
            take_decision(outlined, piece.span, into, piece.group_date)
        else:
            _skip_text(outlined, piece, into)


def take_decision(outlined: Outline, span: Span, into: Collector, group_date: str | None = None) -> None:
    facts = read_facts(outlined, span, into)
    if not outlined.has_text(span.start, span.stop) and not (facts.date or facts.authors):
        # A heading alone is a line of a table of contents, unless it says when or who.
        into.skip("decision", span.line, facts.title, "empty")
        return
    grouped = split_date(group_date).stamp if group_date else None
    if facts.date is None and grouped:
        facts = replace(facts, created=grouped.at)
    into.take(_decision(span, facts, into, group_date if facts.date is None else None))


def _decision(span: Span, facts: Facts, into: Collector, group_date: str | None) -> DecisionRecord:
    raw = span.heading.raw if span.heading else ""
    return DecisionRecord(
        path=into.path,
        line=span.line,
        source=into.place.source,
        agent=into.names.agent(facts.authors) or UNKNOWN,
        title=facts.title,
        content=facts.content,
        created=facts.created,
        place=into.place_for("decision", raw or facts.title),
        heading_raw=raw,
        heading_level=span.heading.level if span.heading else 0,
        authors=facts.authors,
        date=facts.date,
        group_date=group_date,
        status_text=facts.status_text,
        rationale=facts.rationale,
        type=facts.type if facts.type in DecisionType.values else "",
    )


_REASONS = {
    Role.TITLE: "preamble",
    Role.GROUP: "not_a_record",
    Role.PART: "not_a_record",
    Role.FURNITURE: "boilerplate",
}


def _skip_text(outlined: Outline, piece: _Piece, into: Collector) -> None:
    first = outlined.first_text(piece.span.start, piece.span.stop)
    if first is not None:
        into.skip("text", first + 1, outlined.lines[first], _REASONS[piece.role])


def _pieces(outlined: Outline, into: Collector) -> list[_Piece]:
    heads = _heads(outlined, into)
    level = _record_level(heads)
    walk = _Walk(heads, level, _marked_below(heads), _fallback_level(heads), _parted(heads, level))
    first = heads[0].heading.line - 1 if heads else len(outlined.lines)
    pieces = [_beginning(outlined, first, walk)]
    for index, head in enumerate(heads):
        role = walk.role(index)
        if role is Role.PART and walk.record is not None:
            last = pieces.pop()
            pieces.append(replace(last, span=replace(last.span, stop=head.stop)))
        elif role is Role.PART:
            # Not below any record: the heading itself is text that belongs to nothing.
            reason = Role.FURNITURE if walk.furniture is not None else Role.PART
            pieces.append(_Piece(reason, Span(None, head.heading.line - 1, head.stop)))
        else:
            pieces.append(_Piece(role, Span(head.heading, head.heading.line, head.stop), walk.group_date()))
    return pieces


def _beginning(outlined: Outline, stop: int, walk: _Walk) -> _Piece:
    """The text above the first heading. With an author or a date it is a record that lost its heading; what follows is its parts."""
    first = outlined.first_text(0, stop)
    if first is not None and _signed(outlined, first, stop):
        walk.record = walk.reach = 1
        return _Piece(Role.RECORD, Span(None, first, stop))
    return _Piece(Role.TITLE, Span(None, 0, stop))


def _heads(outlined: Outline, into: Collector) -> list[Head]:
    return [
        _head(outlined, heading, stop, into)
        for heading, stop in extents(outlined.headings, len(outlined.lines))
    ]


def _head(outlined: Outline, heading: Heading, stop: int, into: Collector) -> Head:
    dated = split_date(one_line(heading.text))
    return Head(
        heading=heading,
        stop=stop,
        dated=dated,
        signed=_signed(outlined, heading.line, stop),
        part=is_part(dated.title or heading.text),
        has_text=outlined.has_text(heading.line, stop),
        author=into.names.split_author(dated.title)[1],
        below_rule=_below_rule(outlined, heading),
    )


def _below_rule(outlined: Outline, heading: Heading) -> bool:
    index = heading.line - 2
    while index >= 0 and not outlined.lines[index].strip():
        index -= 1
    return index in outlined.rules


def _signed(outlined: Outline, start: int, stop: int) -> bool:
    names = {label.name for label in labels(outlined, start, min(stop, start + SIGNED_WITHIN))}
    return bool(names & SIGNATURES) or {"what", "why"} <= names


def _record_level(heads: list[Head]) -> int | None:
    """The level most marked headings have; of two, the upper one."""
    levels = Counter(head.level for head in heads if head.marked)
    return min(levels, key=lambda level: (-levels[level], level)) if levels else None


def _parted(heads: list[Head], level: int | None) -> bool:
    """The file puts a rule above its records: then a heading without mark and without rule does not start one."""
    records = [head for head in heads[1:] if head.marked and head.level == level]
    return len(records) >= 3 and sum(head.below_rule for head in records) >= 0.8 * len(records)


def _fallback_level(heads: list[Head]) -> int | None:
    """Without any mark: the uppermost level whose headings have text and are neither furniture nor parts."""
    candidates = [
        head.level
        for index, head in enumerate(heads)
        if head.has_text
        and not (index == 0 and head.level == 1)
        and not (head.part or is_furniture(head.heading.text) or is_container(head.heading.text))
    ]
    return min(candidates) if candidates else None


def _marked_below(heads: list[Head]) -> list[bool]:
    """For each heading: is there a marked one below it, before the next heading of its own level or above? Linear in time."""
    below = [False] * len(heads)
    # Levels at which a heading to the left can still see a marked one: what a heading hides counts as standing at its level.
    seen: set[int] = set()
    for index in range(len(heads) - 1, -1, -1):
        level = heads[index].level
        below[index] = any(other > level for other in seen)
        visible = heads[index].marked or any(other >= level for other in seen)
        seen = {other for other in seen if other < level} | ({level} if visible else set())
    return below
