"""Whatever is changed behind the ledger's back is found and named (SPEC 3, LedgerEvent; SPEC 8.1, verify_ledger)."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from governance.deciding.decisions import create_decision, supersede_decision
from governance.deciding.entries import merge_entry
from governance.deciding.memories import approve_memory
from governance.deciding.projects import create_project
from memory.compiling.compiler import Limits
from memory.compiling.receipts import build_for_run
from memory.ledger import verification
from memory.ledger.changes import change
from memory.ledger.told import proof_of
from memory.ledger.verification import Broken, Checkpoint, checkpoint, verify, verify_newest
from memory.models import AgentMemory, ContextReceipt, Decision, LedgerEvent, Project, Run, SessionContext
from memory.models.project import NO_HASH
from memory.recording import record_memory, submit_entry
from memory.runs import finish_run
from memory.sessions import SessionFields, start_session
from tests.conftest import NOW, Team, start_run

pytestmark = pytest.mark.django_db

SQLITE = connection.vendor == "sqlite"
on_sqlite = pytest.mark.skipif(not SQLITE, reason="SQLite keeps times and ids as text")
EVENT_TEXTS = [
    "hash",
    "action",
    "actor",
    "target",
    "before",
    "after",
    "state",
    "reason",
    "prev_hash",
]
TRIGGERS = [
    importlib.import_module(f"memory.migrations.{name}")
    for name in (
        "0002_append_only",
        "0003_same_project",
        "0005_no_replacement",
        "0007_receipts_of_running_runs",
    )
]


@pytest.fixture
def story(team: Team) -> Team:
    """A project with a little of everything in its ledger, told to a run."""
    common: dict[str, Any] = {"project_id": team.project.pk, "now": NOW + timedelta(microseconds=1)}
    run = start_run(team)
    memory = record_memory(
        **common, actor=run, agent_name="Ana", type="learning", content="Ünïcode.", importance="high", tags=["a", "b"]
    )  # fmt: skip
    approve_memory(**common, actor=team.owner, memory_id=memory.pk, revision=1)
    entry, _ = submit_entry(
        **common, actor=run, agent_name="Ana", slug="one", type="scope", content="Only here."
    )
    decision = merge_entry(**common, actor=team.owner, entry_id=entry.pk, revision=1)
    made: dict[str, Any] = {"agent_name": "Bo", "type": "scope", "title": "Wider", "content": "Everywhere."}
    wider = create_decision(**common, actor=team.owner, **made)
    supersede_decision(
        **common, actor=team.owner, decision_id=decision.pk, superseded_by=wider.pk, reason="Wider."
    )
    fields = SessionFields(active_issues=["fog", "rain"])
    start_session(**common, actor=team.owner, session_id="s", fields=fields)
    build_for_run(Run.objects.select_related("agent", "project").get(), Limits(), NOW)
    team.project.refresh_from_db()
    return team


@contextmanager
def tampering() -> Iterator[Any]:
    """Write past the triggers, as somebody with the database's own password can; everything is undone afterwards."""
    with transaction.atomic(), connection.cursor() as cursor:
        connection.check_constraints()  # PostgreSQL drops no trigger while checks are outstanding
        run = SimpleNamespace(connection=connection, execute=cursor.execute)
        for triggers in TRIGGERS:
            triggers.remove(None, run)
        yield cursor
        transaction.set_rollback(True)


def found(team: Team) -> Broken:
    return first_broken(team.project)


def first_broken(project: Project, anchor: Checkpoint | None = None) -> Broken:
    """The first thing that does not fit; the test fails when all fits."""
    broken = verify(project, anchor).first_broken
    assert broken is not None
    return broken


def fits(team: Team) -> bool:
    return verify(team.project).valid


def events(team: Team) -> list[LedgerEvent]:
    return list(LedgerEvent.objects.filter(project=team.project).order_by("number"))


def key(value: Any) -> Any:
    return value.hex if SQLITE else value


def change_column(cursor: Any, event: LedgerEvent, column: str, stored: str) -> None:
    cursor.execute(f"UPDATE memory_ledgerevent SET {column} = %s WHERE hash = %s", [stored, event.hash])


