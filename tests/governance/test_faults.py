"""Killed at any moment, the database holds all of a change or none, and everything acknowledged (SPEC 10).

The short form runs with every test run, the long form with `make torture` (AGENTWEAVER_TORTURE=1); both print their counts.
"""

from __future__ import annotations

import http.client
import random
import signal
import threading
import time
from collections import Counter
from itertools import count
from typing import Any
from uuid import uuid4

from tests.races.arena import LONG, RACE, Arena, Contender
from tests.races.servers import Server, locked, serving

pytestmark = RACE

KILLS = 35 if LONG else 2
WRITERS = 3
PROCESSES = 8 if LONG else 4
WRITES = 200 if LONG else 20

Acks = list[list[Any]]


def project_of(arena: Arena, owners: int = 1) -> str:
    return str(arena.do("found", owners=owners, slug=f"faults-{uuid4()}"))


def settle(arena: Arena, project: str, acks: Acks) -> dict[str, Any]:
    """The chain fits, every change is whole, and nothing that was acknowledged is missing."""
    found = dict(arena.do("ledger", project=project))
    assert found["broken"] is None
    assert arena.do("half_done", project=project) == []
    assert arena.do("missing", project=project, acks=acks) == []
    return found


def test_the_check_for_lost_writes_finds_a_lost_write(processes: Arena) -> None:
    """A test that cannot fail proves nothing."""
    project = project_of(processes)
    processes.do("remember", project=project, who="owner-0", content="Kept.")
    [row] = processes.do("rows", project=project, kind="memory")
    kept, lost = ["_record", row["id"], "Kept."], ["_record", row["id"], "Lost."]
    other = [["_submit", 1, "x"], ["_decide", 1, "merged", "owner-0"], ["_approve", row["id"], 1],
             ["_edit", row["id"], 2, "x"], ["_session", 1, 1, "x"]]  # fmt: skip
    assert processes.do("missing", project=project, acks=[kept]) == []
    assert processes.do("missing", project=project, acks=[kept, lost, *other]) == [
        str(a) for a in (lost, *other)
    ]


# Killed at every statement


def test_a_merge_killed_after_any_statement_is_whole_or_has_not_happened(processes: Arena) -> None:
    project = project_of(processes)
    deaths = 0
    for statements in count(1):
        given = {"project": project, "who": "owner-0", "slug": f"e-{statements}", "content": "x"}
        entry = processes.do("submit", **given)["id"]
        merge = {"project": project, "who": "owner-0", "entry": entry}
        if not processes.do("killed_after", statements=statements, then="merge", arguments=merge):
            break
        deaths += 1
        settle(processes, project, [])
        [row] = [
            row for row in processes.do("rows", project=project, kind="entry") if row["id"] == str(entry)
        ]
        assert (row["status"], row["memory_id"]) == ("pending", None)
    assert len(processes.do("rows", project=project, kind="memory")) == 1
    assert deaths > 5
    print(f"\na merge killed after each of its {deaths} statements")


def test_a_completion_killed_after_any_statement_is_finished_by_repeating_it(processes: Arena) -> None:
    project = project_of(processes)
    processes.do("open_session", project=project, who="owner-0", session_id="s")
    ended: Counter[str] = Counter()
    for statements in count(1):
        run = processes.do("register", project=project, who="orchestrator")["run"]
        entry = {"project": project, "who": f"run:{run}", "slug": f"e-{statements}", "content": "x"}
        processes.do("submit", **entry)
        completion = {"project": project, "who": "orchestrator", "run": run}
        if not processes.do("killed_after", statements=statements, then="complete", arguments=completion):
            break
        assert processes.do("ledger", project=project)["broken"] is None
        [row] = [row for row in processes.do("rows", project=project, kind="run") if row["id"] == run]
        ended[row["status"]] += 1
        report = processes.do("complete", **completion)
        assert len(report["promoted"]) == 1
        assert report["session"] == {"session_id": "s", "ended": False}
        assert report == processes.do("complete", **completion)
    settle(processes, project, [])
    [session] = processes.do("rows", project=project, kind="session")
    assert session["summary"].count("Promoted 1, waiting 0.") == statements
    assert len(processes.do("rows", project=project, kind="memory")) == statements
    assert min(ended["running"], ended["completed"]) > 5
    print(f"\na completion killed after each of its {ended.total()} statements: {dict(ended)}")


# Killed writers


def test_killed_writers_leave_whole_changes_and_all_they_acknowledged(processes: Arena) -> None:
    project = project_of(processes)
    acks: Acks = []
    chance = random.Random(7)
    for turn in range(KILLS):
        acks += killed_at_random(processes, project, turn, chance)
        found = settle(processes, project, acks)
    print(
        f"\n{KILLS * WRITERS} writers killed: {len(acks)} acknowledged writes kept, {found['checked']} events fit"
    )


