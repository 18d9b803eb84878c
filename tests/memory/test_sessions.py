"""Sessions: one open at a time (SPEC 6, sessions)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memory.actors import Human
from memory.errors import Conflict, Invalid, NotFound
from memory.ledger.changes import state_of
from memory.models import LedgerEvent, Project, SessionContext
from memory.sessions import (
    SessionFields,
    start_session,
    update_current_session,
    update_session,
)
from tests.conftest import NOW, Team, start_run
from tests.factories import ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=2)
SOME = SessionFields(focus_area="Release", active_issues=["#1"], summary="Begun.\n", serialized_state="{}")


def start(team: Team, session_id: str = "s-1", fields: SessionFields = SOME, **values: Any) -> SessionContext:
    given: dict[str, Any] = {"actor": team.contributor, "now": NOW}
    return start_session(
        project_id=team.project.pk, session_id=session_id, fields=fields, **{**given, **values}
    )


def update(team: Team, session_id: str, *, end: bool = False, **fields: Any) -> SessionContext:
    return update_session(
        project_id=team.project.pk, actor=team.owner, session_id=session_id, fields=SessionFields(**fields), end=end, now=LATER,
    )  # fmt: skip


def current(
    team: Team, session_id: str | None = None, *, end: bool = False, actor: Human | None = None, **fields: Any
) -> tuple[SessionContext, bool]:
    return update_current_session(
        project_id=team.project.pk, actor=actor or team.owner, session_id=session_id, fields=SessionFields(**fields), end=end,
        now=LATER,
    )  # fmt: skip


def open_ids() -> list[str]:
    return list(SessionContext.objects.filter(ended_at=None).values_list("session_id", flat=True))


def test_a_session_is_kept_whole_under_who_started_it(team: Team) -> None:
    run = start_run(team)
    session = start(team, " s-1 ", actor=run)
    assert state_of(session) == state_of(SessionContext.objects.get()) == {
        "session_id": "s-1", "focus_area": "Release", "active_issues": ["#1"], "summary": "Begun.\n",
        "serialized_state": "{}", "started_at": "2026-12-01T09:00:00.000000+00:00", "ended_at": None, "revision": 1,
        "source_kind": "run", "source_identity": f"run:{run.run_id}", "source_run_id": str(run.run_id),
    }  # fmt: skip


def test_starting_one_closes_the_open_one_in_the_same_change(team: Team) -> None:
    start(team)
    epoch = Project.objects.get().epoch
    start(team, "s-2", now=LATER)
    assert open_ids() == ["s-2"]
    first = SessionContext.objects.get(session_id="s-1")
    assert (first.ended_at, first.revision, first.summary) == (LATER, 2, "Begun.\n")
    assert Project.objects.get().epoch == epoch + 1
    assert list(LedgerEvent.objects.order_by("-number").values_list("action", flat=True)[:2]) == [
        "session.start", "session.end",
    ]  # fmt: skip


@pytest.mark.parametrize("is_open", [True, False])
def test_a_duplicate_id_is_a_conflict_and_closes_nothing(team: Team, is_open: bool) -> None:
    start(team)
    if not is_open:
        start(team, "s-2")
    events, opened = LedgerEvent.objects.count(), open_ids()
    with pytest.raises(Conflict) as caught:
        start(team, fields=SessionFields(focus_area="Mine"))
    assert (caught.value.row.session_id, caught.value.row.focus_area) == ("s-1", "Release")
    assert open_ids() == opened
    assert LedgerEvent.objects.count() == events


def test_sessions_of_two_projects_do_not_meet(team: Team) -> None:
    other = SessionFactory(project=ProjectFactory(), session_id="s-1")
    start(team)
    other.refresh_from_db()
    assert other.ended_at is None
    assert SessionContext.objects.count() == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [("focus_area", "x" * 2001), ("active_issues", ["x" * 501]), ("active_issues", ["x"] * 101), ("summary", "\x00"),
     ("summary", "x" * 65_537), ("serialized_state", "\ud800")],
)  # fmt: skip
def test_a_wrong_field_is_named_and_nothing_changes(team: Team, field: str, value: Any) -> None:
    start(team)
    events = LedgerEvent.objects.count()
    for write in (lambda: start(team, "s-2", SessionFields(**{field: value})), lambda: update(team, "s-1", **{field: value}), lambda: current(team, **{field: value})):  # fmt: skip
        with pytest.raises(Invalid) as caught:
            write()
        assert list(caught.value.errors) == [field]
    assert open_ids() == ["s-1"]
    assert LedgerEvent.objects.count() == events


@pytest.mark.parametrize("session_id", ["", "current", "a/b", "x" * 121, "a\nb"])
def test_a_wrong_id_is_named(team: Team, session_id: str) -> None:
    for write in (lambda: start(team, session_id), lambda: current(team, session_id)):
        with pytest.raises(Invalid) as caught:
            write()
        assert list(caught.value.errors) == ["session_id"]


def test_an_update_changes_what_it_names_and_leaves_the_rest(team: Team) -> None:
    start(team)
    session = update(team, " s-1 ", summary="Done.", active_issues=[])
    assert (session.summary, session.active_issues, session.focus_area) == ("Done.", [], "Release")
    assert (session.revision, session.ended_at, session.source_identity) == (2, None, "contributor")
    last = LedgerEvent.objects.order_by("number").last()
    assert last is not None
    assert (last.action, last.actor, last.before) == (
        "session.update", "owner", '{"active_issues":["#1"],"revision":1,"summary":"Begun.\\n"}',
    )  # fmt: skip


def test_an_update_to_what_is_there_changes_nothing(team: Team) -> None:
    start(team)
    events = LedgerEvent.objects.count()
    assert update(team, "s-1", summary="Begun.\n").revision == 1
    assert LedgerEvent.objects.count() == events


def test_an_update_may_end_the_session_with_its_last_words(team: Team) -> None:
    start(team)
    session = update(team, "s-1", summary="Done.", end=True)
    assert (session.summary, session.ended_at, open_ids()) == ("Done.", LATER, [])


def test_what_has_ended_stays_as_it_was(team: Team) -> None:
    start(team)
    update(team, "s-1", end=True)
    for write in (lambda: update(team, "s-1", summary="Late."), lambda: update(team, "s-1", end=True), lambda: current(team, "s-1", summary="Late.")):  # fmt: skip
        with pytest.raises(Conflict) as caught:
            write()
        assert caught.value.row.session_id == "s-1"
    assert SessionContext.objects.get().summary == "Begun.\n"


def test_a_session_of_another_project_is_not_found(team: Team) -> None:
    SessionFactory(project=ProjectFactory(), session_id="theirs")
    for session_id in ("theirs", "unknown"):
        with pytest.raises(NotFound):
            update(team, session_id, summary="Mine.")


def test_the_current_session_is_changed_when_there_is_one(team: Team) -> None:
    started = start(team)
    for session_id in (None, "s-1", " s-1 "):
        session, is_new = current(team, session_id, summary=f"Now {session_id}.")
        assert (session.pk, is_new, session.summary) == (started.pk, False, f"Now {session_id}.")
    assert SessionContext.objects.count() == 1


def test_the_current_session_is_started_when_there_is_none(team: Team) -> None:
    session, is_new = current(team, summary="Begun.")
    assert (session.session_id, is_new, session.summary, session.focus_area) == ("session-20261201-110000", True, "Begun.", "")  # fmt: skip
    update(team, session.session_id, end=True)
    session, _ = current(team, summary="Again.")
    assert session.session_id == "session-20261201-110000-2"
    update(team, session.session_id, end=True)
    session, _ = current(team, "mine", focus_area="X")
    assert (session.session_id, open_ids()) == ("mine", ["mine"])


def test_naming_another_than_the_open_session_is_a_conflict(team: Team) -> None:
    start(team)
    with pytest.raises(Conflict) as caught:
        current(team, "s-2", summary="Mine.")
    assert caught.value.row.session_id == "s-1"
    assert open_ids() == ["s-1"]


def test_the_current_session_may_be_ended(team: Team) -> None:
    start(team)
    session, _ = current(team, summary="Done.", end=True)
    assert (session.summary, session.ended_at, open_ids()) == ("Done.", LATER, [])