def change_bytes(cursor: Any, event: LedgerEvent, column: str, data: bytes) -> None:
    """Store any bytes as text, also bytes that are no text."""
    cursor.execute(
        f"UPDATE memory_ledgerevent SET {column} = CAST(x'{data.hex()}' AS TEXT) WHERE hash = %s",
        [event.hash],
    )


def test_an_untouched_ledger_is_valid_and_counts_its_events(story: Team) -> None:
    result = verify(story.project)
    assert (result.valid, result.checked, result.first_broken) == (
        True,
        story.project.ledger_number,
        None,
    )
    assert result.head == checkpoint(story.project)


# One event


def test_a_change_of_any_text_of_any_event_is_found_and_named(story: Team) -> None:
    tried = 0
    for event in events(story):
        for column in EVENT_TEXTS:
            for changed in changes_of(column, getattr(event, column)):
                with tampering() as cursor:
                    change_column(cursor, event, column, changed)
                    broken = found(story)
                assert broken.number == event.number, (event.number, column, changed)
                tried += 1
    assert tried > 300
    assert fits(story)


def changes_of(column: str, text: str) -> set[str]:
    """Longer, shorter, and another character at the beginning, in the middle and at the end; what the column has room for."""
    places = {0, len(text) // 2, len(text) - 1} if text else set()
    replaced = {text[:at] + ("1" if text[at] == "0" else "0") + text[at + 1 :] for at in places}
    room = getattr(LedgerEvent._meta.get_field(column), "max_length", None) or len(text) + 1
    return {new for new in {text + "x", "x" + text, text[1:], *replaced} if new != text and len(new) <= room}


@pytest.mark.parametrize(
    "interval", ["1 microsecond", "-1 microsecond", "1 day", "-4000 years", "10000 years"]
)
@pytest.mark.skipif(SQLITE, reason="the bytes of SQLite's times are tested below")
def test_a_change_of_any_time_is_found_and_named(story: Team, interval: str) -> None:
    for event in events(story):
        with tampering() as cursor:
            cursor.execute(
                "UPDATE memory_ledgerevent SET at = at + %s::interval WHERE hash = %s", [interval, event.hash]
            )
            assert found(story) == Broken(event.number, event.target, problem_of_time(interval))


def problem_of_time(interval: str) -> str:
    outside = interval in ("-4000 years", "10000 years")
    return "its time was changed" if outside else "its content does not match its hash"


@pytest.mark.skipif(SQLITE, reason="PostgreSQL alone knows such a time")
def test_a_time_without_end_is_found(story: Team) -> None:
    with tampering() as cursor:
        change_column(cursor, events(story)[3], "at", "infinity")
        assert found(story).number == 4
    with tampering() as cursor:
        cursor.execute("UPDATE memory_agentmemory SET created_at = 'infinity'")
        assert found(story) == Broken(None, f"project:{story.project.pk}", "a stored value cannot be read")


@on_sqlite
@pytest.mark.parametrize("time", [
    "2026-12-01T09:00:00.000001", "2026-12-01 09:00:00.000001+00:00", "2026-12-01 09:00:00.0000010",
    "2026-12-01 09:00:00.000001Z", " 2026-12-01 09:00:00.000001", "2026-12-01 09:00:00.000001 ",
    "2026-12-01 11:00:00.000001+02:00", "20261201 090000.000001", "2026-13-01 09:00:00", "", "tomorrow", "2026-12-01",
])  # fmt: skip
def test_another_spelling_of_the_same_time_is_found_too(story: Team, time: str) -> None:
    event = events(story)[-1]
    with tampering() as cursor:
        change_column(cursor, event, "at", time)
        assert found(story) == Broken(event.number, event.target, "its time was changed")


@on_sqlite
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_byte_of_any_column_on_disk_is_found_and_named(story: Team, data: st.DataObject) -> None:
    event = data.draw(st.sampled_from(events(story)))
    column = data.draw(st.sampled_from([*EVENT_TEXTS, "at"]))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT CAST({column} AS BLOB) FROM memory_ledgerevent WHERE hash = %s", [event.hash])
        stored = bytes(cursor.fetchone()[0])
    at = data.draw(st.integers(0, len(stored)))
    put = data.draw(st.binary(min_size=0, max_size=2))
    changed = stored[:at] + put + stored[at + data.draw(st.integers(0, 2)) :]
    if changed == stored:
        return
    with tampering() as cursor:
        change_bytes(cursor, event, column, changed)
        broken = found(story)
    assert broken.number == event.number


@on_sqlite
@pytest.mark.parametrize("column", [*EVENT_TEXTS, "at"])
def test_the_same_bytes_as_another_kind_of_value_are_found(story: Team, column: str) -> None:
    event = events(story)[4]
    with tampering() as cursor:
        cursor.execute(
            f"UPDATE memory_ledgerevent SET {column} = CAST({column} AS BLOB) WHERE hash = %s", [event.hash]
        )
        assert found(story).number == 5


@pytest.mark.parametrize("number", [0, 7, 10_000])
def test_a_changed_number_is_found(story: Team, number: int) -> None:
    with tampering() as cursor:
        if number == 7:
            cursor.execute("UPDATE memory_ledgerevent SET number = 0 WHERE number = 7")
        cursor.execute("UPDATE memory_ledgerevent SET number = %s WHERE number = 3", [number])
        assert found(story).number == (3 if number == 10_000 else 1)


def test_an_event_moved_to_another_project_is_found_in_both(story: Team) -> None:
    other = create_project(actor=story.owner, name="Other", slug="other", now=NOW)
    with tampering() as cursor:
        cursor.execute(
            "UPDATE memory_ledgerevent SET project_id = %s WHERE hash = %s",
            [key(other.pk), events(story)[5].hash],
        )
        assert found(story).number == 6
        assert first_broken(other).number == 3


# The chain


@pytest.mark.parametrize(("back", "valid"), [(0, False), (2, False), (3, True)])
def test_the_newest_events_can_be_checked_alone(story: Team, back: int, valid: bool) -> None:
    """A fault among them is found and named, an older one is not looked for."""
    assert verify_newest(story.project, 3).checked == 3
    event = events(story)[-1 - back]
    with tampering() as cursor:
        change_column(cursor, event, "reason", "'Because.'")
        found = verify_newest(story.project, 3)
        assert found.valid is valid
        if not valid:
            problem = "its content does not match its hash"
            assert found.first_broken == Broken(event.number, event.target, problem)


def test_the_newest_events_must_follow_the_one_before_them(story: Team) -> None:
    last = events(story)[-1]
    with tampering() as cursor:
        cursor.execute("DELETE FROM memory_ledgerevent WHERE hash = %s", [last.prev_hash])
        assert verify_newest(story.project, 1).first_broken == Broken(
            last.number, last.target, "it does not follow the event before it"
        )


def test_more_than_all_events_is_all_of_them(story: Team) -> None:
    assert verify_newest(story.project, 1000).checked == verify(story.project).checked


def test_a_deleted_event_is_found_and_named(story: Team) -> None:
    for event in events(story):
        with tampering() as cursor:
            cursor.execute("DELETE FROM memory_ledgerevent WHERE hash = %s", [event.hash])
            assert found(story).number == event.number


def test_a_tail_that_was_cut_off_is_found(story: Team) -> None:
    last = story.project.ledger_number
    with tampering() as cursor:
        cursor.execute("DELETE FROM memory_ledgerevent WHERE number > %s", [last - 3])
        assert found(story) == Broken(
            last - 2,
            f"project:{story.project.pk}",
            f"the ledger ends at event {last - 3}, the project's last event is {last}",
        )


def forged(team: Team, number: int, prev_hash: str, **more: Any) -> LedgerEvent:
    event = LedgerEvent(
        project=team.project, number=number, at=NOW, action="memory.approve", actor="owner", target="memory:1",
        before="{}", after="{}", prev_hash=prev_hash, **more,
    )  # fmt: skip
    event.hash = event.computed_hash()
    return event


def test_an_event_put_at_the_end_with_a_right_hash_is_found(story: Team) -> None:
    last = story.project.ledger_number
    with tampering():
        forged(story, last + 1, story.project.ledger_hash).save(force_insert=True)
        assert found(story) == Broken(
            last + 1, "memory:1", f"it stands after the project's last event, {last}"
        )


def test_an_inserted_event_is_found(story: Team) -> None:
    middle = events(story)[4]
    with tampering() as cursor:
        cursor.execute("UPDATE memory_ledgerevent SET number = number + 1000 WHERE number > 5")
        cursor.execute("UPDATE memory_ledgerevent SET number = number - 999 WHERE number > 1000")
        forged(story, 6, middle.hash).save(force_insert=True)
        assert found(story).number == 7


def test_two_events_in_the_other_order_are_found(story: Team) -> None:
    with tampering() as cursor:
        for old, new in ((4, 0), (5, 4), (0, 5)):
            cursor.execute("UPDATE memory_ledgerevent SET number = %s WHERE number = %s", [new, old])
        assert found(story).number == 4


def test_a_changed_head_is_found(story: Team) -> None:
    last = story.project.ledger_number
    for values in ("ledger_hash = 'x'", "ledger_number = 3", "ledger_number = 9999"):
        with tampering() as cursor:
            cursor.execute(f"UPDATE memory_project SET {values}")
            broken = found(story)
        expected = {"ledger_hash = 'x'": last, "ledger_number = 3": 4, "ledger_number = 9999": last + 1}
        assert broken.number == expected[values]


def test_a_tail_cut_off_together_with_the_head_is_found_by_a_checkpoint(story: Team) -> None:
    kept = checkpoint(story.project)
    shorter = events(story)[-4]
    with tampering() as cursor:
        cursor.execute("DELETE FROM memory_ledgerevent WHERE number > %s", [shorter.number])
        cursor.execute(
            "UPDATE memory_project SET ledger_number = %s, ledger_hash = %s", [shorter.number, shorter.hash]
        )
        broken = first_broken(story.project, kept)
    assert broken.problem.startswith(f"the checkpoint names event {kept.number}")


def test_a_chain_that_was_rewritten_as_a_whole_is_found_by_a_checkpoint_alone(story: Team) -> None:
    kept = checkpoint(story.project)
    with tampering() as cursor:
        told = events(story)
        cursor.execute("DELETE FROM memory_ledgerevent")
        previous = told[0].prev_hash
        for event in told:
            event.actor = "nobody"
            event.prev_hash = previous
            event.hash = previous = event.computed_hash()
            event.save(force_insert=True)
        cursor.execute("UPDATE memory_project SET ledger_hash = %s", [previous])
        assert verify(story.project).valid
        broken = first_broken(story.project, kept)
    assert broken.problem == "the chain does not pass through the checkpoint"


def test_an_older_checkpoint_still_fits_and_another_projects_is_refused(story: Team) -> None:
    kept = checkpoint(story.project)
    record_memory(
        project_id=story.project.pk, actor=story.owner, agent_name="Ana", type="update", content="x", now=NOW
    )
    assert verify(story.project, kept).valid
    with pytest.raises(ValueError, match="another project"):
        verify(story.project, replace(kept, project="0" * 32))


# The rows


@pytest.mark.parametrize("sql", [
    "UPDATE memory_agentmemory SET content = 'Forged.'",
    "UPDATE memory_agentmemory SET content = content || ' '",
    "UPDATE memory_agentmemory SET importance = 'low'",
    "UPDATE memory_agentmemory SET approved_by = 'someone else'",
    "UPDATE memory_agentmemory SET trust_state = 'pending', approved_by = '', approved_at = NULL",
    "UPDATE memory_agentmemory SET source_identity = 'owner'",
    "UPDATE memory_agentmemory SET tags = ',a,b,cross-team,'",
    "UPDATE memory_agentmemory SET tags = ',b,a,'",
    "UPDATE memory_agentmemory SET tags = ',a,,b,'",
    "UPDATE memory_agentmemory SET tags = 'a,b'",
    "UPDATE memory_agentmemory SET revision = 2",
])  # fmt: skip
def test_a_memory_changed_behind_the_ledgers_back_is_found_and_named(story: Team, sql: str) -> None:
    memory = AgentMemory.objects.get()
    last = LedgerEvent.objects.filter(target=f"memory:{memory.pk}").order_by("-number")[0]
    with tampering() as cursor:
        cursor.execute(sql)
        broken = found(story)
    assert (broken.number, broken.target) == (last.number, f"memory:{memory.pk}")


@pytest.mark.parametrize(("table", "sql"), [
    ("project", "name = 'Another'"), ("project", "max_tokens = 1"), ("project", "trust = 'strict'"),
    ("agent", "name = 'ANA'"), ("agent", "charter = 'Obey.'"), ("run", "role = 'coordinator'"), ("run", "summary = 'x'"),
    ("decision", "status = 'archived', superseded_by_id = NULL"), ("decision", "title = 'x'"),
    ("decision", "rationale = 'x'"), ("decisioninboxentry", "title = 'x'"), ("decisioninboxentry", "reviewed_by = 'x'"),
    ("sessioncontext", "summary = 'x'"), ("sessioncontext", "active_issues = '[]'"),
])  # fmt: skip
def test_a_change_in_any_table_is_found(story: Team, table: str, sql: str) -> None:
    with tampering() as cursor:
        cursor.execute(f"UPDATE memory_{table} SET {sql}")
        broken = found(story)
    assert "row does not read as event" in broken.problem
    kinds = {"decisioninboxentry": "entry", "sessioncontext": "session"}
    assert broken.target.startswith(f"{kinds.get(table, table)}:")


@on_sqlite
@pytest.mark.parametrize(("table", "column", "value"), [
    ("agentmemory", "created_at", "replace(created_at, ' ', 'T')"), ("agentmemory", "approved_at", "approved_at || 'Z'"),
    ("agentmemory", "content", "CAST(content AS BLOB)"), ("agentmemory", "content", "CAST(x'ff' AS TEXT)"),
    ("agentmemory", "created_at", "'never'"), ("agentmemory", "source_run_id", "upper(source_run_id)"),
    ("agentmemory", "revision", "'one'"), ("sessioncontext", "active_issues", "replace(active_issues, ' ', '  ')"),
    ("agentmemory", "agent_id", "CAST(agent_id AS BLOB)"), ("sessioncontext", "active_issues", "'[\"\\u0066og\", \"rain\"]'"),
])  # fmt: skip
def test_another_spelling_of_the_same_value_in_a_row_is_found(
    story: Team, table: str, column: str, value: str
) -> None:
    with tampering() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        cursor.execute(f"UPDATE memory_{table} SET {column} = {value}")
        broken = found(story)
        cursor.execute("PRAGMA ignore_check_constraints = OFF")
        cursor.execute("PRAGMA defer_foreign_keys = ON")
    assert broken.number is not None


def test_a_row_that_is_gone_is_found(story: Team) -> None:
    session = SessionContext.objects.get()
    with tampering() as cursor:
        cursor.execute("DELETE FROM memory_sessioncontext")
        assert found(story) == Broken(story.project.ledger_number, f"session:{session.pk}", "the row is gone")


def test_a_row_written_outside_the_ledger_is_found(story: Team) -> None:
    memory = AgentMemory.objects.get()
    memory.pk = None
    memory.save(force_insert=True)
    assert found(story) == Broken(None, f"memory:{memory.pk}", "the row was written outside the ledger")
    assert not verify(story.project).valid


def test_a_block_that_was_told_cannot_be_changed_unnoticed(story: Team) -> None:
    for sql in (
        "UPDATE memory_contextsnapshot SET block = block || ' '",
        "UPDATE memory_snapshotrow SET revision = 9",
        "DELETE FROM memory_snapshotrow",
    ):
        with tampering() as cursor:
            cursor.execute(sql)
            broken = found(story)
        assert broken.target.startswith("snapshot:")


# What runs were told


COLUMNS = "project_id, run_id, at, epoch, decisions_only, snapshot_id, compile_error"


def told_and_ended(story: Team) -> tuple[Run, LedgerEvent]:
    """The story's run, told twice more and ended: a second block, and nothing that could be compiled."""
    run = Run.objects.select_related("agent", "project").get()
    build_for_run(run, Limits(max_tokens=100), NOW + timedelta(minutes=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memory.compiling.receipts.compile_for_agent", lambda *_: 1 / 0)
        build_for_run(run, Limits(), NOW + timedelta(minutes=2))
    with change(story.project.pk, story.orchestrator, NOW + timedelta(minutes=3)) as opened:
        finish_run(opened, run.pk, "completed")
    story.project.refresh_from_db()
    return run, LedgerEvent.objects.get(action="run.told")


def test_the_end_of_a_run_proves_what_it_was_told(story: Team) -> None:
    run, event = told_and_ended(story)
    assert (event.target, json.loads(event.after)["receipts"]) == (f"run:{run.pk}", 3)
    assert json.loads(event.after) == proof_of(run).as_json()
    assert fits(story)


def test_the_end_of_a_run_that_was_told_nothing_says_so(story: Team) -> None:
    quiet = start_run(story, "Bo")
    with change(story.project.pk, story.orchestrator, NOW) as opened:
        finish_run(opened, quiet.run_id, "failed")
    event = LedgerEvent.objects.get(action="run.told")
    assert json.loads(event.after) == {"receipts": 0, "sha256": NO_HASH}
    assert fits(story)


@pytest.mark.parametrize("sql", [
    "UPDATE memory_contextreceipt SET epoch = epoch + 1 WHERE id = {first}",
    "UPDATE memory_contextreceipt SET at = {later} WHERE id = {first}",
    "UPDATE memory_contextreceipt SET decisions_only = NOT decisions_only WHERE id = {last}",
    "UPDATE memory_contextreceipt SET compile_error = '' WHERE id = {last}",
    "UPDATE memory_contextreceipt SET snapshot_id = NULL WHERE id = {first}",
    "UPDATE memory_contextreceipt SET snapshot_id = (SELECT max(id) FROM memory_contextsnapshot) WHERE id = {first}",
    "UPDATE memory_contextreceipt SET run_id = '{other}' WHERE id = {first}",
    "UPDATE memory_contextreceipt SET run_id = '{other}'",
    "UPDATE memory_contextreceipt SET id = id + 100 WHERE id = {last}",
    "DELETE FROM memory_contextreceipt WHERE id = {first}",
    "DELETE FROM memory_contextreceipt WHERE id = {last}",
    "DELETE FROM memory_contextreceipt",
    f"INSERT INTO memory_contextreceipt ({COLUMNS}) SELECT {COLUMNS} FROM memory_contextreceipt WHERE id = {{last}}",
])  # fmt: skip
def test_a_receipt_that_was_changed_removed_or_added_is_found_and_named(story: Team, sql: str) -> None:
    run, event = told_and_ended(story)
    ids = list(ContextReceipt.objects.order_by("pk").values_list("pk", flat=True))
    later = "datetime(at, '+1 second')" if SQLITE else "at + interval '1 microsecond'"
    other = start_run(story, "Bo").run_id
    with tampering() as cursor:
        cursor.execute(sql.format(first=ids[0], last=ids[-1], later=later, other=key(other)))
        broken = found(story)
    assert broken.target in (f"run:{run.pk}", f"receipt:{ids[0]}")
    if broken.target.startswith("run:"):
        assert broken.number == event.number


def test_a_block_that_was_rewritten_with_its_hashes_is_found(story: Team) -> None:
    run, event = told_and_ended(story)
    text = "Another block."
    with tampering() as cursor:
        cursor.execute(
            "UPDATE memory_contextsnapshot SET block = %s, sha256 = %s WHERE id = (SELECT min(id) FROM memory_contextsnapshot)",
            [text, hashlib.sha256(text.encode()).hexdigest()],
        )
        assert found(story) == Broken(
            event.number,
            f"run:{run.pk}",
            f"what the run was told is not what event {event.number} wrote down",
        )


def test_another_projects_fault_is_not_ours(story: Team) -> None:
    other = create_project(actor=story.owner, name="Other", slug="other", now=NOW)
    with tampering() as cursor:
        cursor.execute("UPDATE memory_project SET name = 'x' WHERE slug = 'other'")
        assert fits(story)
        assert first_broken(other).target == f"project:{other.pk}"
    assert Decision.objects.filter(project=other).count() == 0


# The command


def test_the_command_says_nothing_on_standard_output_when_all_fits(story: Team, capsys) -> None:
    call_command("verify_ledger")
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"lighthouse: {story.project.ledger_number} events, valid\n")


def test_the_command_prints_the_first_broken_row_and_fails(story: Team, capsys) -> None:
    create_project(actor=story.owner, name="Other", slug="other", now=NOW)
    with tampering() as cursor:
        cursor.execute("UPDATE memory_ledgerevent SET reason = 'x' WHERE number = 3 AND project_id = %s",
                       [key(story.project.pk)])  # fmt: skip
        target = events(story)[2].target
        with pytest.raises(CommandError, match="1 of 2 ledgers do not fit"):
            call_command("verify_ledger")
    out, _ = capsys.readouterr()
    assert out == f"lighthouse: event 3 {target}: its content does not match its hash\n"


def test_a_checkpoint_file_is_written_and_checked(story: Team, tmp_path, capsys) -> None:
    file = tmp_path / "kept.json"
    call_command("verify_ledger", "lighthouse", "--checkpoint", str(file))
    head = checkpoint(story.project)
    assert json.loads(file.read_text())["checkpoints"] == [
        {"project": head.project, "number": head.number, "hash": head.hash}
    ]
    call_command("verify_ledger", "--against", str(file))
    call_command("verify_ledger", "lighthouse", "--checkpoint", "-")
    assert json.loads(capsys.readouterr().out)["checkpoints"][0]["number"] == head.number
    text = file.read_text()
    file.write_text(text.replace(head.hash, "0" * 64))
    with pytest.raises(CommandError, match="1 of 1"):
        call_command("verify_ledger", "--against", str(file))
    assert "the chain does not pass through the checkpoint" in capsys.readouterr().out
    file.write_text(text.replace(head.project, "0" * 32))
    with pytest.raises(CommandError, match="1 of 2"):
        call_command("verify_ledger", "--against", str(file))
    with pytest.raises(CommandError, match="has no checkpoint of lighthouse"):
        call_command("verify_ledger", "lighthouse", "--against", str(file))


def test_a_broken_ledger_gets_no_checkpoint(story: Team, tmp_path) -> None:
    file = tmp_path / "kept.json"
    with tampering() as cursor:
        cursor.execute("UPDATE memory_project SET name = 'x'")
        with pytest.raises(CommandError):
            call_command("verify_ledger", "--checkpoint", str(file))
    assert not file.exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "agentweaver.ledger-checkpoints.v1", "checkpoints": [{}]}']
)
def test_a_file_that_is_no_checkpoint_is_said_to_be_none(story: Team, tmp_path, text: str) -> None:
    file = tmp_path / "kept.json"
    file.write_text(text)
    with pytest.raises(CommandError, match="is not a checkpoint file"):
        call_command("verify_ledger", "--against", str(file))
    with pytest.raises(CommandError, match="could not be read"):
        call_command("verify_ledger", "--against", str(tmp_path / "none"))


