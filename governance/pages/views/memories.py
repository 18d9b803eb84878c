"""Memory: what agents remember, and the requests to tell other agents too (SPEC 6 and 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpResponse, QueryDict
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from governance.deciding.bulk import Picked
from governance.deciding.memories import approve_memory, retire_memory
from governance.pages.forms.deciding import ApproveForm, RefuseForm
from governance.pages.forms.fields import with_line_ends_of
from governance.pages.forms.memories import EditMemoryForm, MemoryFilterForm, TrustedBulkForm
from governance.pages.queues.inbox import agents_of
from governance.pages.queues.keyset import Slice
from governance.pages.queues.memories import ALL, VIEWS, memories_of, memory_of
from governance.pages.queues.memories import memories as memories_slice
from governance.pages.views.access import Access, PageRequest, project_page
from governance.pages.views.board import Board, Name, kept
from governance.pages.views.desk import Desk
from governance.pages.views.editing import Editor
from governance.pages.views.past import steps_of, told, told_sentence
from governance.pages.views.replies import page
from governance.pages.views.trusted import CHOICES, decide_picked, drawn
from governance.people.policies import Action
from memory.models import AgentMemory
from memory.recording import edit_memory

LIST = "governance/memory.html"
EDIT = "governance/memory_edit.html"


def past_of(access: Access, memory: AgentMemory) -> dict[str, Any]:
    """What the page of one memory shows beyond the memory."""
    return {"steps": steps_of(access.project, memory), "told": told(access.project, memory)}


DESK = Desk(
    section="memory", load=memory_of, draw=drawn, choices=CHOICES, row_template="components/_trusted.html",
    done_template="components/_trusted_done.html", page_template="governance/memory_row.html", beyond=past_of,
)  # fmt: skip


def listing(
    access: Access, query: QueryDict, here: str, without: frozenset[Name] = frozenset()
) -> dict[str, Any]:
    """What the list shows for an address; filters that cannot be give an empty list and say why."""
    form = MemoryFilterForm(query, agents=agents_of(access.project))
    found: Slice[AgentMemory] = Slice([], 0, "", is_first=True)
    if form.is_valid():
        hidden = frozenset(pk for _, pk in without)
        found = memories_slice(access.project, form.filters(), after=query.get("after", ""), without=hidden)
    picked = query.get("pick") == "all"
    return {
        "form": form, "slice": found, "rows": [drawn(access, row, picked=picked) for row in found.rows],
        "kept": kept(query), "here": here, "view": query.get("view") or ALL, "views": VIEWS,
        "is_filtered": bool(set(form.changed_data) - {"view"}), "types": CHOICES["memory_types"], **CHOICES,
    }  # fmt: skip


def picked_memories(access: Access, picked: Sequence[Picked]) -> dict[Name, AgentMemory]:
    found = memories_of(access.project).in_bulk([row.id for row in picked])
    return {("memory", pk): memory for pk, memory in found.items()}


BOARD = Board(section="memory", template=LIST, listing=listing, find=picked_memories)


@require_safe
@project_page(Action.READ)
def memories(request: PageRequest, access: Access) -> HttpResponse:
    """What agents remember, or what asks to cross to others, filtered."""
    context = listing(access, request.GET, request.get_full_path())
    return page(request, access, LIST, context, section="memory", fragment="results")


@require_POST
@project_page(Action.DECIDE)
def bulk(request: PageRequest, access: Access) -> HttpResponse:
    """Approve or retire the picked memories."""
    form = TrustedBulkForm(request.POST)
    done = "approved" if request.POST.get("do") == form.APPROVE else "retired"
    return BOARD.decide(request, access, form, lambda picked: decide_picked(access, picked, form), done)


@require_safe
@project_page(Action.READ)
def memory(request: PageRequest, access: Access, memory_id: int) -> HttpResponse:
    """One memory with its history and who was told it."""
    return DESK.show(request, access, drawn(access, memory_of(access.project, memory_id)))


@require_POST
@project_page(Action.DECIDE)
def approve(request: PageRequest, access: Access, memory_id: int) -> HttpResponse:
    """Approve a memory at the revision that was read; type, importance and tags may be corrected."""
    form = ApproveForm(request.POST)

    def verb() -> str:
        approve_memory(
            project_id=access.project.pk, actor=access.actor, memory_id=memory_id,
            revision=form.cleaned_data["revision"], corrections=form.corrections(), now=timezone.now(),
        )  # fmt: skip
        return f"Approved memory {memory_id}."

    return DESK.attempt(request, access, memory_id, form, verb)


@require_POST
@project_page(Action.DECIDE)
def retire(request: PageRequest, access: Access, memory_id: int) -> HttpResponse:
    """Retire a memory, or refuse an imported one; the answer names the runs that had been told it."""
    form = RefuseForm(request.POST)

    def verb() -> str:
        row = retire_memory(
            project_id=access.project.pk, actor=access.actor, memory_id=memory_id,
            reason=form.cleaned_data["reason"], revision=form.cleaned_data["revision"], now=timezone.now(),
        )  # fmt: skip
        return f"Retired memory {memory_id}. {told_sentence(access.project, row)}"

    return DESK.attempt(request, access, memory_id, form, verb)


def write(access: Access, stored: AgentMemory, typed: Mapping[str, Any]) -> AgentMemory:
    return edit_memory(
        project_id=access.project.pk, actor=access.actor, memory_id=stored.pk, revision=typed["revision"],
        type=typed["type"], importance=typed["importance"], tags=typed["tags"],
        content=with_line_ends_of(stored.content, typed["content"]), now=timezone.now(),
    )  # fmt: skip


EDITOR = Editor(
    section="memory", template=EDIT, name="memory", row_page="memory-row", form=EditMemoryForm, load=memory_of, write=write,
    said=lambda saved: f"Memory {saved.pk} is saved and {saved.trust_state}.",
)  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(Action.RECORD)
def edit(request: PageRequest, access: Access, memory_id: int) -> HttpResponse:
    """Change a memory; it then waits for approval again."""
    return EDITOR.answer(request, access, memory_id)
