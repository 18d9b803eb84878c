"""The inbox: agents propose, a person decides, on exactly the text that was on the screen (SPEC 6 and 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse, QueryDict
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from governance.deciding.bulk import Picked
from governance.deciding.entries import merge_entry, reject_entry
from governance.deciding.flags import flags_of
from governance.deciding.gate import NO_CORRECTIONS
from governance.deciding.impact import impact_of
from governance.deciding.lookalikes import lookalikes_in_list, lookalikes_of
from governance.pages.forms.deciding import ApproveForm, CorrectionsForm, RefuseForm
from governance.pages.forms.inbox import BulkForm, InboxFilterForm
from governance.pages.queues.inbox import agents_of, entries_of, entry_of
from governance.pages.queues.inbox import inbox as inbox_slice
from governance.pages.queues.keyset import Slice
from governance.pages.views.access import Access, PageRequest, project_page
from governance.pages.views.board import Board, Name, kept
from governance.pages.views.desk import Desk
from governance.pages.views.replies import is_partial, page
from governance.pages.views.rows import WaitingRow, sentence_for
from governance.people.policies import Action
from memory.enums import EntryStatus, EntryType, Importance
from memory.errors import Conflict, Invalid
from memory.models import AgentMemory, Decision, DecisionInboxEntry

LIST = "governance/inbox.html"
ENTRY = "governance/inbox_entry.html"
CHOICES = {"types": EntryType.values, "importances": Importance.values}


@require_safe
@project_page(Action.READ)
def inbox(request: PageRequest, access: Access) -> HttpResponse:
    """The entries of one status, filtered."""
    context = listing(access, request.GET, request.get_full_path())
    return page(request, access, LIST, context, section="inbox", fragment="results")


def listing(
    access: Access, query: QueryDict, here: str, without: frozenset[Name] = frozenset()
) -> dict[str, Any]:
    """What the list shows for an address; filters that cannot be give an empty list and say why."""
    form = InboxFilterForm(query, agents=agents_of(access.project))
    found: Slice[DecisionInboxEntry] = Slice([], 0, "", is_first=True)
    if form.is_valid():
        found = inbox_slice(
            access.project,
            form.filters(),
            after=query.get("after", ""),
            now=timezone.now(),
            without=frozenset(pk for _, pk in without),
        )
    alike = lookalikes_in_list(access.project, found.rows) if access.may_decide else {}
    rows = [
        WaitingRow(entry, flags_of(entry.title, entry.content, entry.rationale), alike.get(entry.pk, ()),
                   picked=query.get("pick") == "all")
        for entry in found.rows
    ]  # fmt: skip
    return {
        "form": form, "slice": found, "rows": rows, "here": here, "kept": kept(query), "status": status_of(query),
        "statuses": EntryStatus.values, "is_filtered": bool(set(form.changed_data) - {"status"}), **CHOICES,
    }  # fmt: skip


def status_of(query: QueryDict) -> str:
    status = query.get("status", "")
    return status if status in EntryStatus.values else EntryStatus.PENDING.value


def full_row(access: Access, found: DecisionInboxEntry, **given: Any) -> WaitingRow:
    """An entry with everything known about it."""
    flags = flags_of(found.title, found.content, found.rationale)
    return WaitingRow(found, flags, lookalikes_of(access.project, found), **given)


DESK = Desk(
    section="inbox", load=entry_of, draw=full_row, choices=CHOICES, row_template="components/_entry.html",
    done_template="components/_entry_done.html", page_template=ENTRY,
)  # fmt: skip


@require_safe
@project_page(Action.READ)
def entry(request: PageRequest, access: Access, entry_id: int) -> HttpResponse:
    """One entry alone."""
    return DESK.show(request, access, full_row(access, entry_of(access.project, entry_id)))


@require_safe
@project_page(Action.DECIDE)
def impact(request: PageRequest, access: Access, entry_id: int) -> HttpResponse:
    """What merging would change in each agent's context, with the corrections as they stand in the form."""
    found = entry_of(access.project, entry_id)
    form = CorrectionsForm(request.GET)
    corrections = form.corrections() if form.is_valid() else NO_CORRECTIONS
    row = WaitingRow(found) if is_partial(request) else full_row(access, found)
    context: dict[str, Any] = {"row": row, "here": "", **CHOICES}
    try:
        context["impact"] = impact_of(
            access.project,
            lambda: merge_entry(
                project_id=access.project.pk, actor=access.actor, entry_id=entry_id,
                revision=found.revision, corrections=corrections, now=timezone.now(),
            ),
            found.agent.name,
        )  # fmt: skip
    except (Conflict, Invalid) as refusal:
        context["impact_problem"] = sentence_for(refusal)
    return page(request, access, ENTRY, context, section="inbox", fragment="impact")


@require_POST
@project_page(Action.DECIDE)
def merge(request: PageRequest, access: Access, entry_id: int) -> HttpResponse:
    """Merge one entry at the revision that was read, with the reviewer's corrections."""
    form = ApproveForm(request.POST)

    def verb() -> str:
        row = merge_entry(
            project_id=access.project.pk, actor=access.actor, entry_id=entry_id,
            revision=form.cleaned_data["revision"], corrections=form.corrections(), now=timezone.now(),
        )  # fmt: skip
        return f"Merged as {named(row)}."

    return DESK.attempt(request, access, entry_id, form, verb)


def named(row: Decision | AgentMemory) -> str:
    kind = row.type.replace("_", " ")
    return f"{kind} decision {row.pk}" if isinstance(row, Decision) else f"{kind} memory {row.pk}"


@require_POST
@project_page(Action.DECIDE)
def reject(request: PageRequest, access: Access, entry_id: int) -> HttpResponse:
    """Reject one entry with a reason its agent can read."""
    form = RefuseForm(request.POST)

    def verb() -> str:
        reject_entry(
            project_id=access.project.pk, actor=access.actor, entry_id=entry_id,
            reason=form.cleaned_data["reason"], revision=form.cleaned_data["revision"], now=timezone.now(),
        )  # fmt: skip
        return "Rejected."

    return DESK.attempt(request, access, entry_id, form, verb)


def picked_entries(access: Access, picked: Sequence[Picked]) -> dict[Name, DecisionInboxEntry]:
    found = entries_of(access.project).in_bulk([row.id for row in picked])
    return {("entry", pk): entry for pk, entry in found.items()}


BOARD = Board(section="inbox", template=LIST, listing=listing, find=picked_entries)


@require_POST
@project_page(Action.DECIDE)
def bulk(request: PageRequest, access: Access) -> HttpResponse:
    """Merge the picked entries as they stand, or reject them all for one reason."""
    form = BulkForm(request.POST)
    merging = request.POST.get("do") == BulkForm.MERGE

    def verb(picked: Picked) -> object:
        given: dict[str, Any] = {
            "project_id": access.project.pk, "actor": access.actor, "entry_id": picked.id,
            "revision": picked.revision, "now": timezone.now(),
        }  # fmt: skip
        if merging:
            return merge_entry(**given)
        return reject_entry(**given, reason=form.cleaned_data["reason"])

    return BOARD.decide(request, access, form, verb, "merged" if merging else "rejected")
