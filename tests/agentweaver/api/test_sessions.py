"""Sessions over HTTP (SPEC 6 and 7): at most one is open."""

from __future__ import annotations

import pytest

from memory.models import SessionContext
from tests.agentweaver.api.conftest import Caller, errors, problem


def test_starting_a_session_closes_the_open_one(contributor: Caller) -> None:
    first = contributor.post(
        "sessions", {"session_id": " s 1 ", "focus_area": "F", "active_issues": ["#1", ""], "summary": "S"}
    )
    told = first.json()
    assert first.status_code == 201
    assert {k: v for k, v in told.items() if k not in ("id", "started_at")} == {
        "session_id": "s 1", "focus_area": "F", "active_issues": ["#1", ""], "summary": "S", "serialized_state": "",
        "revision": 1, "ended_at": None, "source_kind": "human", "source_identity": "contributor", "source_run": None,
    }  # fmt: skip
    contributor.post("sessions", {"session_id": "s-2"})
    assert contributor.get("sessions/s%201").json()["ended_at"] is not None
    assert contributor.get("sessions/current").json()["session_id"] == "s-2"


def test_an_id_that_exists_is_a_conflict_and_closes_nothing(contributor: Caller) -> None:
    contributor.post("sessions", {"session_id": "s-1"})
    contributor.post("sessions", {"session_id": "s-2"})
    taken = contributor.post("sessions", {"session_id": "s-1"})
    assert problem(taken) == (409, "conflict")
    assert taken.json()["current"]["session_id"] == "s-1"
    assert contributor.get("sessions/current").json()["session_id"] == "s-2"


def test_the_current_session_is_changed_or_started(contributor: Caller) -> None:
    assert problem(contributor.get("sessions/current")) == (404, "not_found")
    started = contributor.put("sessions/current", {"summary": "One"})
    assert started.status_code == 201
    changed = contributor.put("sessions/current", {"focus_area": "F"})
    assert (changed.status_code, changed.json()["summary"], changed.json()["focus_area"]) == (200, "One", "F")
    other = contributor.put("sessions/current", {"session_id": "another"})
    assert problem(other) == (409, "conflict")
    ended = contributor.put("sessions/current", {"end": True}).json()
    assert ended["ended_at"] is not None
    refused = contributor.patch(f"sessions/{ended['session_id']}", {"summary": "Late"})
    assert problem(refused) == (409, "conflict")
    assert contributor.put("sessions/current", {"session_id": "chosen"}).json()["session_id"] == "chosen"
    assert SessionContext.objects.count() == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("focus_area", 1), ("focus_area", "x" * 2_001), ("active_issues", "#1"), ("active_issues", [1]),
        ("active_issues", ["x" * 501]), ("active_issues", ["x"] * 101), ("active_issues", ["\x00"]),
        ("summary", None), ("summary", "x" * 65_537), ("serialized_state", {}), ("end", 1), ("end", "true"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(contributor: Caller, field: str, value: object) -> None:
    contributor.post("sessions", {"session_id": "s"})
    assert errors(contributor.patch("sessions/s", {field: value})).keys() == {field}


@pytest.mark.parametrize("given", ["", " ", "a/b", "current", "x" * 121, "a\nb", 1, None])
def test_an_id_is_one_line_and_not_the_word_current(contributor: Caller, given: object) -> None:
    assert errors(contributor.post("sessions", {"session_id": given})).keys() == {"session_id"}


def test_a_session_nobody_can_have_is_not_found(contributor: Caller) -> None:
    for path in ("sessions/none", "sessions/a%00b", f"sessions/{'x' * 200}"):
        assert problem(contributor.get(path)) == (404, "not_found")
        assert problem(contributor.patch(path, {"summary": "S"})) == (404, "not_found")
