"""Deciding about one row, the same way on every page: form, one verb, and an answer that keeps what was read and typed (SPEC 6, 9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import reverse

from governance.pages.forms.fields import add_refusal
from governance.pages.views.access import Access, PageRequest
from governance.pages.views.replies import go, is_partial, outcome, page, return_address
from governance.pages.views.rows import Row, WaitingRow, changes_since, sentence_for
from memory.errors import Conflict, Invalid
from memory.models import Project

Verb = Callable[[], str]
"""Does it, and says what was done."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Where one kind of row is decided: how it is read, and the templates that draw it.

    `row_template` draws it with its forms, `done_template` what stays of it in a list, `page_template` its own page. `beyond` is what
    that page needs beside the row.
    """

    section: str
    load: Callable[[Project, int], Row]
    draw: Callable[..., WaitingRow]
    choices: Mapping[str, Any]
    row_template: str
    done_template: str
    page_template: str
    beyond: Callable[[Access, Any], Mapping[str, Any]] = lambda access, row: {}

    def list_address(self, access: Access) -> str:
        return reverse(f"governance:{self.section}", args=[access.project.slug])

    def attempt(
        self, request: PageRequest, access: Access, row_id: int, form: forms.Form, verb: Verb
    ) -> HttpResponse:
        """Decide by a form: 200 or back to the list, 422 with what is wrong, 409 with what changed and what was typed."""
        if not form.is_valid():
            return self.invalid(request, access, row_id, form)
        try:
            said = verb()
        except Invalid as refusal:
            add_refusal(form, refusal)
            return self.invalid(request, access, row_id, form)
        except Conflict as lost:
            return self.lost_race(request, access, row_id, form, lost)
        return self.done(request, access, row_id, said)

    def done(self, request: PageRequest, access: Access, row_id: int, said: str) -> HttpResponse:
        """Success: what stays of the row for htmx, else back to where the form was."""
        if not is_partial(request):
            return go(request, return_address(request, self.list_address(access)), said)
        row = WaitingRow(self.load(access.project, row_id))
        return outcome(request, access, self.done_template, {"row": row, "said": said}, said=said)

    def invalid(self, request: PageRequest, access: Access, row_id: int, form: forms.Form) -> HttpResponse:
        wrong = " ".join(str(text) for texts in form.errors.values() for text in texts)
        row = self.draw(
            access, self.load(access.project, row_id), problem=f"Nothing was done. {wrong}", errors=form.errors,
            reason=request.POST.get("reason", ""),
        )  # fmt: skip
        return self.show(request, access, row, status=422, said=row.problem)

    def lost_race(
        self, request: PageRequest, access: Access, row_id: int, form: forms.Form, lost: Conflict
    ) -> HttpResponse:
        found = self.load(access.project, row_id)
        read = form.cleaned_data.get("revision")
        row = self.draw(
            access, found, problem=sentence_for(lost), reason=request.POST.get("reason", ""),
            changes=changes_since(access.project, found, read) if read else (),
        )  # fmt: skip
        return self.show(request, access, row, status=409, said=row.problem)

    def show(
        self,
        request: PageRequest,
        access: Access,
        row: WaitingRow,
        *,
        status: int = 200,
        said: str = "",
        **more: Any,
    ) -> HttpResponse:
        """The row alone as htmx's answer to a POST, to be picked again where it could be; else its own page."""
        back = return_address(request, self.list_address(access))
        context = {"row": row, "here": back, **self.choices}
        if request.method == "POST" and is_partial(request):
            context["pickable"] = "pickable" in request.POST
            return outcome(request, access, self.row_template, context, said=said, status=status)
        context |= {**self.beyond(access, row.row), **more}
        return page(request, access, self.page_template, context, section=self.section, status=status)
