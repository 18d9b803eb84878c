"""What a decision or an inbox entry says of itself: title, author, date, status, rationale (SPEC 8). All of it is a proposal."""

from dataclasses import dataclass
from datetime import datetime

from memory.mirror.dates import DatedHeading, Stamp, find_stamp
from memory.mirror.reading.collecting import Collector
from memory.mirror.reading.labels import AUTHORS, RATIONALES, Label, first_value, labels
from memory.mirror.reading.markdown import Heading, Outline
from memory.mirror.wording import bare, cut_title, record_title
from memory.values import MAX_TEXT, MAX_TITLE

HEAD_LINES = 15
"""How far below its heading a record may still say who wrote it and when."""
DATES = ("date", "decided", "created", "timestamp", "decision date", "updated")


@dataclass(frozen=True)
class Span:
    """A record in a text: its heading, if it has one, and the 0-based lines of its body."""

    heading: Heading | None
    start: int
    stop: int

    @property
    def line(self) -> int:
        return self.heading.line if self.heading else self.start + 1


@dataclass(frozen=True)
class Facts:
    """`full_title` is the title before it was cut; `type` is whatever a Type label says, in lower case, seldom one of ours."""

    title: str
    full_title: str
    content: str
    authors: str | None
    date: str | None
    created: datetime | None
    status_text: str | None
    rationale: str
    type: str


def read_facts(outlined: Outline, span: Span, into: Collector) -> Facts:
    """Reads a record's span. A title over 300 characters is cut with a note, and the whole heading stays in the content."""
    found = list(labels(outlined, span.start, span.stop))
    head = [label for label in found if label.line < _head_stop(outlined, span)]
    title, dated, author = _title(span, into)
    date, created = _date(dated, first_value(head, *DATES))
    return Facts(
        title=cut_title(title),
        full_title=title,
        content=_content(outlined, span, title, into),
        authors=first_value(head, *AUTHORS) or author,
        date=date,
        created=created,
        status_text=first_value(found, "status"),
        rationale=_rationale(outlined, span, found),
        type=(first_value(head, "type") or "").lower(),
    )


def _head_stop(outlined: Outline, span: Span) -> int:
    """The head ends at the first heading that has text above it, or after some lines."""
    limit = min(span.stop, span.start + HEAD_LINES)
    for heading in outlined.headings_within(span.start, limit):
        if outlined.has_text(span.start, heading.line - 1):
            return heading.line - 1
    return limit


def _title(span: Span, into: Collector) -> tuple[str, DatedHeading, str | None]:
    if span.heading is None:
        name = into.inside.rsplit("/", 1)[-1]
        return f"Untitled ({name}, line {span.line})", DatedHeading("", None), None
    title, dated, author = record_title(span.heading.text, into.names)
    return title or f"Untitled ({into.inside.rsplit('/', 1)[-1]}, line {span.line})", dated, author


def _date(dated: DatedHeading, label: str | None) -> tuple[str | None, datetime | None]:
    """The heading's date comes first; a label that names the same day may say the hour."""
    labelled = find_stamp(label) if label else None
    if dated.stamp is None:
        raw = labelled.raw if labelled else label
        return raw, labelled.at if labelled else None
    exact = labelled if labelled and _same_day(labelled, dated.stamp) else dated.stamp
    return dated.stamp.raw, exact.at


def _same_day(one: Stamp, other: Stamp) -> bool:
    return one.raw[:10] == other.raw[:10] and len(one.raw) > len(other.raw)


def _content(outlined: Outline, span: Span, title: str, into: Collector) -> str:
    body = outlined.body(span.start, span.stop)
    if span.heading is None:
        return body
    if len(title) > MAX_TITLE:
        into.note(
            span.line, "title_cut", f"{len(title)} characters, at most {MAX_TITLE}; the content has it whole"
        )
        return f"{span.heading.raw}\n\n{body}".rstrip("\n")
    if not body.strip():
        into.note(span.line, "no_text", "the heading is all there is; it became the content")
        return span.heading.text or span.heading.raw
    return body


def _rationale(outlined: Outline, span: Span, found: list[Label]) -> str:
    labelled = next((label for label in found if label.name in RATIONALES), None)
    text = _labelled_text(outlined, span, labelled, found) if labelled else _rationale_part(outlined, span)
    return text if len(text) <= MAX_TEXT else ""


def _labelled_text(outlined: Outline, span: Span, label: Label, found: list[Label]) -> str:
    """The label's paragraph; when the label stands alone on its line, what follows it up to the next label or heading."""
    taken = {other.line for other in found if other.line > label.line}
    stops = [heading.line - 1 for heading in outlined.headings_within(label.line + 1, span.stop)]
    limit = min([*stops, *(line for line in taken), span.stop])
    lines = [label.value] if label.value else []
    for index in range(label.line + 1, limit):
        if index in outlined.rules or (lines and label.value and not outlined.lines[index].strip()):
            break
        lines.append(outlined.lines[index])
    return "\n".join(lines).strip("\n")


def _rationale_part(outlined: Outline, span: Span) -> str:
    inside = outlined.headings_within(span.start, span.stop)
    for index, heading in enumerate(inside):
        if bare(heading.text) in (*RATIONALES, "reasons"):
            stops = [later.line - 1 for later in inside[index + 1 :] if later.level <= heading.level]
            return outlined.body(heading.line, stops[0] if stops else span.stop)
    return ""
