"""Compiles that ask a streaming replica first: a real primary with a real standby, which is held back and taken away (SPEC 11)."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from governance.models import User
from governance.people.credentials import issue_personal_token, revoke_personal_token
from memory import replica
from memory.compiling.compiler import CompiledContext, compile_context, compile_decisions
from memory.models import AgentMemory, Project
from memory.recording import record_memory
from tests.conftest import NOW, Team

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "replica"])

CLUSTERS = Path(__file__).parents[3] / ".ci" / "postgres"
PATIENCE = 30.0


# The standby


def cluster() -> Path:
    """The throw-away cluster of `.ci/postgres run`, if these tests run on one; a replica of another is nobody's to make."""
    folder = os.environ.get("AGENTWEAVER_PGDIR", "")
    if connection.vendor != "postgresql" or str(connection.settings_dict["HOST"]) != folder:
        pytest.skip("needs a PostgreSQL that `.ci/postgres run` started, to make a replica of it")
    return Path(folder)


@pytest.fixture(scope="module")
def standby() -> Iterator[None]:
    """The product with a streaming replica of the whole cluster in its settings; one test process has it at a time."""
    folder = cluster()
    with (folder / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run([CLUSTERS, "standby"], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        given = deepcopy(connection.settings_dict)
        given["TEST"]["MIRROR"] = "default"
        connections.settings[replica.REPLICA] = {**given, "HOST": made.stdout.strip()}
        yield
        del connections.settings[replica.REPLICA]


@pytest.fixture
def streaming(standby: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The replica, caught up and left as it was."""
    monkeypatch.setattr(replica, "_resting", 0)
    copy = connections[replica.REPLICA]
    host = copy.settings_dict["HOST"]
    catch_up()
    yield copy
    copy.close()
    copy.settings_dict["HOST"] = host
    execute("SELECT pg_wal_replay_resume()")
    copy.close()


def execute(sql: str, alias: str = replica.REPLICA) -> Any:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def catch_up() -> None:
    """Wait until the replica has everything that is committed by now."""
    written = execute("SELECT pg_current_wal_lsn()", replica.PRIMARY)
    until = time.monotonic() + PATIENCE
    while not execute(f"SELECT pg_last_wal_replay_lsn() >= '{written}'"):
        assert time.monotonic() < until, "The replica did not catch up."
        time.sleep(0.02)


def hold_back() -> None:
    """From now on the replica takes nothing in; what is committed on the primary stays unknown to it."""
    execute("SELECT pg_wal_replay_pause()")
    until = time.monotonic() + PATIENCE
    while execute("SELECT pg_get_wal_replay_pause_state()") != "paused":
        assert time.monotonic() < until, "The replica did not pause."
        time.sleep(0.02)


def asked(work: Callable[[], CompiledContext]) -> tuple[CompiledContext, int, int]:
    """A compile, and how many statements it asked of the primary and of the replica."""
    with CaptureQueriesContext(connection) as of_primary, CaptureQueriesContext(connections[replica.REPLICA]) as of_replica:  # fmt: skip
        compiled = work()
    return compiled, len(of_primary), len(of_replica)


def remember(team: Team, content: str) -> AgentMemory:
    return record_memory(
        project_id=team.project.pk, actor=team.contributor, agent_name="Ana", type="learning", importance="high",
        content=content, now=NOW,
    )  # fmt: skip


def compiled_now(team: Team) -> CompiledContext:
    return compile_context(Project.objects.get(pk=team.project.pk), "Ana")


# What it may answer


def test_a_replica_that_keeps_up_answers_for_the_primary(team: Team, streaming: Any) -> None:
    remember(team, "Told by both.")
    catch_up()
    project = Project.objects.get(pk=team.project.pk)
    compiled, of_primary, of_replica = asked(lambda: compile_context(project, "Ana"))
    # The agent's name is the primary's to know.
    assert (of_primary, of_replica) == (1, 1)
    assert asked(lambda: compile_decisions(project))[1:] == (0, 1)
    with transaction.atomic():
        of_the_primary, *counts = asked(lambda: compile_context(project, "Ana"))
    assert counts == [2, 0]
    assert of_the_primary == compiled
    assert "Told by both." in (compiled.text or "")


def test_nobody_is_answered_from_an_older_epoch(team: Team, streaming: Any) -> None:
    first = remember(team, "Known to both.")
    catch_up()
    hold_back()
    second = remember(team, "Known to the primary.")
    project = Project.objects.get(pk=team.project.pk)
    compiled, of_primary, of_replica = asked(lambda: compile_context(project, "Ana"))
    assert (compiled.epoch, {row.id for row in compiled.included}) == (project.epoch, {first.pk, second.pk})
    assert (of_primary, of_replica) == (3, 1)
    execute("SELECT pg_wal_replay_resume()")
    catch_up()
    again, *counts = asked(lambda: compile_context(project, "Ana"))
    assert (again, counts) == (compiled, [1, 1])


def test_a_caller_that_names_the_epoch_of_its_write_sees_the_write(
    team: Team, streaming: Any, client: Any
) -> None:
    owner = User.objects.get(username="owner")
    token = issue_personal_token(owner, now=NOW).token
    catch_up()
    hold_back()
    remember(team, "Written a moment ago.")
    epoch = Project.objects.get(pk=team.project.pk).epoch
    address = f"/api/projects/{team.project.slug}/agents/Ana/context"
    answer = client.get(f"{address}?min_epoch={epoch}", headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()["epoch"]) == (200, epoch)
    assert "Written a moment ago." in answer.json()["context"]


def test_what_was_revoked_is_gone_at_once(team: Team, streaming: Any, client: Any) -> None:
    viewer = User.objects.get(username="viewer")
    issued = issue_personal_token(viewer, now=NOW)
    headers = {"Authorization": f"Bearer {issued.token}"}
    address = f"/api/projects/{team.project.slug}/agents/Ana/context"
    catch_up()
    assert client.get(address, headers=headers).status_code == 200
    hold_back()
    revoke_personal_token(viewer, issued.credential.pk, NOW)
    assert client.get(address, headers=headers).status_code == 401


# What it costs when it is not there


def taken_away(copy: Any) -> None:
    """It cannot be reached any more."""
    copy.close()
    copy.settings_dict["HOST"] += "/nowhere"


def cut_off(copy: Any) -> None:
    """It ends the connection, as it does when a query stands in the way of what it has to take in, or when it restarts."""
    pid = execute("SELECT pg_backend_pid()")
    with psycopg.connect(**{**copy.get_connection_params(), "cursor_factory": psycopg.Cursor}) as another:
        another.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


@pytest.mark.parametrize("fail", [taken_away, cut_off])
def test_a_replica_that_fails_costs_a_warning_and_no_answer(
    team: Team, streaming: Any, caplog: pytest.LogCaptureFixture, fail: Callable[[Any], None]
) -> None:
    remember(team, "Told all the same.")
    catch_up()
    assert compiled_now(team) == compiled_now(team)
    fail(streaming)
    for _ in range(2):
        assert "Told all the same." in (compiled_now(team).text or "")
    # The second compile left it alone.
    assert [record.name for record in caplog.records] == ["memory.replica"]


def test_a_replica_that_failed_is_asked_again_after_its_rest(
    team: Team, streaming: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "REST", 2)
    project = Project.objects.get(pk=team.project.pk)
    cut_off(streaming)
    compile_decisions(project)
    counts = [asked(lambda: compile_decisions(project))[1:] for _ in range(3)]
    assert counts == [(1, 0), (1, 0), (0, 1)]
