"""The one write path: what a change writes, and that it is all or nothing (SPEC 3, LedgerEvent; SPEC 10)."""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from memory.actors import Human, Scribe
from memory.agents import agent_named, set_charter
from memory.errors import NotFound
from memory.ledger.changes import Change, change, founding, locked, state_of, target_of
from memory.models import Agent, AgentMemory, LedgerEvent, Project
from memory.models.event import canonical, digest
from memory.models.project import NO_HASH
from memory.recording import record_memory
from tests.conftest import NOW, Team
from tests.factories import AgentFactory, MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db


def last_event() -> LedgerEvent:
    event = LedgerEvent.objects.order_by("number").last()
    assert event is not None
    return event


def opened(team: Team) -> Any:
    return change(team.project.pk, team.owner, NOW)


def test_events_are_numbered_without_gaps_and_chained_by_hash(team: Team) -> None:
    for n in range(5):
        record_memory(project_id=team.project.pk, actor=team.owner, agent_name="Ana", type="update", content=str(n), now=NOW)  # fmt: skip
    events = list(LedgerEvent.objects.order_by("number"))
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert [event.prev_hash for event in events] == [NO_HASH, *(event.hash for event in events[:-1])]
    assert all(event.hash == event.computed_hash() for event in events)
    project = Project.objects.get()
    assert (project.ledger_number, project.ledger_hash) == (events[-1].number, events[-1].hash)


def test_the_hash_is_sha_256_of_canonical_json_over_every_other_column(team: Team) -> None:
    event = last_event()
    columns = {column.attname for column in LedgerEvent._meta.concrete_fields} - {"hash", "project_id"}
    assert set(event.body()) == columns | {"project"}
    text = json.dumps(event.body(), sort_keys=True, separators=(",", ":"))
    assert event.hash == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "column", ["number", "at", "action", "actor", "target", "before", "after", "state", "reason", "prev_hash"]
)
def test_another_value_in_any_column_gives_another_hash(team: Team, column: str) -> None:
    event = last_event()
    value = getattr(event, column)
    other: Any = f"{value} "
    if isinstance(value, int):
        other = value + 1
    elif isinstance(value, datetime):
        other = value + timedelta(microseconds=1)
    setattr(event, column, other)
    assert event.computed_hash() != event.hash


def test_the_same_instant_hashes_alike_in_every_zone(team: Team) -> None:
    event = last_event()
    event.at = event.at.astimezone(timezone(timedelta(hours=9)))
    assert event.computed_hash() == event.hash


def test_canonical_json_has_one_form() -> None:
    assert canonical({"b": ["é", None, 1], "a": "\u2028"}) == '{"a":"\\u2028","b":["\\u00e9",null,1]}'
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))


def test_a_project_begins_with_the_event_that_made_it(team: Team) -> None:
    first = LedgerEvent.objects.order_by("number").first()
    assert first is not None
    assert (first.action, first.actor, first.target, first.at) == (
        "project.create", "owner", f"project:{team.project.pk}", NOW,
    )  # fmt: skip
    assert json.loads(first.after)["slug"] == "lighthouse"


def test_an_update_records_exactly_what_changed_and_the_whole_rows_digest(team: Team) -> None:
    memory = MemoryFactory(project=team.project)
    with opened(team) as now_open:
        now_open.update(
            memory, "memory.edit", {"content": "New.", "tags": ["a"], "importance": "high"}, reason="R"
        )
    event = last_event()
    assert (event.action, event.target, event.reason) == ("memory.edit", f"memory:{memory.pk}", "R")
    assert json.loads(event.before) == {"content": "The build needs two cores.", "tags": []}
    assert json.loads(event.after) == {"content": "New.", "tags": ["a"]}
    assert event.state == digest(state_of(AgentMemory.objects.get()))


def test_the_state_of_a_row_leaves_nothing_out_but_what_the_chain_itself_moves() -> None:
    kept = {"id", "project_id", "cross_team"}
    columns = {column.attname for column in AgentMemory._meta.concrete_fields}
    assert set(state_of(AgentMemory(created_at=NOW))) == columns - kept
    columns = {column.attname for column in Project._meta.concrete_fields}
    assert set(state_of(Project(created_at=NOW))) == columns - {"id", "epoch", "ledger_number", "ledger_hash"}


