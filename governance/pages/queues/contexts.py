"""What a compiled context is made of, in words: its rows, what is left out, and what runs were told before (SPEC 9, Context)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, OuterRef, QuerySet
from django.db.models.functions import Left, Length

from governance.pages.charts import Bars, bars
from governance.pages.queues import keyset
from memory.compiling.compiler import CompiledContext, Included
from memory.compiling.explanation import Place
from memory.enums import Layer, OmitReason
from memory.errors import NotFound
from memory.ledger.changes import KINDS
from memory.models import AgentMemory, ContextReceipt, Decision, Project, SessionContext, SnapshotRow

BEGINNING = 120
LISTED = 100
"""Rows left out that the page names; the page with every row goes through all of them."""
EARLIER = 10
"""Receipts named beside a context."""

Name = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Words:
    """How a row is recognised: a decision's title, or how a memory or a session begins."""

    text: str
    agent: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """A row that stands in the block. `tokens` is its share of the budget."""

    kind: str
    id: int
    words: Words
    layer: Layer
    revision: int
    tokens: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that does not, and why."""

    kind: str
    id: int
    words: Words
    reason: OmitReason


UNKNOWN = Words("")


def words_of(project: Project, names: Iterable[Name]) -> dict[Name, Words]:
    """The words of decisions, memories and sessions. At most three queries, however many rows."""
    wanted: dict[str, list[int]] = {}
    for kind, row_id in names:
        wanted.setdefault(kind, []).append(row_id)
    words: dict[Name, Words] = {}
    for model, column, author in _WORDS:
        kind = KINDS[model]
        if kind not in wanted:
            continue
        rows = model._default_manager.filter(project=project, pk__in=wanted[kind])
        columns = ("agent__name", "type") if author else ()
        for row_id, text, *rest in rows.values_list("pk", Left(column, BEGINNING), *columns):
            words[kind, row_id] = Words(text, *rest)
    return words


_WORDS: tuple[tuple[Any, str, bool], ...] = (
    (Decision, "title", True),
    (AgentMemory, "content", True),
    (SessionContext, "focus_area", False),
)


@dataclass(frozen=True, slots=True)
class Composition:
    """A compiled context taken apart. `left_out` names the first rows only, those that the limits leave out before all others."""

    told: tuple[Told, ...]
    left_out: tuple[LeftOut, ...]
    bars: Bars
    """Characters of each layer and of the envelope, against the budget."""


def composition(project: Project, compiled: CompiledContext) -> Composition:
    """The rows of a context with their words. At most three queries."""
    names = [(row.kind, row.id) for row in compiled.included]
    omitted = compiled.omitted[:LISTED]
    words = words_of(project, [*names, *((row.kind, row.id) for row in omitted)])
    told = tuple(
        Told(
            row.kind,
            row.id,
            words.get((row.kind, row.id), UNKNOWN),
            row.layer,
            row.revision,
            -(-row.characters // 4),
        )
        for row in compiled.included
    )
    left_out = tuple(
        LeftOut(row.kind, row.id, words.get((row.kind, row.id), UNKNOWN), row.reason) for row in omitted
    )
    return Composition(told, left_out, _bars(compiled))


def _bars(compiled: CompiledContext) -> Bars:
    layers = [(layer.label, _characters(compiled.layer(layer))) for layer in Layer]
    envelope = compiled.characters - sum(value for _, value in layers)
    return bars([("envelope", max(envelope, 0)), *layers], compiled.policy.budget)


def _characters(rows: Sequence[Included]) -> int:
    return sum(row.characters for row in rows)


# Every row, one by one


def written(place: Place) -> str:
    """A place as an address says it."""
    return f"{place.kind}-{keyset.Place(place.at, place.id)}"


def place_of(text: str) -> Place | None:
    """The place an address names; None for anything that is none, which is read as the beginning."""
    kind, _, rest = text.partition("-")
    place = keyset.Place.parse(rest)
    known = kind in {KINDS[model] for model, _, _ in _WORDS}
    return Place(place.at, kind, place.id) if place is not None and known else None


# What was told before


def earlier_receipts(project: Project, agent_id: int | None) -> list[Any]:
    """The newest receipts of one agent's runs, or of child runs, each with the size of its block. One query."""
    mine: dict[str, Any] = (
        {"decisions_only": True} if agent_id is None else {"run__agent_id": agent_id, "decisions_only": False}
    )
    rows = SnapshotRow.objects.filter(snapshot=OuterRef("snapshot")).order_by().values("snapshot")
    found: QuerySet[Any] = (
        ContextReceipt.objects.filter(project=project, **mine)
        .select_related("run__agent", "snapshot")
        .defer("snapshot__block", "run__agent__charter")
        .annotate(
            characters=Length("snapshot__block"), rows=rows.annotate(number=Count("pk")).values("number")
        )
        .order_by("-at", "-pk")
    )
    return list(found[:EARLIER])


def receipt_of(project: Project, receipt_id: int) -> ContextReceipt:
    """One receipt with its run, agent and block; raises NotFound. One query."""
    receipts = ContextReceipt.objects.select_related("run__agent", "snapshot").filter(
        project=project, pk=receipt_id
    )
    receipt = receipts.first()
    if receipt is None:
        raise NotFound
    return receipt


@dataclass(frozen=True, slots=True)
class ToldRow:
    """A row of a receipt's block: at which revision it was told, and what became of it since (empty when nothing did)."""

    kind: str
    id: int
    words: str
    layer: Layer
    revision: int
    now: str


def rows_told(receipt: ContextReceipt) -> list[ToldRow]:
    """What stood in a receipt's block, in the order of the layers. One query; none when nothing was told."""
    if receipt.snapshot_id is None:
        return []
    rows = SnapshotRow.objects.filter(snapshot_id=receipt.snapshot_id).select_related(
        "decision", "memory", "session"
    )
    return [_told_row(row) for row in rows.order_by("layer", "pk")]


def _told_row(row: SnapshotRow) -> ToldRow:
    found: Any = row.decision or row.memory or row.session
    kind = KINDS[type(found)]
    words = {"decision": "title", "memory": "content", "session": "focus_area"}[kind]
    text = getattr(found, words)[:BEGINNING]
    return ToldRow(kind, found.pk, text, Layer(row.layer), row.revision, _since(found, row.revision))


def _since(found: Any, revision: int) -> str:
    """What became of a row since it was told at a revision, in a few words."""
    if isinstance(found, Decision) and found.status != "active":
        return found.status
    if isinstance(found, AgentMemory) and found.is_retired:
        return "retired"
    if isinstance(found, SessionContext) and found.ended_at is not None:
        return "ended"
    return f"changed, now revision {found.revision}" if found.revision != revision else ""
