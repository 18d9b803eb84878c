"""How the inbox filled and emptied: entries waiting at the end of each day (SPEC 9)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, QuerySet
from django.db.models.functions import TruncDate
from django.utils import timezone

from memory.enums import EntryStatus
from memory.models import DecisionInboxEntry, Project

DAYS = 30


@dataclass(frozen=True, slots=True)
class WaitingDay:
    """How many entries were pending when the day ended, in the reader's zone."""

    day: date
    number: int


def waiting_by_day(project: Project, pending: int, now: datetime) -> list[WaitingDay]:
    """The last 30 days, oldest first. Counted backwards from what is `pending` now: two queries, whatever is stored."""
    today = timezone.localdate(now)
    since = timezone.make_aware(datetime.combine(today - timedelta(days=DAYS - 1), datetime.min.time()))
    entries = DecisionInboxEntry.objects.filter(project=project)
    came = _by_day(entries.filter(status__in=EntryStatus.values, created_at__gte=since), "created_at")
    decided = (EntryStatus.MERGED, EntryStatus.REJECTED)
    went = _by_day(entries.filter(status__in=decided, reviewed_at__gte=since), "reviewed_at")
    days, number = [], pending
    for back in range(DAYS):
        day = today - timedelta(days=back)
        days.append(WaitingDay(day, number))
        number += went[day] - came[day]
    return days[::-1]


def _by_day(entries: QuerySet[DecisionInboxEntry], moment: str) -> Counter[date]:
    days = entries.annotate(day=TruncDate(moment)).order_by().values("day").annotate(number=Count("pk"))
    return Counter(dict(days.values_list("day", "number")))
