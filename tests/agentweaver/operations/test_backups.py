"""The commands of docs/operations.md, run as they stand there: back-up beside writers, restore, checkpoints (SPEC 10)."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connection

from tests.governance.conftest import crowd, migrated, processes
from tests.races.arena import HERE, LONG, RACE, Arena, Contender, database_url, environment
from tests.races.servers import SQLITE

__all__ = ["crowd", "migrated", "processes"]

pytestmark = RACE

WRITERS = 3
SECONDS = 5.0 if LONG else 1.0
GUIDE = (HERE / "docs/operations.md").read_text(encoding="utf-8")
ENGINE = "SQLite" if SQLITE else "PostgreSQL"


def block(name: str) -> str:
    """The commands that stand in the guide under `# tested: name`."""
    [found] = re.findall(rf"```sh\n# tested: {name}\n(.*?)```", GUIDE, re.DOTALL)
    return (
        str(found)
        .replace(".venv/bin/python ", f"{sys.executable} ")
        .replace("python3 ", f"{sys.executable} ")
    )


def run(name: str, url: str = "", status: int = 0, /, **variables: str) -> str:
    """Runs a block of the guide; what it said."""
    known = {**environment(url), **postgres(), **variables}
    done = subprocess.run(
        ["sh", "-eu", "-c", block(name)], cwd=HERE, env=known, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == status, (name, done.stdout, done.stderr)
    return done.stdout + done.stderr


def postgres() -> dict[str, str]:
    """How PostgreSQL's own programs find the tests' server."""
    given = connection.settings_dict
    told = {
        "PGHOST": given["HOST"],
        "PGPORT": given["PORT"],
        "PGUSER": given["USER"],
        "PGPASSWORD": given["PASSWORD"],
    }
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    path = {"PATH": f"{found[-1]}:{os.environ['PATH']}"} if found else {}
    return {} if SQLITE else {name: str(value) for name, value in told.items() if value} | path


@pytest.fixture
def project(processes: Arena) -> str:
    return str(processes.do("found", owners=1, slug=f"backups-{uuid4()}"))


@pytest.fixture
def restored(processes: Arena, tmp_path: Path) -> Any:
    """Where a restore goes: the variable of its commands, and its address; the database is gone afterwards."""
    if SQLITE:
        file = tmp_path / "restored.sqlite3"
        yield {"DATABASE": str(file)}, f"sqlite:///{file}"
        return
    name = f"restored_{uuid4().hex}"
    yield {"RESTORED": name}, database_url(name)
    with connection.cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def source(arena: Arena) -> str:
    """What the commands call DATABASE."""
    return (arena.url or "").removeprefix("sqlite:///") if SQLITE else str(connection.settings_dict["NAME"])


def written_beside(arena: Arena, project: str, work: Any) -> list[Any]:
    """Does the work while writers write; what they had been told before it began."""
    writers = [Contender(arena.url or "") for _ in range(WRITERS)]
    try:
        for seed, writer in enumerate(writers):
            assert "ready" in writer.listen()
            writer.start(("hammer_for_ever", {"project": project, "who": "owner-0", "seed": seed}))
        time.sleep(SECONDS)
        before = arena.do("ledger", project=project)["number"]
        work()
        time.sleep(0.2)
        return [before, arena.do("ledger", project=project)["number"]]
    finally:
        for writer in writers:
            writer.stop()


def test_a_backup_beside_writers_restores_to_a_ledger_that_fits_and_guards_itself(
    processes: Arena, project: str, restored: Any, tmp_path: Path
) -> None:
    where, url = restored
    checkpoints, backup = tmp_path / "checkpoints", str(tmp_path / "backup")
    checkpoints.mkdir()
    run("checkpoint", processes.url or "", CHECKPOINTS=str(checkpoints))
    names = {"DATABASE": source(processes), "BACKUP": backup}
    before, after = written_beside(processes, project, lambda: run(f"back up {ENGINE}", **names))
    assert before > 5
    assert after > before

    run(f"restore {ENGINE}", BACKUP=backup, **where)
    said = run("after a restore", url)
    assert re.search(r"backups-\S+: \d+ events, valid", said)
    run("checkpoint", url, CHECKPOINTS=str(checkpoints))
    copy = Contender(url)
    try:
        assert "ready" in copy.listen()
        found = copy.play(("ledger", {"project": project}))["ok"]
        assert (found["broken"], found["number"] >= before) == (None, True)
        assert copy.play(("half_done", {"project": project}))["ok"] == []
        remembered = {"project": project, "who": "owner-0", "content": "After."}
        assert "ok" in copy.play(("remember", remembered))
        assert copy.play(("ledger", {"project": project}))["ok"]["number"] == found["number"] + 1
    finally:
        copy.stop()
    assert asked(url, TRIGGERS) == asked(processes.url or "", TRIGGERS)
    assert asked(url, EPOCH.format(project=uuid(project)))[0][0] > 1_000_000
    for statement in ("UPDATE memory_ledgerevent SET reason = 'x'", "DELETE FROM memory_ledgerevent"):
        with pytest.raises((sqlite3.IntegrityError, psycopg.Error), match="append-only"):
            asked(url, statement)


TRIGGERS = (
    "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
    if SQLITE
    else "SELECT tgname, pg_get_triggerdef(oid), tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgname"
)
EPOCH = "SELECT epoch FROM memory_project WHERE id = '{project}'"


def uuid(project: str) -> str:
    return project.replace("-", "") if SQLITE else project


def asked(url: str, statement: str) -> list[Any]:
    """One statement past everything of ours but the database itself."""
    if SQLITE:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as line:
            return line.execute(statement).fetchall()
    given = connection.settings_dict
    login = {
        "host": given["HOST"],
        "port": given["PORT"] or None,
        "user": given["USER"],
        "password": given["PASSWORD"],
    }
    with psycopg.connect(dbname=url.rsplit("/", 1)[-1], **login) as line:
        return line.execute(statement).fetchall()


def test_a_checkpoint_shows_that_a_restore_lost_events(
    processes: Arena, project: str, restored: Any, tmp_path: Path
) -> None:
    where, url = restored
    backup = str(tmp_path / "backup")
    run(f"back up {ENGINE}", DATABASE=source(processes), BACKUP=backup)
    processes.do("remember", project=project, who="owner-0", content="After the back-up.")
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    run("checkpoint", processes.url or "", CHECKPOINTS=str(checkpoints))
    run(f"restore {ENGINE}", BACKUP=backup, **where)
    time.sleep(1.1)
    said = run("checkpoint", url, 1, CHECKPOINTS=str(checkpoints))
    assert "ledgers do not fit" in said
    assert len(list(checkpoints.iterdir())) == 1
