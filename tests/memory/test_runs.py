"""Registering and ending runs (SPEC 3, Run)."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from memory.enums import RunRole
from memory.errors import Conflict, Invalid, NotFound
from memory.ledger.changes import change, state_of
from memory.models import Agent, LedgerEvent, Project, Run
from memory.runs import finish_run, register_run
from tests.conftest import NOW, Team
from tests.factories import ProjectFactory, RunFactory, agent_of

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=1)


def register(team: Team, agent_name: str = "Ana", **values: Any) -> tuple[Run, bool]:
    with change(team.project.pk, team.orchestrator, NOW) as opened:
        return register_run(opened, agent_name=agent_name, **values)


def finish(team: Team, run_id: uuid.UUID, status: str = "completed", summary: str = "") -> tuple[Run, bool]:
    with change(team.project.pk, team.orchestrator, LATER) as opened:
        return finish_run(opened, run_id, status, summary)


def test_a_run_is_kept_whole(team: Team) -> None:
    run, is_new = register(team, " Ana ", role="coordinator", external_id=" job 7 ", charter="You are Ana.")
    assert is_new is True
    assert state_of(run) == state_of(Run.objects.get()) == {
        "agent_id": Agent.objects.get().pk, "role": "coordinator", "parent_id": None, "external_id": "job 7",
        "status": "running", "summary": "", "started_at": "2026-12-01T09:00:00.000000+00:00", "ended_at": None,
    }  # fmt: skip
    assert (run.agent.name, run.agent.charter) == ("Ana", "You are Ana.")
    actor = run.as_actor()
    assert (actor.identity, actor.is_coordinator, actor.agent_name) == (f"run:{run.pk}", True, "Ana")


def test_registering_alters_no_context_of_an_agent_that_is_known(team: Team) -> None:
    register(team)
    epoch = Project.objects.get().epoch
    run, _ = register(team)
    finish(team, run.pk)
    assert Project.objects.get().epoch == epoch


def test_the_same_external_id_is_the_same_run(team: Team) -> None:
    run, _ = register(team, external_id="job 7")
    again, is_new = register(team, "ANA ", external_id="job 7")
    assert (again.pk, is_new, Run.objects.count()) == (run.pk, False, 1)
    assert LedgerEvent.objects.filter(action="run.register").count() == 1


def test_runs_without_an_external_id_are_all_new(team: Team) -> None:
    assert register(team)[0].pk != register(team)[0].pk


def test_external_ids_of_two_projects_do_not_meet(team: Team) -> None:
    RunFactory(project=ProjectFactory(), external_id="job 7")
    assert register(team, external_id="job 7")[1] is True


@pytest.mark.parametrize("other", [{"agent_name": "Ben"}, {"role": "coordinator"}, {"parent_run_id": ...}])
def test_an_external_id_cannot_change_what_its_run_is(team: Team, other: dict[str, Any]) -> None:
    run, _ = register(team, external_id="job 7")
    parent, _ = register(team)
    events = LedgerEvent.objects.count()
    values = {"charter": "Mine now.", **other} | (
        {"parent_run_id": parent.pk} if "parent_run_id" in other else {}
    )
    with pytest.raises(Conflict) as caught:
        register(team, **{"external_id": "job 7", **values})
    assert caught.value.row.pk == run.pk
    assert LedgerEvent.objects.count() == events
    assert Agent.objects.get(key="ana").charter == ""


def test_an_external_id_of_an_ended_run_is_used_up(team: Team) -> None:
    run, _ = register(team, external_id="job 7")
    finish(team, run.pk)
    with pytest.raises(Conflict):
        register(team, external_id="job 7")


def test_a_child_is_never_a_coordinator(team: Team) -> None:
    parent, _ = register(team, role="coordinator")
    child, _ = register(team, parent_run_id=parent.pk)
    assert (child.parent, child.role, child.is_child, parent.is_child) == (
        parent,
        RunRole.WORKER,
        True,
        False,
    )
    with pytest.raises(Invalid) as caught:
        register(team, parent_run_id=parent.pk, role="coordinator")
    assert list(caught.value.errors) == ["role"]


def test_a_parent_is_a_run_of_the_same_project(team: Team) -> None:
    for parent_id in (uuid.uuid4(), RunFactory(project=ProjectFactory()).pk):
        with pytest.raises(Invalid) as caught:
            register(team, parent_run_id=parent_id)
        assert list(caught.value.errors) == ["parent_run_id"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("agent_name", ""), ("agent_name", "a/b"), ("role", "owner"), ("role", ""), ("external_id", ""), ("external_id", "x" * 201),
     ("external_id", "a\nb"), ("charter", "x" * 65_537), ("charter", "\x00")],
)  # fmt: skip
def test_a_wrong_field_is_named_and_nothing_is_written(team: Team, field: str, value: Any) -> None:
    events = LedgerEvent.objects.count()
    with pytest.raises(Invalid) as caught:
        register(team, **{field: value})
    assert list(caught.value.errors) == [field]
    assert (Run.objects.count(), Agent.objects.count(), LedgerEvent.objects.count()) == (0, 0, events)


def test_the_newest_charter_is_the_agents(team: Team) -> None:
    register(team, charter="First.")
    register(team)
    assert Agent.objects.get().charter == "First."
    register(team, charter="Second.")
    events = LedgerEvent.objects.filter(action="agent.charter").count()
    register(team, charter="Second.")
    assert Agent.objects.get().charter == "Second."
    assert LedgerEvent.objects.filter(action="agent.charter").count() == events == 2
    register(team, charter="")
    assert Agent.objects.get().charter == ""


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_run_ends_once(team: Team, status: str) -> None:
    run, _ = register(team)
    ended, now_ended = finish(team, run.pk, status, "All done.")
    assert (ended.status, ended.summary, ended.ended_at, now_ended) == (status, "All done.", LATER, True)
    assert ended.is_running is False
    again, now_ended = finish(team, run.pk, status, "Other words.")
    assert (again.summary, now_ended) == ("All done.", False)
    for other in {"completed", "failed", "cancelled"} - {status}:
        with pytest.raises(Conflict) as caught:
            finish(team, run.pk, other)
        assert caught.value.row.status == status


@pytest.mark.parametrize(
    ("field", "values"), [("status", ("running",)), ("status", ("",)), ("summary", ("failed", "\x00"))]
)
def test_a_wrong_end_is_named(team: Team, field: str, values: tuple[str, ...]) -> None:
    run, _ = register(team)
    with pytest.raises(Invalid) as caught:
        finish(team, run.pk, *values)
    assert list(caught.value.errors) == [field]
    assert Run.objects.get().is_running is True


def test_a_run_of_another_project_is_not_found(team: Team) -> None:
    for run_id in (RunFactory(project=ProjectFactory()).pk, uuid.uuid4()):
        with pytest.raises(NotFound):
            finish(team, run_id)


def test_a_clock_that_runs_behind_never_ends_a_run_before_it_began(team: Team) -> None:
    run = RunFactory(
        project=team.project, agent=agent_of(team.project), started_at=LATER + timedelta(hours=1)
    )
    assert finish(team, run.pk)[0].ended_at == run.started_at
