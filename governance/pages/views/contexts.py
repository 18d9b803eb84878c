"""Context: the block exactly as a run would be told it, what it is made of, and why every other row is out (SPEC 9, Context)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from governance.pages.forms.contexts import CHILD_RUN, UNNAMED, ContextForm
from governance.pages.queues.contexts import (
    composition,
    earlier_receipts,
    place_of,
    receipt_of,
    rows_told,
    written,
)
from governance.pages.queues.inbox import agents_of
from governance.pages.views.access import Access, PageRequest, project_page
from governance.pages.views.replies import page
from governance.people.policies import Action
from memory.compiling.compiler import CompiledContext, compile_context, compile_decisions
from memory.compiling.envelope import tokens
from memory.compiling.explanation import Place, explain_after
from memory.errors import OverBudget

CONTEXT = "governance/context.html"
ROWS = 50


@require_safe
@project_page(Action.READ)
def context(request: PageRequest, access: Access) -> HttpResponse:
    """One agent's context as it stands now."""
    form = context_form(request, access)
    shown: dict[str, Any] = {"form": form, "query": request.GET.urlencode(), "unnamed": UNNAMED}
    if form.is_valid():
        shown |= {"wanted": form.wanted, "is_child": form.wanted == CHILD_RUN, **compiled_parts(access, form)}
    return page(request, access, CONTEXT, shown, section="context", fragment="results")


def context_form(request: PageRequest, access: Access) -> ContextForm:
    return ContextForm(request.GET, agents=agents_of(access.project), project=access.project)


def compiled_parts(access: Access, form: ContextForm) -> dict[str, Any]:
    """The compiled block and what it is made of, or why there is none; and what was told before."""
    earlier = [] if form.wanted == UNNAMED else earlier_receipts(access.project, form.agent_id)
    try:
        compiled = compiled_for(access, form)
    except OverBudget as refusal:
        return {
            "failure": refusal,
            "required": tokens(refusal.required),
            "budget": tokens(refusal.budget),
            "earlier": earlier,
        }
    parts = composition(access.project, compiled)
    reasons = Counter(row.reason for row in compiled.omitted)
    return {"compiled": compiled, "parts": parts, "reasons": sorted(reasons.items()), "earlier": earlier}


def compiled_for(access: Access, form: ContextForm) -> CompiledContext:
    if form.wanted == CHILD_RUN:
        return compile_decisions(access.project, form.limits())
    return compile_context(access.project, form.wanted, form.limits())


@require_safe
@project_page(Action.READ)
def explain(request: PageRequest, access: Access) -> HttpResponse:
    """Every row that could stand in one agent's context, each in it or out for one reason; page by page."""
    form = context_form(request, access)
    query = request.GET.copy()
    query.pop("after", None)
    after = place_of(request.GET.get("after", ""))
    shown: dict[str, Any] = {
        "form": form, "kept": f"{query.urlencode()}&" if query else "", "back": query.urlencode(),
        "is_first": after is None,
    }  # fmt: skip
    if form.is_valid():
        shown |= _explained(access, form, after)
    return page(request, access, "governance/context_rows.html", shown, section="context", fragment="results")


def _explained(access: Access, form: ContextForm, after: Place | None) -> dict[str, Any]:
    agent = form.wanted if form.wanted != CHILD_RUN else UNNAMED
    try:
        found = explain_after(access.project, agent, form.limits(), after, ROWS)
    except OverBudget as refusal:
        return {"failure": refusal, "required": tokens(refusal.required), "budget": tokens(refusal.budget)}
    return {"rows": found.rows, "next": written(found.next) if found.next else "", "wanted": form.wanted}


@require_safe
@project_page(Action.READ)
def receipt(request: PageRequest, access: Access, receipt_id: int) -> HttpResponse:
    """What one run was told at one moment, and what became of those rows since."""
    found = receipt_of(access.project, receipt_id)
    rows = rows_told(found)
    shown = {"receipt": found, "rows": rows, "changed": sum(1 for row in rows if row.now)}
    return page(request, access, "governance/receipt.html", shown, section="runs")
