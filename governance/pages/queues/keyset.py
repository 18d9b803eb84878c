"""Paging by place, not by number: a row that leaves a queue while somebody reads it moves no other row out of sight (SPEC 9).

A place is a row's time and id. The next page is "everything after this place", found by an index however far down it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from django.db.models import Model, Q, QuerySet

M = TypeVar("M", bound=Model)

PAGE_SIZE = 50
COUNTED = 1000
"""How many matching rows a page counts: beyond that, counting would cost more than reading the page."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: just after the row with this time and id."""

    at: datetime
    id: int

    def __str__(self) -> str:
        return f"{(self.at - _EPOCH) // _MICROSECOND}-{self.id}"

    @classmethod
    def parse(cls, written: str) -> Place | None:
        """The place an address names; None for anything that is none, which is read as the beginning."""
        at, _, row_id = written.partition("-")
        if not (at.isascii() and at.isdigit() and row_id.isascii() and row_id.isdigit()):
            return None
        if len(at) > 16 or len(row_id) > 18:
            return None
        return cls(_EPOCH + int(at) * _MICROSECOND, int(row_id))


@dataclass(frozen=True, slots=True)
class Slice(Generic[M]):
    """One page of a queue: its rows, how many rows match, at most COUNTED, and the places of its neighbours (empty where there is none)."""

    rows: list[M]
    total: int
    next: str
    is_first: bool
    has_uncounted: bool = False

    @property
    def has_others(self) -> bool:
        return bool(self.next) or not self.is_first


def slice_of(
    rows: QuerySet[M], *, after: str = "", newest_first: bool = False, size: int = PAGE_SIZE
) -> Slice[M]:
    """The page that begins after a place, ordered by creation and id. Two queries."""
    place = Place.parse(after)
    order = ("-created_at", "-pk") if newest_first else ("created_at", "pk")
    wanted = rows.filter(_beyond(place, newest_first)) if place else rows
    found = list(wanted.order_by(*order)[: size + 1])
    last = found[size - 1] if len(found) > size else None
    following = str(Place(last.created_at, last.pk)) if last is not None else ""  # type: ignore[attr-defined]
    total = rows.order_by()[: COUNTED + 1].count()
    return Slice(
        found[:size], min(total, COUNTED), following, is_first=place is None, has_uncounted=total > COUNTED
    )


def _beyond(place: Place, newest_first: bool) -> Q:
    """Rows past a place. The first condition repeats the second, in the form an index can begin at."""
    way = "lt" if newest_first else "gt"
    later = Q(**{f"created_at__{way}": place.at}) | Q(created_at=place.at, **{f"pk__{way}": place.id})
    return Q(**{f"created_at__{way}e": place.at}) & later
