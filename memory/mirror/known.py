"""What a project already has of the records that were read (SPEC 8): importing twice adds nothing, importing our own export adds nothing.

A record is known by its text, never by where the row stands today: a row that was approved or edited since is still the row that
the old file told of. Three ways lead there: the digest of an earlier import, the row that the marks of our own export name (the
text must be one the row has, or had in some revision), and for an inbox file an entry of the same slug and text.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from django.db import models

from memory.mirror.reading.records import EntryRecord, Proposal, Record
from memory.models import (
    AgentMemory,
    Decision,
    DecisionInboxEntry,
    ImportedRecord,
    LedgerEvent,
    Project,
    SessionContext,
)
from memory.values import looks_like_uuid

T = TypeVar("T")

TABLES: dict[str, type[models.Model]] = {
    "decision": Decision,
    "memory": AgentMemory,
    "entry": DecisionInboxEntry,
    "session": SessionContext,
}
"""The table of each kind of record that becomes a row of its own."""

_TEXTS = {
    "decision": ("content", "rationale"),
    "memory": ("content",),
    "entry": ("content", "rationale"),
    "session": ("summary",),
}
_CHUNK = 500

Text = tuple[str, ...]


class Earlier(NamedTuple):
    """An earlier import: its key, where it stood, which row of which ledger it was exported from, and what it became."""

    id: int
    at: str
    original_id: str
    rows: dict[str, int]


def original_id(record: Record) -> str:
    """`{project}:{id}` of the row a record was exported from; empty when its marks name none."""
    origin = record.origin
    if origin is None or origin.id is None or not looks_like_uuid(origin.project):
        return ""
    return f"{origin.project}:{origin.id}"


def digest_with_origin(record: Record) -> str:
    """What tells a record from another one of the same text that was exported from another row."""
    return hashlib.sha256(f"{record.digest} {original_id(record)}".encode()).hexdigest()


def text_of(record: Record) -> Text:
    """The text that marks hold, as the row has it."""
    if isinstance(record, Proposal):
        return (record.content, record.rationale if record.rationale_apart else "")
    return (record.content,)


@dataclass
class Known:
    """What the project has, looked up for all records at once: the number of statements does not depend on the project's size."""

    digests: dict[str, Earlier] = field(default_factory=dict)
    places: dict[str, Earlier] = field(default_factory=dict)
    slugs: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Every slug of the project, with the title and digest of text of entries whose slug was read."""
    origins: dict[tuple[str, str], list[Earlier]] = field(default_factory=dict)
    rows: dict[tuple[str, int], set[Text]] = field(default_factory=dict)
    project: str = ""

    def reason(self, record: Record) -> tuple[str, str] | None:
        """Why the record adds nothing, with what it repeats; None when it is new."""
        if row := self.row_with_text(record):
            return "already_known", f"{record.kind}:{row}"
        if earlier := self.digests.get(record.digest):
            own = original_id(record)
            if not own or earlier.original_id in ("", own):
                return "already_imported", earlier.at
            if same := self.digests.get(digest_with_origin(record)):
                return "already_imported", same.at
        if isinstance(record, EntryRecord) and self.slugs.get(record.slug) == entry_text(record):
            return "already_known", f"entry {record.slug}"
        return None

    def digest_for(self, record: Record) -> str:
        """The digest a new record is kept under."""
        return digest_with_origin(record) if record.digest in self.digests else record.digest

    def replaced(self, record: Record) -> Earlier | None:
        """The earlier record whose text this one replaces: of the same row, or at the same place."""
        of_row = self.origins.get((record.kind, original_id(record)))
        return of_row[-1] if of_row else self.places.get(record.place)

    def row_with_text(self, record: Record) -> int | None:
        """The row that a record's marks mean, when its text is one that row has or had."""
        text = text_of(record)
        return next(
            (row for row in self.rows_named_by(record) if text in self.rows.get((record.kind, row), ())), None
        )

    def rows_named_by(self, record: Record) -> set[int]:
        """The rows of this project that a record's marks may mean: the row itself, or what an earlier import made of it."""
        own = original_id(record)
        if not own or record.origin is None or record.origin.kind != record.kind:
            return set()
        rows = {earlier.rows[record.kind] for earlier in self.origins.get((record.kind, own), ())}
        if record.origin.project == self.project and record.origin.id is not None:
            rows.add(record.origin.id)
        return rows


