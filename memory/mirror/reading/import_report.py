"""What came of an import (SPEC 8): everything that was found is either taken or skipped with a reason, in total and for every file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from memory.mirror.reading.report import FileCount, Note, Skipped, TreeReading, Unread


@dataclass(frozen=True, slots=True)
class Taken:
    """A record that became a row, or would become one in a dry run: then `id` is None.

    `replaces` is the place of the record whose text it replaces; `near` the place of one that differs in letter case only.
    """

    path: str
    line: int
    kind: str
    agent: str
    words: str
    id: int | None = None
    slug: str = ""
    replaces: str = ""
    near: str = ""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The report of SPEC 8. Raises ValueError when it would break found = taken + skipped, in total or for a file.

    Reasons of `skipped` beside those of the reading: `already_imported` (this very text was read before), `already_known` (the row
    it was exported from, or an entry of the same slug and text, is here), `charter_exists`, `decider_required`, `invalid`.
    """

    dry_run: bool
    root: str
    taken_items: tuple[Taken, ...]
    skipped_items: tuple[Skipped, ...]
    files: tuple[FileCount, ...]
    unread: tuple[Unread, ...]
    notes: tuple[Note, ...]
    not_selected: dict[str, int]
    fingerprint: str = ""
    """Of the rows that were written, or that a dry run would write: equal when they are equal."""

    def __post_init__(self) -> None:
        taken = Counter(item.path for item in self.taken_items)
        skipped = Counter(item.path for item in self.skipped_items)
        for file in self.files:
            if (file.taken, file.skipped) != (taken[file.path], skipped[file.path]):
                raise ValueError(f"{file.path}: the counts are not those of its records")
            if file.found != file.taken + file.skipped:
                raise ValueError(f"{file.path}: found {file.found}, taken and skipped make another number")
        if self.found != self.taken + self.skipped:
            raise ValueError("a record stands in no file that was read")

    @property
    def found(self) -> int:
        return sum(file.found for file in self.files)

    @property
    def taken(self) -> int:
        return len(self.taken_items)

    @property
    def skipped(self) -> int:
        return len(self.skipped_items)

    @property
    def taken_by_kind(self) -> dict[str, int]:
        return dict(sorted(Counter(item.kind for item in self.taken_items).items()))

    @property
    def skipped_by_reason(self) -> dict[str, int]:
        return dict(sorted(Counter(item.reason for item in self.skipped_items).items()))


def import_report(
    reading: TreeReading, taken: Sequence[Taken], skipped: Sequence[Skipped], *, dry_run: bool
) -> ImportReport:
    """The report of a reading, of whose records some were `taken` and the others `skipped`."""
    every = (*reading.skipped, *skipped)
    counts = Counter(item.path for item in skipped)
    return ImportReport(
        dry_run=dry_run,
        root=reading.root,
        taken_items=tuple(taken),
        skipped_items=tuple(sorted(every, key=lambda item: (item.path, item.line))),
        files=tuple(_recounted(file, counts[file.path]) for file in reading.files),
        unread=reading.unread,
        notes=reading.notes,
        not_selected=reading.not_selected,
    )


def _recounted(file: FileCount, skipped: int) -> FileCount:
    return replace(file, taken=file.taken - skipped, skipped=file.skipped + skipped)


def as_json(report: ImportReport) -> dict[str, Any]:
    """The report with the words of the API."""
    return {
        "dry_run": report.dry_run,
        "root": report.root,
        "found": report.found,
        "taken": report.taken,
        "skipped": report.skipped,
        "taken_by_kind": report.taken_by_kind,
        "skipped_by_reason": report.skipped_by_reason,
        "not_selected": [
            {"source": source, "count": count, "reason": "source_not_selected"}
            for source, count in report.not_selected.items()
        ],
        "files": [asdict(file) for file in report.files],
        "unread": [asdict(item) for item in report.unread],
        "notes": [asdict(note) for note in report.notes],
        "taken_items": [asdict(item) for item in report.taken_items],
        "skipped_items": [asdict(item) for item in report.skipped_items],
    }
