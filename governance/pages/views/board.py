"""Deciding about many rows of a list at once: each at the revision that was on the screen, each with its own answer (SPEC 9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpResponse, QueryDict
from django.urls import reverse

from governance.deciding.bulk import Failed, Picked, each
from governance.deciding.flags import flags_of
from governance.pages.forms.deciding import ManyForm
from governance.pages.views.access import Access, PageRequest
from governance.pages.views.replies import go, is_partial, outcome, page, return_address
from governance.pages.views.rows import Row, WaitingRow, changes_since, sentence_for, texts_of

Name = tuple[str, int]
"""A row's kind and id."""
Listing = Callable[[Access, QueryDict, str, frozenset[Name]], dict[str, Any]]
Finder = Callable[[Access, Sequence[Picked]], Mapping[Name, Row]]


@dataclass(frozen=True, slots=True)
class Board:
    """A list of rows that can be decided together.

    `listing` gives the template's context for an address, without some rows that are shown elsewhere; `find` reads the picked rows as
    they are now.
    """

    section: str
    template: str
    listing: Listing
    find: Finder

    def decide(
        self,
        request: PageRequest,
        access: Access,
        form: ManyForm,
        verb: Callable[[Picked], object],
        done: str,
    ) -> HttpResponse:
        """Apply a verb to every picked row; `done` is the word for what was done, such as `merged`."""
        if not form.is_valid():
            wrong = " ".join(str(text) for texts in form.errors.values() for text in texts)
            return self.answer(request, access, f"Nothing was done. {wrong}", [], status=422)
        report = each(form.cleaned_data["item"], verb)
        said = sentence(len(report.done), len(report.failed), done)
        if not report.failed and not is_partial(request):
            return go(request, return_address(request, self.address(access)), said)
        lost = self.lost_rows(access, report.failed, request.POST.get("reason", ""))
        return self.answer(request, access, said, lost, status=409 if report.failed else 200)

    def address(self, access: Access) -> str:
        return reverse(f"governance:{self.section}", args=[access.project.slug])

    def lost_rows(self, access: Access, failed: Sequence[Failed], reason: str) -> list[WaitingRow]:
        """The rows that were not decided, as they are now, each with why."""
        found = self.find(access, [lost.picked for lost in failed])
        rows = ((lost, found.get((lost.picked.kind, lost.picked.id))) for lost in failed)
        return [_lost(access, lost, row, reason) for lost, row in rows if row is not None]

    def answer(
        self, request: PageRequest, access: Access, said: str, lost: list[WaitingRow], *, status: int
    ) -> HttpResponse:
        """The list the reader came from, below what became of the picked rows. What was typed is kept when something failed."""
        here = return_address(request, self.address(access))
        above = frozenset((row.kind, row.row.pk) for row in lost)
        context = self.listing(access, QueryDict(urlsplit(here).query), here, above)
        context |= {"report": said, "failed": status != 200, "lost": lost}
        if status != 200:
            context["typed"] = request.POST
        if status == 422:
            context["rows"] = picked_again(context.get("rows", ()), request.POST.getlist("item"))
        if is_partial(request):
            return outcome(request, access, f"{self.template}#results", context, said=said, status=status)
        return page(request, access, self.template, context, section=self.section, status=status)


def _lost(access: Access, lost: Failed, row: Row, reason: str) -> WaitingRow:
    return WaitingRow(
        row, flags_of(*texts_of(row)), problem=sentence_for(lost.error), reason=reason, picked=True,
        changes=changes_since(access.project, row, lost.picked.revision),
    )  # fmt: skip


def picked_again(rows: Sequence[WaitingRow], items: Sequence[str]) -> list[WaitingRow]:
    """The rows as they were picked: each whose text is still the one that was picked."""
    picked = frozenset(items)
    return [
        replace(row, picked=str(Picked(row.kind, row.row.pk, row.row.revision)) in picked) for row in rows
    ]


def sentence(done: int, failed: int, word: str) -> str:
    """`47 merged; 3 were not, for the reason beside each.`"""
    if not failed:
        return f"{done} {word}."
    return f"{done} {word}; {failed} {'was' if failed == 1 else 'were'} not, for the reason beside each."


def kept(query: QueryDict) -> str:
    """The filters of an address without its place, ready to be followed by another parameter."""
    rest = query.copy()
    for name in ("after", "pick"):
        rest.pop(name, None)
    return f"{rest.urlencode()}&" if rest else ""
