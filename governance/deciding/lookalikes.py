"""Rows that say nearly the same: a mark for the reviewer, never an automatic merge (SPEC 9, Inbox).

A list compares titles and openings with the newest rows only, so that its cost does not grow with what is stored. One entry alone is
compared more widely: PostgreSQL with its trigram extension finds the candidates among all rows.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any

from django.db import connection, transaction
from django.db.models import BooleanField, FloatField, Func, QuerySet, Value
from django.db.models.functions import Substr, Upper

from memory.enums import EntryStatus
from memory.models import Decision, DecisionInboxEntry, Project

NEWEST_DECISIONS, NEWEST_PENDING, NEWEST_REJECTED = 250, 150, 100
"""How many active decisions and undecided or rejected entries a list is compared with, the newest first."""
NEAREST = 50
"""How many more one entry alone is compared with, by title, among all rows."""
NEAR = 0.6
"""Share of trigrams in common from which two titles are near."""
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
    """For each entry of a list by its id, what it resembles among the newest rows. Three queries, none for an empty list."""
    if not entries:
        return {}
    library = _Library(_known_newest(project))
    return {entry.pk: library.alike(entry) for entry in entries}


def lookalikes_of(project: Project, entry: DecisionInboxEntry) -> list[Lookalike]:
    """What one entry resembles among the newest rows and, where PostgreSQL has trigrams, by its title among all. At most six queries."""
    nearest = _known_nearest(project, entry.title) if _has_trigrams() else ()
    known = {(row.kind, row.id): row for row in (*_known_newest(project), *nearest)}
    return _Library(list(known.values())).alike(entry)


def _known_newest(project: Project) -> list[_Known]:
    return [
        *_known("decision", _newest(_decisions(project), NEWEST_DECISIONS)),
        *_known("entry", _newest(_entries(project, EntryStatus.PENDING), NEWEST_PENDING)),
        *_known("entry", _newest(_entries(project, EntryStatus.REJECTED), NEWEST_REJECTED)),
    ]


def _known_nearest(project: Project, title: str) -> list[_Known]:
    undecided = _entries(project, EntryStatus.PENDING, EntryStatus.REJECTED)
    with transaction.atomic(), connection.cursor() as cursor:
        # For this transaction only: the index then leaves out at once what is less near.
        cursor.execute("SELECT set_config('pg_trgm.similarity_threshold', %s, true)", [str(NEAR)])
        return [
            *_known("decision", _nearest(_decisions(project), title)),
            *_known("entry", _nearest(undecided, title)),
        ]


def _decisions(project: Project) -> QuerySet[Decision]:
    return Decision.objects.active().filter(project=project)


def _entries(project: Project, *statuses: EntryStatus) -> QuerySet[DecisionInboxEntry]:
    return DecisionInboxEntry.objects.filter(project=project, status__in=statuses)


def _newest(rows: Any, number: int) -> Any:
    """One status at a time, so that an index gives the newest without sorting all."""
    return rows.order_by("-created_at", "-pk")[:number]


@cache
def _has_trigrams() -> bool:
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")
        return cursor.fetchone() is not None


def _nearest(rows: Any, title: str) -> Any:
    """The rows whose titles share most trigrams with this one, found by the index of the text search."""
    both = (Upper("title"), Upper(Value(title)))
    near = Func(*both, template="%(expressions)s", arg_joiner=" %% ", output_field=BooleanField())
    nearness = Func(*both, function="similarity", output_field=FloatField())
    return rows.filter(near).order_by(nearness.desc(), "-pk")[:NEAREST]


def _known(kind: str, rows: QuerySet[Decision] | QuerySet[DecisionInboxEntry]) -> Iterable[_Known]:
    columns = rows.annotate(opening=Substr("content", 1, _OPENING)).values_list(
        "pk", "title", "status", "opening"
    )
    for pk, title, status, opening in columns:
        yield _Known(kind, pk, title, status, _words(title), _words(opening))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


class _Index:
    """Finds the texts that can be alike without comparing them all.

    Put the words of every text in one order, the rarest first. Two texts that share as much as ALIKE have a word in common among
    their first few: were it not so, too few words would be left to share. Only those few are looked up.
    """

    def __init__(self, texts: Sequence[frozenset[str]]) -> None:
        self._texts = texts
        self._spread = Counter(word for words in texts for word in words)
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, words in enumerate(texts):
            for word in self._first(words):
                self._places[word].append(place)

    def _first(self, words: frozenset[str]) -> list[str]:
        rarest = sorted(words, key=lambda word: (self._spread[word], word))
        return rarest[: len(words) - ceil(ALIKE * len(words)) + 1]

    def alike(self, words: frozenset[str]) -> Iterator[tuple[int, float]]:
        """The places of all texts that share at least ALIKE, each with its share."""
        met = {place for word in self._first(words) for place in self._places.get(word, ())}
        shares = ((place, _share(self._texts[place], words)) for place in met)
        return ((place, share) for place, share in shares if share >= ALIKE)


class _Library:
    """All candidates, by the words of their titles and of their openings."""

    def __init__(self, known: Sequence[_Known]) -> None:
        self._known = known
        self._titles = _Index([row.title_words for row in known])
        self._openings = _Index([row.text_words for row in known])

    def alike(self, entry: DecisionInboxEntry) -> list[Lookalike]:
        """The nearest few, nearest first."""
        best: dict[int, float] = {}
        openings = self._openings.alike(_words(entry.content[:_OPENING]))
        for place, share in (*self._titles.alike(_words(entry.title)), *openings):
            best[place] = max(share, best.get(place, 0.0))
        near = [
            Lookalike(row.kind, row.id, row.title, row.status, share)
            for row, share in ((self._known[place], share) for place, share in best.items())
            if not _is(row, entry)
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