def test_many_rows_have_an_event_each(team: Team) -> None:
    agents = [AgentFactory.build(project=team.project, name=f"Agent {n}") for n in range(3)]
    before = Project.objects.get()
    with opened(team) as now_open:
        now_open.insert_all(agents, "agent.create", reason="import")
    after = Project.objects.get()
    events = LedgerEvent.objects.order_by("-number")[:3]
    assert [event.target for event in events] == [target_of(agent) for agent in reversed(agents)]
    assert {event.state for event in events} == {digest(state_of(agent)) for agent in Agent.objects.all()}
    assert (after.ledger_number, after.epoch) == (before.ledger_number + 3, before.epoch + 1)


def test_the_epoch_rises_once_for_a_change_that_could_alter_a_context_and_never_otherwise(team: Team) -> None:
    def after(write: Any) -> int:
        before = Project.objects.get().epoch
        with opened(team) as now_open:
            write(now_open)
        return Project.objects.get().epoch - before

    memory = MemoryFactory(project=team.project)
    assert after(lambda now_open: None) == 0
    assert after(lambda now_open: now_open.note("member.grant", "member:x", None, {"role": "viewer"})) == 0
    assert (
        after(lambda now_open: now_open.update(memory, "memory.edit", {"content": "a"}, compiled=False)) == 0
    )
    assert after(lambda now_open: now_open.update(memory, "memory.edit", {"content": "b"})) == 1

    def twice(now_open: Change) -> None:
        now_open.update(memory, "memory.edit", {"content": "c"})
        now_open.update(memory, "memory.edit", {"content": "d"}, compiled=False)

    assert after(twice) == 1


def test_a_change_that_changes_nothing_writes_nothing(team: Team) -> None:
    before = state_of(Project.objects.get()), LedgerEvent.objects.count()
    with opened(team) as now_open:
        agent = AgentFactory(project=team.project)
        assert agent_named(now_open, " ana") == agent
        set_charter(now_open, agent, "")
    assert (state_of(Project.objects.get()), LedgerEvent.objects.count()) == before


def test_a_failure_takes_rows_events_and_epoch_back_together(team: Team) -> None:
    before = LedgerEvent.objects.count(), Project.objects.get()

    def fail() -> None:
        with opened(team) as now_open:
            agent_named(now_open, "Ana")
            now_open.note("member.grant", "member:x", None, None)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    after = Project.objects.get()
    assert (LedgerEvent.objects.count(), Agent.objects.count()) == (before[0], 0)
    assert (after.epoch, after.ledger_number, after.ledger_hash) == (
        before[1].epoch, before[1].ledger_number, before[1].ledger_hash,
    )  # fmt: skip


def test_a_part_that_fails_goes_back_alone(team: Team) -> None:
    def fail(now_open: Change) -> None:
        with now_open.part():
            agent_named(now_open, "Lost")
            raise ZeroDivisionError

    with opened(team) as now_open:
        agent_named(now_open, "First")
        with pytest.raises(ZeroDivisionError):
            fail(now_open)
        with now_open.part():
            agent_named(now_open, "Last")
    assert [agent.name for agent in Agent.objects.order_by("pk")] == ["First", "Last"]
    events = list(LedgerEvent.objects.order_by("number"))
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert [event.prev_hash for event in events[1:]] == [event.hash for event in events[:-1]]


def test_an_author_stands_on_the_events_of_its_block_only(team: Team) -> None:
    run_id = uuid.uuid4()
    with opened(team) as now_open:
        now_open.note("a", "x", None, None)
        with now_open.acting_as(Scribe(run_id)):
            now_open.note("b", "x", None, None)
            assert now_open.identity == f"scribe:{run_id}"
        now_open.note("c", "x", None, None)
    actors = LedgerEvent.objects.order_by("-number").values_list("actor", flat=True)[:3]
    assert list(actors) == ["owner", f"scribe:{run_id}", "owner"]


def test_projects_have_chains_of_their_own(team: Team) -> None:
    other = ProjectFactory.build()
    with founding(other, Human("owner"), NOW) as now_open:
        agent_named(now_open, "Ana")
    numbers = LedgerEvent.objects.filter(project=other).order_by("number").values_list("number", "prev_hash")
    assert list(numbers) == [(1, NO_HASH), (2, LedgerEvent.objects.get(project=other, number=1).hash)]


def test_an_unknown_project_or_row_is_not_found(team: Team) -> None:
    with pytest.raises(NotFound), change(uuid.uuid4(), team.owner, NOW):
        pass
    with opened(team), pytest.raises(NotFound):
        locked(AgentMemory.objects.all(), pk=1)