def known_of(project: Project, records: Sequence[Record]) -> Known:
    """Looks up everything `records` may repeat."""
    known = Known(project=str(project.pk))
    _load_imports(known, project, records)
    _load_slugs(known, project, records)
    for kind in TABLES:
        exported = [record for record in records if record.kind == kind and known.rows_named_by(record)]
        _load_texts(known, project, kind, exported)
    return known


def entry_text(entry: EntryRecord) -> tuple[str, str]:
    """Title and digest of the text of an entry."""
    return entry.title, _sha(text_of(entry))


def _load_imports(known: Known, project: Project, records: Sequence[Record]) -> None:
    digests = {digest for record in records for digest in (record.digest, digest_with_origin(record))}
    earlier = ImportedRecord.objects.filter(project=project).order_by("pk")
    for chunk in chunks(sorted(digests)):
        known.digests.update((row.digest, _earlier(row)) for row in earlier.filter(digest__in=chunk))
    for chunk in chunks(sorted({record.place for record in records})):
        known.places.update((row.place, _earlier(row)) for row in earlier.filter(place__in=chunk))
    originals = {own for record in records if (own := original_id(record))}
    for chunk in chunks(sorted(originals)):
        for row in earlier.filter(original_id__in=chunk):
            found = _earlier(row)
            for kind in found.rows:
                known.origins.setdefault((kind, row.original_id), []).append(found)


def _earlier(row: ImportedRecord) -> Earlier:
    columns = {
        "decision": row.decision_id,
        "memory": row.memory_id,
        "entry": row.entry_id,
        "session": row.session_id,
    }
    rows = {kind: number for kind, number in columns.items() if number is not None}
    return Earlier(row.pk, str(row), row.original_id, rows)


def _load_slugs(known: Known, project: Project, records: Sequence[Record]) -> None:
    wanted = {record.slug for record in records if isinstance(record, EntryRecord)}
    if not wanted:
        return
    entries = DecisionInboxEntry.objects.filter(project=project)
    known.slugs.update((slug, ("", "")) for slug in entries.values_list("slug", flat=True).iterator())
    for chunk in chunks(sorted(wanted)):
        rows = entries.filter(slug__in=chunk).values_list("slug", "title", "content", "rationale")
        known.slugs.update(
            (slug, (title, _sha((content, rationale)))) for slug, title, content, rationale in rows
        )


def _load_texts(known: Known, project: Project, kind: str, exported: Sequence[Record]) -> None:
    """The texts of the rows that exported records name; earlier ones only where the current one is another."""
    numbers = {number for record in exported for number in known.rows_named_by(record)}
    for chunk in chunks(sorted(numbers)):
        rows = TABLES[kind]._default_manager.filter(project=project, pk__in=chunk)
        for number, *texts in rows.values_list("pk", *_TEXTS[kind]):
            known.rows[kind, number] = {tuple(texts)}
    stale = {
        number
        for record in exported
        if known.row_with_text(record) is None
        for number in known.rows_named_by(record)
        if (kind, number) in known.rows
    }
    for chunk in chunks(sorted(stale)):
        _load_revisions(known, project, kind, {f"{kind}:{number}": number for number in chunk})


def _load_revisions(known: Known, project: Project, kind: str, targets: dict[str, int]) -> None:
    """Every text a row ever had, as the ledger tells it."""
    states: dict[str, dict[str, Any]] = defaultdict(dict)
    events = LedgerEvent.objects.filter(project=project, target__in=list(targets)).order_by("number")
    for target, after in events.values_list("target", "after").iterator():
        states[target].update(json.loads(after) or {})
        text = tuple(states[target].get(name, "") for name in _TEXTS[kind])
        known.rows[kind, targets[target]].add(text)


def _sha(text: Text) -> str:
    return hashlib.sha256(json.dumps(text).encode()).hexdigest()


def chunks(items: Sequence[T], size: int = _CHUNK) -> Iterator[Sequence[T]]:
    """`items` in pieces that fit one statement."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