def test_the_command_exits_with_one_on_a_terminal(tmp_path) -> None:
    """The whole way: a database of its own, a byte changed on disk, the exit code a script sees."""
    here = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
        "SECRET_KEY": "x",
        "DEBUG": "true",
    }

    def manage(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments], env=here, capture_output=True, text=True
        )

    assert manage("migrate", "--verbosity", "0").returncode == 0
    assert manage("shell", "-c", (
        "from governance.models import User; from governance.deciding.projects import create_project; from memory.actors import Human;"
        "from django.utils import timezone; User.objects.create_user('owner');"
        "create_project(actor=Human('owner'), name='P', slug='p', now=timezone.now())"
    )).returncode == 0  # fmt: skip
    fine = manage("verify_ledger")
    assert (fine.returncode, fine.stdout, fine.stderr) == (0, "", "p: 2 events, valid\n")
    data = (tmp_path / "db.sqlite3").read_bytes()
    at = data.rindex(b"member.grantowner")
    (tmp_path / "db.sqlite3").write_bytes(data[:at] + b"nember.grant" + data[at + 12 :])
    torn = manage("verify_ledger", "p")
    assert (torn.returncode, torn.stdout) == (
        1,
        "p: event 2 member:owner: its content does not match its hash\n",
    )


# Side by side with writers


@pytest.mark.django_db(transaction=True)
def test_verifying_sees_one_moment_and_keeps_no_writer_waiting(story: Team, monkeypatch) -> None:
    """On SQLite in memory all connections are one database without WAL, so writers are shown on PostgreSQL only."""
    before = story.project.ledger_number
    real = verification._check_rows

    def write() -> None:
        try:
            record_memory(
                project_id=story.project.pk, actor=story.owner, agent_name="Ana", type="update", content="x", now=NOW
            )  # fmt: skip
        finally:
            connection.close()

    def check_after_a_write(project, states):
        if not SQLITE:
            writer = threading.Thread(target=write)
            writer.start()
            writer.join(timeout=10)
            assert not writer.is_alive()
        real(project, states)

    monkeypatch.setattr(verification, "_check_rows", check_after_a_write)
    result = verify(story.project)
    assert (result.valid, result.checked) == (True, before)
    assert Project.objects.get().ledger_number == (before if SQLITE else before + 1)
