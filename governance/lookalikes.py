"""Rows that say nearly the same: a mark for the reviewer, never an automatic merge (SPEC 9, Inbox).

A list compares titles and openings with the newest rows only, so that its cost does not grow with what is stored. One entry alone is
compared more widely: PostgreSQL with its trigram extension finds the candidates among all rows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from django.db import connection
from django.db.models import F, FloatField, Func, QuerySet, TextField, Value
from django.db.models.functions import Greatest, Substr

from memory.enums import EntryStatus
from memory.models import Decision, DecisionInboxEntry, Project

NEWEST = 400
"""Active decisions, and as many pending or rejected entries, that a list is compared with."""
ALIKE = 0.6
"""Share of words in common (of title or opening) from which two rows look alike."""
SHOWN = 3
_OPENING = 240
_WORD = re.compile(r"\w{2,}")


@dataclass(frozen=True, slots=True)
class Lookalike:
    """A row that says nearly the same. `kind` is `decision` or `entry`; `share` of words in common, 0 to 1."""

    kind: str
    id: int
    title: str
    status: str
    share: float

    @property
    def percent(self) -> int:
        return round(self.share * 100)


@dataclass(frozen=True, slots=True)
class _Known:
    """A candidate with its words."""

    kind: str
    id: int
    title: str
    status: str
    title_words: frozenset[str]
    text_words: frozenset[str]


def lookalikes_in_list(project: Project, entries: Sequence[DecisionInboxEntry]) -> dict[int, list[Lookalike]]:
    """For each entry of a list by its id, what it resembles among the newest rows. Two queries, none for an empty list."""
    if not entries:
        return {}
    known = [
        *_known("decision", _decisions(project).order_by("-created_at", "-pk")[:NEWEST]),
        *_known("entry", _entries(project).order_by("-created_at", "-pk")[:NEWEST]),
    ]
    index = _index(known)
    return {entry.pk: _alike(entry, known, index) for entry in entries}


def lookalikes_of(project: Project, entry: DecisionInboxEntry) -> list[Lookalike]:
    """What one entry resembles: among all rows where PostgreSQL has trigrams, else among the newest. Two queries."""
    if not _has_trigrams():
        return lookalikes_in_list(project, [entry])[entry.pk]
    known = [
        *_known("decision", _nearest(_decisions(project), entry)),
        *_known("entry", _nearest(_entries(project), entry)),
    ]
    return _alike(entry, known, _index(known))


def _decisions(project: Project) -> QuerySet[Decision]:
    return Decision.objects.active().filter(project=project)


def _entries(project: Project) -> QuerySet[DecisionInboxEntry]:
    undecided = (EntryStatus.PENDING, EntryStatus.REJECTED)
    return DecisionInboxEntry.objects.filter(project=project, status__in=undecided)


@cache
def _has_trigrams() -> bool:
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")
        return cursor.fetchone() is not None


def _nearest(
    rows: QuerySet[Decision] | QuerySet[DecisionInboxEntry], entry: DecisionInboxEntry
) -> QuerySet[Decision] | QuerySet[DecisionInboxEntry]:
    nearness = Greatest(_similarity("title", entry.title), _similarity("content", entry.content[:_OPENING]))
    return rows.annotate(nearness=nearness).filter(nearness__gt=ALIKE / 2).order_by("-nearness", "-pk")[:50]


def _similarity(field: str, text: str) -> Func:
    known = Substr(F(field), 1, _OPENING) if field == "content" else F(field)
    return Func(
        known, Value(text, output_field=TextField()), function="similarity", output_field=FloatField()
    )


def _known(kind: str, rows: QuerySet[Decision] | QuerySet[DecisionInboxEntry]) -> Iterable[_Known]:
    columns = rows.annotate(opening=Substr("content", 1, _OPENING)).values_list(
        "pk", "title", "status", "opening"
    )
    for pk, title, status, opening in columns:
        yield _Known(kind, pk, title, status, _words(title), _words(opening))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _index(known: Sequence[_Known]) -> dict[str, list[int]]:
    """Which candidates hold a word, by their place in the list."""
    index: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(known):
        for word in row.title_words | row.text_words:
            index[word].append(place)
    return index


def _alike(
    entry: DecisionInboxEntry, known: Sequence[_Known], index: dict[str, list[int]]
) -> list[Lookalike]:
    title, text = _words(entry.title), _words(entry.content[:_OPENING])
    # Words that stand in very many rows find nobody in particular.
    met = set[int]().union(*(index.get(word, [])[: NEWEST // 2] for word in title | text))
    near = [
        Lookalike(row.kind, row.id, row.title, row.status, share)
        for row in map(known.__getitem__, met)
        if (share := max(_share(row.title_words, title), _share(row.text_words, text))) >= ALIKE
        and not _is(row, entry)
    ]
    return sorted(near, key=lambda row: (-row.share, row.kind, -row.id))[:SHOWN]


def _is(row: _Known, entry: DecisionInboxEntry) -> bool:
    """Whether the candidate is the entry itself, or what it became."""
    return (row.kind, row.id) in (("entry", entry.pk), ("decision", entry.decision_id))


def _share(some: frozenset[str], others: frozenset[str]) -> float:
    """Words in common against all words (Jaccard); fewer than two words are no ground to compare on."""
    one, other = len(some), len(others)
    # A page makes tens of thousands of comparisons. Of sets this different in size the share could not reach ALIKE.
    if one < 2 or other < 2 or one < ALIKE * other or other < ALIKE * one:
        return 0.0
    common = len(some & others)
    return common / (one + other - common)
