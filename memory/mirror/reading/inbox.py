"""An inbox file to entries; a single decision file to one decision (SPEC 8).

One file is one entry. Only a file whose dated headings come one after the other, with nothing signed above them, gives several.
The type of an entry is the front matter's when it is one of ours. Otherwise it is `technical`: like an imported decision, it is
never compiled until a person gives it a type, here while merging.
"""

import hashlib
import re
from dataclasses import replace

from memory.enums import EntryType, Importance
from memory.mirror.dates import find_stamp, split_date
from memory.mirror.names import UNKNOWN
from memory.mirror.reading.collecting import Collector
from memory.mirror.reading.labels import SIGNATURES, labels
from memory.mirror.reading.ledgers import take_decision
from memory.mirror.reading.markdown import FrontMatter, Heading, Outline, extents, front_matter, outline
from memory.mirror.reading.proposals import Facts, Span, read_facts
from memory.mirror.reading.records import EntryRecord
from memory.mirror.wording import cut_title, one_line
from memory.values import MAX_SLUG, MAX_TITLE

DEFAULT_TYPE = EntryType.TECHNICAL
_OWNERS = "copilot-directive"
_AGENT_KEYS = ("agent", "author", "author1", "by", "owner", "created_by")
_TITLE_KEYS = ("title", "post_title", "subject")
_DATE_KEYS = ("date", "created", "post_date", "timestamp")
_HELD = {*_AGENT_KEYS[:1], *_TITLE_KEYS[:1], "slug", "type", "tags", "importance"}
"""Front matter keys whose values a row holds; a file with others keeps its front matter in the text."""
_OURS = {"agent", "slug", "type", "title"}
_RATIONALE_LABEL = "**Rationale:**"


def read_inbox(text: str, into: Collector) -> None:
    """Takes the entries of an inbox file's text, whose line ends are `\\n`."""
    matter = front_matter(text.split("\n"))
    # The lines of the front matter stay as blank lines, so that line numbers are those of the file.
    outlined = outline(_blanked(text, matter.stop) if matter else text)
    spans = _spans(outlined, into, matter)
    for number, span in enumerate(spans, start=1):
        into.take(_entry(outlined, span, into, matter, number))


def read_document(text: str, into: Collector) -> None:
    """Takes the one decision of a file that holds no other."""
    outlined = outline(text)
    for span in _whole(outlined, into):
        take_decision(outlined, span, into)


def _blanked(text: str, stop: int) -> str:
    return "\n" * stop + "\n".join(text.split("\n")[stop:])


def _spans(outlined: Outline, into: Collector, matter: FrontMatter | None) -> list[Span]:
    if matter and set(matter.values) >= _OURS:
        return [Span(None, matter.stop, len(outlined.lines))]
    dated = [h for h in outlined.headings if h.level <= 4 and _leads_with_date(h)]
    if len(dated) < 2 or matter or _signed_above(outlined, dated[0]):
        return _whole(outlined, into)
    if (first := outlined.first_text(0, dated[0].line - 1)) is not None:
        into.skip("text", first + 1, outlined.lines[first], "preamble")
    return [Span(heading, heading.line, stop) for heading, stop in extents(dated, len(outlined.lines))]


def _leads_with_date(heading: Heading) -> bool:
    found = split_date(one_line(heading.text))
    return found.place == "start" and not found.bare


def _signed_above(outlined: Outline, heading: Heading) -> bool:
    return any(label.name in SIGNATURES for label in labels(outlined, 0, heading.line - 1))


def _whole(outlined: Outline, into: Collector) -> list[Span]:
    """The file as one record. Its first heading is the title when nothing but comments stands above it."""
    first = outlined.first_text(0, len(outlined.lines))
    if first is None:
        into.skip("entry" if into.place.reader == "inbox" else "decision", 1, into.inside, "empty")
        return []
    heading = next((heading for heading in outlined.headings if heading.line == first + 1), None)
    return [Span(heading, first + 1 if heading else first, len(outlined.lines))]


def _entry(
    outlined: Outline, span: Span, into: Collector, matter: FrontMatter | None, number: int
) -> EntryRecord:
    facts = read_facts(outlined, span, into)
    raw = span.heading.raw if span.heading else ""
    slug = _slug(into, matter, span.line, number)
    agent, authors = _agent(into, facts, matter)
    facts = _with_matter(facts, span, matter, slug, into) if matter else _titled(facts, span, slug)
    entry = EntryRecord(
        path=into.path,
        line=1 if number == 1 and matter else span.line,
        source=into.place.source,
        agent=agent,
        title=facts.title,
        content=facts.content,
        created=facts.created,
        place=into.place_for("entry", raw if number > 1 else ""),
        heading_raw=raw,
        heading_level=span.heading.level if span.heading else 0,
        authors=authors,
        date=facts.date,
        status_text=facts.status_text,
        rationale=facts.rationale,
        type=facts.type if facts.type in EntryType.values else str(DEFAULT_TYPE),
        slug=slug,
    )
    return _with_own_fields(entry, matter, into) if matter else entry