def killed_at_random(arena: Arena, project: str, turn: int, chance: random.Random) -> Acks:
    writers = [Contender(arena.url or "") for _ in range(WRITERS)]
    for number, writer in enumerate(writers):
        assert "ready" in writer.listen()
        orders = {"project": project, "who": "owner-0", "seed": turn * WRITERS + number}
        writer.start(("hammer_for_ever", orders))
    killers = [threading.Timer(chance.uniform(0.3, 1.2), writer.process.kill) for writer in writers]
    for killer in killers:
        killer.start()
    outcomes = [writer.listen() for writer in writers]
    for writer in writers:
        writer.stop()
    assert outcomes == [{"gone": -signal.SIGKILL}] * WRITERS
    return [ack for writer in writers for ack in writer.acks]


# Eight processes at once


def test_processes_that_write_approve_and_reject_at_once_lose_nothing(processes: Arena) -> None:
    project = project_of(processes, owners=PROCESSES)
    orders = [
        ("hammer", {"project": project, "who": f"owner-{n}", "writes": WRITES, "seed": n})
        for n in range(PROCESSES)
    ]
    processes.crowd(PROCESSES + 1)
    for contender in processes.contenders:
        contender.acks.clear()
    *lost, seen = processes.race(*orders, ("verify_for", {"project": project, "seconds": 2.0}))
    acks = [ack for contender in processes.contenders for ack in contender.acks]
    assert all(seen["ok"]), "verification beside writers saw a ledger that does not fit"
    found = settle(processes, project, acks)
    decided = Counter(ack[1] for ack in acks if ack[0] == "_decide")
    assert set(decided.values()) <= {1}, "an entry was decided twice"
    refused = sum((Counter(outcome["ok"]) for outcome in lost), Counter())
    assert len(acks) + refused.total() == PROCESSES * WRITES
    told = dict(Counter(ack[0].strip("_") for ack in acks))
    print(f"\n{PROCESSES} processes x {WRITES}: {told} acknowledged and kept; refused {dict(refused)};"
          f" {found['checked']} events fit; {len(seen['ok'])} verifications beside them")  # fmt: skip


# The server itself


def test_a_killed_server_leaves_whole_changes_and_all_it_acknowledged(processes: Arena) -> None:
    project = project_of(processes)
    token = processes.do("token", who="owner-0")
    acks: Acks = []
    chance = random.Random(11)
    kills = max(1, KILLS // 2)
    for turn in range(kills):
        with serving(processes.url or "") as server:
            acks += clients_until_killed(server, project, token, turn, chance.uniform(0.5, 2.0))
        found = settle(processes, project, acks)
    assert acks
    print(f"\n{kills} servers killed: {len(acks)} acknowledged requests kept, {found['checked']} events fit")


def clients_until_killed(server: Server, project: str, token: str, turn: int, seconds: float) -> Acks:
    acks: Acks = []
    threads = [
        threading.Thread(target=write_until_killed, args=(server, project, token, f"{turn}-{name}", acks))
        for name in ("Ana", "Bo", "Cy")
    ]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    server.kill()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    return acks


def write_until_killed(server: Server, project: str, token: str, name: str, acks: Acks) -> None:
    """Submit and merge over HTTP until nobody answers; only what was answered counts."""
    base = f"/api/projects/{project}"
    try:
        for number in count():
            slug = f"{name}-{number}".lower()
            body = {"agent_name": name, "slug": slug, "type": "learning", "content": slug}
            status, entry = server.ask("POST", f"{base}/decisions/inbox", token, body)
            assert status == 201, entry
            acks.append(["_submit", entry["id"], slug])
            status, merged = server.ask(
                "POST", f"{base}/decisions/inbox/{entry['id']}/merge", token, {"revision": 1}
            )
            assert status == 200, merged
            acks.append(["_decide", entry["id"], "merged", "owner-0"])
    except (OSError, http.client.HTTPException):
        return


# A lock that is not to be had


def test_a_writer_who_cannot_get_the_lock_in_time_is_told_so_and_may_try_again(processes: Arena) -> None:
    project = project_of(processes)
    token = processes.do("token", who="owner-0")
    patience = {"SQLITE_TIMEOUT": "0.3", "DATABASE_LOCK_TIMEOUT": "0.3"}
    body = {"type": "learning", "content": "Patience."}
    with serving(processes.url or "", **patience) as server:
        path = f"/api/projects/{project}/agents/Ana/memory"
        with locked(processes.url or "", project):
            read = server.ask("GET", path, token)
            status, problem = server.ask("POST", path, token, body)
        again = server.ask("POST", path, token, body)
    assert read[0] == 200, read
    assert (status, problem["code"]) == (503, "unavailable")
    assert again[0] == 201
    assert len(processes.do("rows", project=project, kind="memory")) == 1
    settle(processes, project, [])
