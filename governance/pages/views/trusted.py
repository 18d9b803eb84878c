"""Approving and putting away decisions and memories: shared by their pages and by the legacy workbench (SPEC 6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.utils import timezone

from governance.deciding.bulk import Picked
from governance.deciding.decisions import approve_decision, archive_decision
from governance.deciding.flags import flags_of
from governance.deciding.memories import approve_memory, retire_memory
from governance.pages.forms.memories import TrustedBulkForm
from governance.pages.views.access import Access
from governance.pages.views.rows import Row, WaitingRow, texts_of
from memory.enums import DecisionType, Importance, MemoryType
from memory.errors import NotFound
from memory.models import AgentMemory, Decision

CHOICES = {
    "decision_types": DecisionType.values,
    "memory_types": MemoryType.values,
    "importances": Importance.values,
}


def drawn(access: Access, row: Row, **given: Any) -> WaitingRow:
    """A row with its flags; those of an approved text were weighed when it was approved."""
    plain = WaitingRow(row, **given)
    return replace(plain, flags=flags_of(*texts_of(row))) if plain.awaits_approval else plain


def decide_picked(access: Access, picked: Picked, form: TrustedBulkForm) -> object:
    """Approve or put away one of many picked rows, at the revision that was read. Raises what the verbs raise."""
    verbs = {"decision": _decide_decision, "memory": _decide_memory}
    if picked.kind not in verbs:
        raise NotFound
    return verbs[picked.kind](access, picked, form)


def _decide_decision(access: Access, picked: Picked, form: TrustedBulkForm) -> Decision:
    given: dict[str, Any] = {**_caller(access), "decision_id": picked.id}
    if form.cleaned_data["do"] == form.APPROVE:
        corrections = form.corrections("decision")
        return approve_decision(**given, revision=picked.revision, corrections=corrections)
    return archive_decision(**given, reason=form.cleaned_data["reason"], revision=picked.revision)


def _decide_memory(access: Access, picked: Picked, form: TrustedBulkForm) -> AgentMemory:
    given: dict[str, Any] = {**_caller(access), "memory_id": picked.id}
    if form.cleaned_data["do"] == form.APPROVE:
        corrections = form.corrections("memory")
        return approve_memory(**given, revision=picked.revision, corrections=corrections)
    return retire_memory(**given, reason=form.cleaned_data["reason"], revision=picked.revision)


def _caller(access: Access) -> dict[str, Any]:
    return {"project_id": access.project.pk, "actor": access.actor, "now": timezone.now()}
