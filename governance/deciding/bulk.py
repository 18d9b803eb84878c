"""Decisions over many rows at once: each is its own transaction, and each gets its own answer (SPEC 9, Inbox and Legacy)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memory.errors import DomainError

MOST = 200
"""Rows decided with one request; a page shows fewer."""


@dataclass(frozen=True, slots=True)
class Picked:
    """A row exactly as the reader saw it. Written `entry:12:3`: kind, id, revision."""

    kind: str
    id: int
    revision: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}:{self.revision}"

    @classmethod
    def parse(cls, written: str) -> Picked:
        """Raises ValueError for anything else."""
        kind, row_id, revision = written.split(":")
        if not (row_id.isascii() and row_id.isdigit() and revision.isascii() and revision.isdigit()):
            raise ValueError(written)
        if max(len(row_id), len(revision)) > 18:
            raise ValueError(written)
        return cls(kind, int(row_id), int(revision))


@dataclass(frozen=True, slots=True)
class Failed:
    """A row that was not decided, and why."""

    picked: Picked
    error: DomainError


@dataclass(frozen=True, slots=True)
class Report:
    """What became of each picked row."""

    done: tuple[Picked, ...]
    failed: tuple[Failed, ...]


def each(picked: Iterable[Picked], verb: Callable[[Picked], object]) -> Report:
    """Apply a verb to each row; one that is refused stops none of the others."""
    done, failed = [], []
    for row in picked:
        try:
            verb(row)
        except DomainError as error:
            failed.append(Failed(row, error))
        else:
            done.append(row)
    return Report(tuple(done), tuple(failed))
