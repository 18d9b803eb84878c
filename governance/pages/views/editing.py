"""Editing the text of one row, the same way on every page: the form is the page, and a lost race keeps what was typed (SPEC 6, edit)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import reverse

from governance.pages.forms.fields import add_refusal
from governance.pages.views.access import Access, PageRequest
from governance.pages.views.replies import go, page
from governance.pages.views.rows import Row, changes_since, sentence_for
from memory.errors import Conflict, Invalid
from memory.models import Project


@dataclass(frozen=True, slots=True)
class Editor:
    """Where one kind of row is edited. `name` is what its template calls the row, `row_page` the page of the row.

    `load` reads it, `write` stores what was typed over it, `said` tells what was done.
    """

    section: str
    template: str
    name: str
    row_page: str
    form: type[forms.Form]
    load: Callable[[Project, int], Row]
    write: Callable[[Access, Any, Mapping[str, Any]], Row]
    said: Callable[[Any], str]

    def answer(self, request: PageRequest, access: Access, row_id: int) -> HttpResponse:
        """The form; after a POST the row's page, 422 with what is wrong, or 409 with what changed meanwhile."""
        stored = self.load(access.project, row_id)
        form = self.form(request.POST or None, initial=self.initial(stored))
        if request.method == "POST" and form.is_valid():
            try:
                saved = self.write(access, stored, form.cleaned_data)
            except Invalid as refusal:
                add_refusal(form, refusal)
            except Conflict as lost:
                return self.lost_race(request, access, row_id, form, lost)
            else:
                url = reverse(f"governance:{self.row_page}", args=[access.project.slug, saved.pk])
                return go(request, url, self.said(saved))
        return self.show(request, access, stored, form, status=422 if form.errors else 200)

    def initial(self, stored: Row) -> dict[str, Any]:
        values = {field: getattr(stored, field) for field in self.form.base_fields}
        return {**values, "tags": ", ".join(stored.tags)}

    def lost_race(
        self, request: PageRequest, access: Access, row_id: int, form: forms.Form, lost: Conflict
    ) -> HttpResponse:
        """What changed meanwhile beside what was typed; sending it again is then a decision taken knowingly."""
        found = self.load(access.project, row_id)
        changes = changes_since(access.project, found, form.cleaned_data["revision"])
        again = self.form({**request.POST.dict(), "revision": found.revision})
        row = {"problem": sentence_for(lost), "changes": changes}
        return self.show(request, access, found, again, status=409, row=row)

    def show(
        self,
        request: PageRequest,
        access: Access,
        row_shown: Row,
        form: forms.Form,
        *,
        status: int,
        **more: Any,
    ) -> HttpResponse:
        context = {"form": form, self.name: row_shown, **more}
        return page(request, access, self.template, context, section=self.section, status=status)
