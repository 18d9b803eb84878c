"""The legacy workbench: imported rows, file by file, given a type and approved or refused (SPEC 6 and 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse, QueryDict
from django.views.decorators.http import require_POST, require_safe

from governance.deciding.bulk import Picked
from governance.pages.forms.memories import LegacyFilterForm, TrustedBulkForm
from governance.pages.queues.decisions import decisions_of
from governance.pages.queues.keyset import Slice
from governance.pages.queues.legacy import (
    DECISION,
    LegacyFilters,
    groups,
    waiting_decisions,
    waiting_memories,
)
from governance.pages.queues.memories import memories_of
from governance.pages.views.access import Access, PageRequest, project_page
from governance.pages.views.board import Board, Name, kept
from governance.pages.views.replies import page
from governance.pages.views.rows import Row
from governance.pages.views.trusted import CHOICES, decide_picked, drawn
from governance.people.policies import Action
from memory.models import Project

LIST = "governance/legacy.html"


@require_safe
@project_page(Action.READ)
def legacy(request: PageRequest, access: Access) -> HttpResponse:
    """All groups with their progress, or the rows of one group."""
    context = listing(access, request.GET, request.get_full_path())
    return page(request, access, LIST, context, section="legacy", fragment="results")


def listing(
    access: Access, query: QueryDict, here: str, without: frozenset[Name] = frozenset()
) -> dict[str, Any]:
    """What the workbench shows for an address: the groups, and the rows of one when it names a kind."""
    found = groups(access.project)
    form = LegacyFilterForm(query)
    context = {
        "groups": found, "waiting": sum(group.waiting for group in found), "total": sum(group.total for group in found), "done": sum(group.done for group in found),
        "form": form, "here": here, "kept": kept(query), "grouped": "kind" not in query, **CHOICES,
    }  # fmt: skip
    if context["grouped"]:
        return context
    rows: Slice[Any] = Slice([], 0, "", is_first=True)
    if form.is_valid():
        rows = _rows(access.project, form.filters(), query.get("after", ""), without)
        context |= _group(found, form.filters())
    picked = query.get("pick") == "all"
    return context | {"slice": rows, "rows": [drawn(access, row, picked=picked) for row in rows.rows]}


def _rows(project: Project, filters: LegacyFilters, after: str, without: frozenset[Name]) -> Slice[Any]:
    hidden = frozenset(pk for kind, pk in without if kind == filters.kind)
    find = waiting_decisions if filters.kind == DECISION else waiting_memories
    return find(project, filters, after=after, without=hidden)


def _group(found: Sequence[Any], filters: LegacyFilters) -> dict[str, Any]:
    """The group that is open, the next one that waits, and the types its rows may get."""
    same = [g for g in found if (g.kind, g.path, g.agent_id) == (filters.kind, filters.path, filters.agent)]
    others = [g for g in found if g.waiting and g not in same]
    types = CHOICES["decision_types" if filters.kind == DECISION else "memory_types"]
    return {
        "group": same[0] if same else None, "next_group": others[0] if others else None,
        "kind": filters.kind, "types": types, "q": filters.text,
    }  # fmt: skip


def picked_rows(access: Access, picked: Sequence[Picked]) -> dict[Name, Row]:
    found: dict[Name, Row] = {}
    for kind, rows in (("decision", decisions_of(access.project)), ("memory", memories_of(access.project))):
        ids = [row.id for row in picked if row.kind == kind]
        if ids:
            found |= {(kind, pk): row for pk, row in rows.in_bulk(ids).items()}
    return found


BOARD = Board(section="legacy", template=LIST, listing=listing, find=picked_rows)


@require_POST
@project_page(Action.DECIDE)
def bulk(request: PageRequest, access: Access) -> HttpResponse:
    """Approve the picked rows, with type, importance and tags set alike, or refuse them all for one reason."""
    form = TrustedBulkForm(request.POST)
    done = "approved" if request.POST.get("do") == form.APPROVE else "refused"
    return BOARD.decide(request, access, form, lambda picked: decide_picked(access, picked, form), done)
