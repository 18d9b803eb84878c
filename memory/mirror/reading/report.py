"""What came of reading a tree (SPEC 8): found = taken + skipped, in total and for every file; nothing is left out in silence."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from memory.mirror.reading.records import Record

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Skipped:
    """A piece that was found and not taken. `kind` is a record's kind, or `text` for what is no record; `words` are its first words.

    `reason`: `source_not_selected`, `duplicate` (detail: the first one), `too_long`, `empty`, `boilerplate`, `preamble`,
    `comment`, `not_a_record`.
    """

    path: str
    line: int
    source: str
    kind: str
    words: str
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Note:
    """Something a person should know about a file; what it speaks of was taken."""

    path: str
    line: int
    code: str
    detail: str = ""


@dataclass(frozen=True)
class Unread:
    """A file that was not read. `reason`: `not_memory`, `template`, `log`, `not_markdown`, `other_root`, `symlink`, `not_a_file`,
    `too_large`, `too_many_lines`, `unreadable`."""

    path: str
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class FileCount:
    """One file that was read. `found` is counted while reading, apart from what became of it."""

    path: str
    source: str
    found: int
    taken: int
    skipped: int


@dataclass(frozen=True)
class TreeReading:
    """A whole tree. Raises ValueError when it would break the invariant of the report."""

    root: str
    records: tuple[Record, ...]
    skipped: tuple[Skipped, ...]
    unread: tuple[Unread, ...]
    notes: tuple[Note, ...]
    files: tuple[FileCount, ...]
    not_selected: dict[str, int] = field(default_factory=dict)
    """For each source that was not chosen: how many records it holds."""

    def __post_init__(self) -> None:
        taken = Counter(record.path for record in self.records)
        skipped = Counter(item.path for item in self.skipped)
        for count in self.files:
            if (count.taken, count.skipped) != (taken[count.path], skipped[count.path]):
                raise ValueError(f"{count.path}: the counts are not those of its records")
            if count.found != count.taken + count.skipped:
                raise ValueError(f"{count.path}: found {count.found}, taken and skipped make another number")
        if self.found != len(self.records) + len(self.skipped):
            raise ValueError("the counts leave out a record: it stands in no file that was read")

    @property
    def found(self) -> int:
        return sum(count.found for count in self.files)

    @property
    def taken(self) -> int:
        return len(self.records)

    def of(self, kind: type[R]) -> tuple[R, ...]:
        """The records of one kind, in the order they were read."""
        return tuple(record for record in self.records if isinstance(record, kind))


def not_selected(skipped: Iterable[Skipped]) -> dict[str, int]:
    """How many records each source holds that was not chosen; loose text is not counted."""
    return dict(
        Counter(
            item.source for item in skipped if item.reason == "source_not_selected" and item.kind != "text"
        )
    )
