"""Session: the open one, the past ones, and what happens to the open one when another begins (SPEC 6 and 9, Session)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from memory.models import LedgerEvent, SessionContext
from memory.sessions import SessionFields, update_session
from tests.conftest import NOW, Team
from tests.factories import SessionFactory
from tests.governance.pages.asking import MEMBERS, READERS, answers, statements
from tests.governance.pages.conftest import HTMX, Browsers, a_session

pytestmark = pytest.mark.django_db

SESSION = "/projects/lighthouse/session"
WRITERS = [302, 302, 403, 403, 404, 403, 302]


def form_of(session: SessionContext, **changed: Any) -> dict[str, Any]:
    """The form as the page gives it."""
    issues = "\n".join(session.active_issues)
    stored = {"focus_area": session.focus_area, "active_issues": issues, "summary": session.summary}
    return {**stored, "revision": session.revision, **changed}


def test_nobody_is_left_without_a_word_when_none_is_open(team: Team, browsers: Browsers) -> None:
    assert b"Start one below" in browsers.contributor.get(SESSION).content
    viewer = browsers.viewer.get(SESSION).content
    assert b"A contributor, an owner or a run can start one." in viewer
    assert b'<form class="form"' not in viewer


def test_a_session_begins_and_the_open_one_ends_with_it(team: Team, owner: Client) -> None:
    first = a_session(team)
    given = {"session_id": "tuesday", "focus_area": "Fog", "active_issues": "one\n\n two ", "summary": ""}
    response = owner.post(f"{SESSION}/start", given, follow=True)
    assert b"Session tuesday is open." in response.content
    first.refresh_from_db()
    now = SessionContext.objects.get(session_id="tuesday")
    assert first.ended_at is not None
    assert (now.focus_area, now.active_issues, now.ended_at) == ("Fog", ["one", "two"], None)


def test_a_taken_id_closes_nothing(team: Team, owner: Client) -> None:
    a_session(team)
    response = owner.post(f"{SESSION}/start", {"session_id": "monday", "focus_area": "Typed."})
    page = response.content.decode()
    assert response.status_code == 409
    assert "Nothing was done:" in page
    assert "Typed." in page
    assert SessionContext.objects.get().ended_at is None


def test_what_is_wrong_stands_beside_its_field(team: Team, owner: Client) -> None:
    response = owner.post(
        f"{SESSION}/start", {"session_id": "", "focus_area": "x" * 9000, "summary": "Kept."}
    )
    page = response.content.decode()
    assert response.status_code == 422
    assert page.count('class="errors"') >= 2
    assert "Kept." in page
    assert SessionContext.objects.count() == 0


def test_the_open_session_is_changed_at_the_revision_that_was_read(team: Team, owner: Client) -> None:
    session = a_session(team)
    address = f"{SESSION}/{session.pk}/edit"
    assert owner.post(address, form_of(session, focus_area="Fog")).status_code == 302
    session.refresh_from_db()
    assert (session.focus_area, session.revision) == ("Fog", 2)


def test_a_session_that_changed_meanwhile_is_shown_and_the_text_kept(team: Team, owner: Client) -> None:
    session = a_session(team)
    update_session(
        project_id=team.project.pk, actor=team.contributor, session_id="monday",
        fields=SessionFields(focus_area="Theirs."), now=NOW,
    )  # fmt: skip
    response = owner.post(f"{SESSION}/{session.pk}/edit", form_of(session, summary="Mine."))
    page = response.content.decode()
    assert response.status_code == 409
    assert "Theirs." in page
    assert "Mine." in page
    session.refresh_from_db()
    assert session.summary != "Mine."
    assert re.search(r'<input[^>]*name="revision"[^>]*value="(\d+)"', page)[1] == "2"  # type: ignore[index]


def test_saving_an_untouched_form_changes_nothing(team: Team, owner: Client) -> None:
    session = SessionFactory(project=team.project, summary="One.\r\nTwo.")
    before = LedgerEvent.objects.count()
    assert owner.post(f"{SESSION}/{session.pk}/edit", form_of(session)).status_code == 302
    session.refresh_from_db()
    assert (session.summary, session.revision) == ("One.\r\nTwo.", 1)
    assert LedgerEvent.objects.count() == before


def test_a_session_ends_once(team: Team, owner: Client) -> None:
    session = a_session(team)
    address = f"{SESSION}/{session.pk}/end"
    assert b"Session monday has ended." in owner.post(address, follow=True).content
    again = owner.post(address)
    assert again.status_code == 409
    assert b"Nothing was done:" in again.content


def test_an_ended_session_is_not_changed(team: Team, owner: Client) -> None:
    session = SessionFactory(project=team.project, ended_at=NOW)
    response = owner.post(f"{SESSION}/{session.pk}/edit", form_of(session, focus_area="Fog"))
    assert response.status_code == 409
    session.refresh_from_db()
    assert session.focus_area == "Release"


@pytest.mark.parametrize("verb", ["start", "edit", "end"])
def test_who_may_write_the_session(team: Team, browsers: Browsers, verb: str) -> None:
    found = []
    for name in READERS:
        SessionContext.objects.filter(ended_at=None).update(ended_at=NOW)
        session = SessionFactory(project=team.project)
        address = f"{SESSION}/start" if verb == "start" else f"{SESSION}/{session.pk}/{verb}"
        given = {"session_id": f"new-{name}"} if verb == "start" else form_of(session, focus_area="Fog")
        assert getattr(browsers, name).get(address).status_code in (405, 302)
        found.append(getattr(browsers, name).post(address, given).status_code)
    assert found == WRITERS


def test_every_member_reads(team: Team, browsers: Browsers) -> None:
    session = a_session(team)
    for address in (SESSION, f"{SESSION}/{session.pk}"):
        assert answers(browsers, address) == MEMBERS


def test_a_session_of_nowhere_is_not_found(team: Team, owner: Client) -> None:
    assert owner.get(f"{SESSION}/99999").status_code == 404
    assert owner.post(f"{SESSION}/99999/edit").status_code == 404
    assert owner.post(f"{SESSION}/99999/end").status_code == 404


def test_one_past_session_or_three_make_the_same_statements(team: Team, owner: Client) -> None:
    counts = []
    for number in (1, 2):
        for _ in range(number):
            SessionFactory(project=team.project, ended_at=NOW)
        counts.append(statements(owner, SESSION))
    assert counts[0] == counts[1]


def test_htmx_gets_the_past_alone(team: Team, owner: Client) -> None:
    page = owner.get(f"{SESSION}?page=1", headers=HTMX).content
    assert page.strip().startswith(b'<section class="panel" id="past"')


def test_agents_words_are_text(team: Team, owner: Client) -> None:
    session = SessionFactory(project=team.project, focus_area="<b>a\u202e", active_issues=["<i>\u200b"])
    for address in (SESSION, f"{SESSION}/{session.pk}"):
        page = owner.get(address).content.decode()
        shown = page.partition("<dl")[2].partition("</dl>")[0]
        assert "&lt;b&gt;a" in shown
        assert "&lt;i&gt;" in shown
        assert "\u202e" not in shown
        assert "\u200b" not in shown
