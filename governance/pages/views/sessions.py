"""Session: the open one with its age, the past ones; start, edit, end (SPEC 6, sessions; SPEC 9, Session)."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from governance.pages.forms.sessions import EditForm, StartForm
from governance.pages.queues.sessions import PAGE_SIZE, open_session_of, past_sessions, session_of
from governance.pages.views.access import Access, PageRequest, project_page
from governance.pages.views.attempts import attempt
from governance.pages.views.replies import go, page
from governance.people.policies import Action
from memory import sessions as verbs
from memory.models import SessionContext
from memory.sessions import SessionFields

SESSION = "governance/session.html"


@require_safe
@project_page(Action.READ)
def session(request: PageRequest, access: Access) -> HttpResponse:
    """The open session, and the past ones."""
    return show(request, access)


def show(
    request: PageRequest, access: Access, *, edit: forms.Form | None = None, start: forms.Form | None = None,
    status: int = 200,
) -> HttpResponse:  # fmt: skip
    """The page, with a form as it was sent when it was not taken."""
    current = open_session_of(access.project)
    past = Paginator(past_sessions(access.project), PAGE_SIZE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "current": current, "past": past, "page_obj": past, "query": "", "edit": edit or edit_form(current),
        "start": start or StartForm(initial={"session_id": f"session-{timezone.localtime():%Y%m%d-%H%M}"}),
    }  # fmt: skip
    return page(request, access, SESSION, context, section="session", fragment="past", status=status)


def edit_form(current: SessionContext | None) -> EditForm | None:
    if current is None:
        return None
    fields = ("focus_area", "active_issues", "summary", "revision")
    return EditForm(initial={name: getattr(current, name) for name in fields})


@require_safe
@project_page(Action.READ)
def row(request: PageRequest, access: Access, session_pk: int) -> HttpResponse:
    """One session."""
    found = session_of(access.project, session_pk)
    return page(request, access, "governance/session_row.html", {"row": found}, section="session")


def address(access: Access) -> str:
    return reverse("governance:session", args=[access.project.slug])


@require_POST
@project_page(Action.RECORD)
def start(request: PageRequest, access: Access) -> HttpResponse:
    """Open a session; the open one ends with it."""
    form = StartForm(request.POST)

    def verb() -> HttpResponse:
        made = verbs.start_session(
            project_id=access.project.pk, actor=access.actor, session_id=form.cleaned_data["session_id"],
            fields=form.fields_for(), now=timezone.now(),
        )  # fmt: skip
        return go(request, address(access), f"Session {made.session_id} is open.")

    def again(form: forms.Form, status: int) -> HttpResponse:
        return show(request, access, start=form, status=status)

    return attempt(form, verb, again)


@require_POST
@project_page(Action.RECORD)
def edit(request: PageRequest, access: Access, session_pk: int) -> HttpResponse:
    """Change the open session at the revision that was read."""
    stored, form = session_of(access.project, session_pk), EditForm(request.POST)

    def verb() -> HttpResponse:
        verbs.update_session(
            project_id=access.project.pk, actor=access.actor, session_id=stored.session_id,
            fields=form.fields_for(stored), revision=form.cleaned_data["revision"], now=timezone.now(),
        )  # fmt: skip
        return go(request, address(access), "The session is saved.")

    def again(form: forms.Form, status: int) -> HttpResponse:
        return show(request, access, edit=_at_current_revision(form, access), status=status)

    return attempt(form, verb, again)


def _at_current_revision(form: forms.Form, access: Access) -> forms.Form:
    """What was typed, now at the revision that stands beside it: sending it again is a decision over that text."""
    current = open_session_of(access.project)
    if current is not None:
        form.data = {**dict(form.data.items()), "revision": str(current.revision)}
    return form


@require_POST
@project_page(Action.RECORD)
def end(request: PageRequest, access: Access, session_pk: int) -> HttpResponse:
    """Close the open session."""
    stored, form = session_of(access.project, session_pk), forms.Form(request.POST)

    def verb() -> HttpResponse:
        verbs.update_session(
            project_id=access.project.pk, actor=access.actor, session_id=stored.session_id, fields=SessionFields(),
            end=True, now=timezone.now(),
        )  # fmt: skip
        return go(request, address(access), f"Session {stored.session_id} has ended.")

    def again(form: forms.Form, status: int) -> HttpResponse:
        return show(request, access, edit=form, status=status)

    return attempt(form, verb, again)