def _titled(facts: Facts, span: Span, slug: str) -> Facts:
    """Without any heading the title is the slug, as for an entry that is submitted without one (SPEC 6)."""
    return facts if span.heading else replace(facts, title=slug)


def _with_matter(facts: Facts, span: Span, matter: FrontMatter, slug: str, into: Collector) -> Facts:
    """Front matter that names a title leaves the first heading in the text; values no row holds stay there too."""
    title = one_line(matter.text(*_TITLE_KEYS))
    stamp = find_stamp(matter.text(*_DATE_KEYS))
    content = facts.content
    if title and span.heading and facts.full_title == facts.title and one_line(facts.title) != title:
        content = f"{span.heading.raw}\n\n{content}"
    if len(title) > MAX_TITLE or set(matter.values) - _HELD:
        content = f"---\n{matter.raw}\n---\n\n{content}"
    if len(title) > MAX_TITLE:
        into.note(1, "title_cut", f"{len(title)} characters, at most {MAX_TITLE}; the content has it whole")
    return replace(
        facts,
        title=cut_title(title) if title else (facts.title if span.heading else slug),
        content=content,
        date=facts.date or (stamp.raw if stamp else None),
        created=facts.created or (stamp.at if stamp else None),
        status_text=facts.status_text or matter.text("status") or None,
    )


def _with_own_fields(entry: EntryRecord, matter: FrontMatter, into: Collector) -> EntryRecord:
    """The fields an export of ours, or of the product this one learned from, writes."""
    kind, importance = matter.text("type").lower(), matter.text("importance").lower()
    if tags := matter.values.get("tags"):
        entry = replace(entry, tags=into.tags(entry.line, tags))
    if kind in EntryType.values:
        entry = replace(entry, type=kind)
    if importance in Importance.values:
        entry = replace(entry, importance=importance)
    return _with_rationale_apart(entry) if set(matter.values) >= _OURS else entry


def _with_rationale_apart(entry: EntryRecord) -> EntryRecord:
    """In a file with all four keys the rationale follows the text, after its label."""
    content, label, rationale = entry.content.rpartition(_RATIONALE_LABEL)
    if not label or (content and not content.endswith("\n")) or not content.strip():
        return entry
    return replace(entry, content=content.rstrip("\n"), rationale=rationale.strip(), rationale_apart=True)


def _agent(into: Collector, facts: Facts, matter: FrontMatter | None) -> tuple[str, str | None]:
    """Who proposes: the front matter, an agent of the tree that signs the text, the first word of the file's name if that is an
    agent of the tree, then whoever signs. A `copilot-directive` is the owner's word."""
    names = into.names
    stated = matter.text(*_AGENT_KEYS) if matter else ""
    authors = stated or facts.authors
    signed = names.agent(authors)
    stem = _stem(into.inside)
    by_name = names.known(re.split(r"[-_.]", stem, maxsplit=1)[0])
    if stem.startswith(_OWNERS):
        return signed or "owner", authors
    if signed and (stated or names.known(signed)):
        return signed, authors
    return by_name or signed or UNKNOWN, authors


def _stem(inside: str) -> str:
    return inside.rsplit("/", 1)[-1].removesuffix(".md")


def _slug(into: Collector, matter: FrontMatter | None, line: int, number: int) -> str:
    """The file's name in kebab-case; the front matter's slug when it is one. The second entry of a file ends in `-2`."""
    wanted = (matter.text("slug") if matter else "") or _stem(into.inside)
    slug = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")
    suffix = f"-{number}" if number > 1 else ""
    if not slug or len(slug) + len(suffix) > MAX_SLUG:
        # Two long names may begin alike: a piece of their digest keeps them apart.
        tail = hashlib.sha256(wanted.encode("utf-8", "replace")).hexdigest()[:8]
        slug = f"{slug[: MAX_SLUG - 16].strip('-') or 'entry'}-{tail}"
    if slug != wanted:
        into.note(line, "slug_changed", f"{wanted} became {slug}")
    return slug + suffix
