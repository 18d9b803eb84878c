"""gunicorn as gunicorn.conf.py sets it up, really started on either database (SPEC 10)."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from tests.agentweaver.operations.test_probes import TOKEN
from tests.governance.conftest import crowd, migrated, processes
from tests.races.arena import LONG, RACE, Arena
from tests.races.servers import SQLITE, Server, locked, serving

__all__ = ["crowd", "migrated", "processes"]

pytestmark = RACE

CLIENTS = 8
EACH = 60 if LONG else 8
EARNEST = {"DEBUG": "false", "HTTPS": "false", "ALLOWED_HOSTS": "127.0.0.1", "METRICS_TOKEN": TOKEN}


@pytest.fixture
def project(processes: Arena) -> str:
    return str(processes.do("found", owners=1, slug=f"serving-{uuid4()}"))


@pytest.fixture
def token(processes: Arena, project: str) -> str:
    return str(processes.do("token", who="owner-0"))


@pytest.fixture
def serve(processes: Arena, tmp_path: Path) -> Callable[..., Any]:
    """A server whose files and log lie in the test's own folder."""
    (tmp_path / "static").mkdir()
    own = {**EARNEST, "TMPDIR": str(tmp_path), "STATIC_ROOT": str(tmp_path / "static")}
    return lambda **more: serving(processes.url or "", tmp_path / "log", **{**own, **more})


def log_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log").read_text(encoding="utf-8").splitlines()]


def scraped(server: Server) -> dict[str, float]:
    caller = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    caller.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    told = caller.getresponse().read().decode()
    caller.close()
    return {
        name: float(value) for name, value in re.findall(r"^(agentweaver_\S+) (\S+)$", told, re.MULTILINE)
    }


def served(server: Server) -> float:
    """Requests counted by all workers together."""
    return sum(
        value
        for name, value in scraped(server).items()
        if name.startswith("agentweaver_request_seconds_count")
    )


def until(true: Callable[[], bool]) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it never came true")


def everybody_writes(server: Server, project: str, token: str) -> Counter[int]:
    """Clients side by side, each recording, submitting, merging and reading; how often each status came."""

    def client(number: int) -> Counter[int]:
        found: Counter[int] = Counter()
        base, agent = f"/api/projects/{project}", f"Agent {number}"
        for turn in range(EACH):
            text = {"type": "learning", "content": f"{number}-{turn}"}
            entry = {**text, "agent_name": agent, "slug": f"s-{number}-{turn}"}
            status, made = server.ask("POST", f"{base}/decisions/inbox", token, entry)
            found[status] += 1
            path = f"{base}/decisions/inbox/{made['id']}/merge"
            found[server.ask("POST", path, token, {"revision": 1})[0]] += 1
            found[server.ask("POST", f"{base}/agents/Agent%20{number}/memory", token, text)[0]] += 1
            found[server.ask("GET", f"{base}/agents/Agent%20{number}/context", token)[0]] += 1
        return found

    with ThreadPoolExecutor(CLIENTS) as pool:
        return sum(pool.map(client, range(CLIENTS)), Counter())


def test_eight_clients_beside_each_other_are_all_served_by_both_workers_and_counted_once(
    processes: Arena, serve: Callable[..., Any], project: str, token: str, tmp_path: Path
) -> None:
    with serve() as server:
        assert len(server.workers()) == 2
        found = everybody_writes(server, project, token)
        assert found == {201: 2 * CLIENTS * EACH, 200: 2 * CLIENTS * EACH}
        assert served(server) == 4 * CLIENTS * EACH
        slots = sorted(file.name for file in tmp_path.glob("agentweaver-metrics-*/*.db"))
        assert slots == ["counter_0.db", "counter_1.db", "histogram_0.db", "histogram_1.db"]
        assert server.stop() == 0
    assert list(tmp_path.glob("agentweaver-metrics-*")) == []
    assert processes.do("ledger", project=project)["broken"] is None
    lines = log_of(tmp_path)
    assert len([line for line in lines if line["logger"] == "agentweaver.access"]) == 4 * CLIENTS * EACH
    assert [line for line in lines if line["level"] not in ("INFO", "DEBUG")] == []


def test_a_stop_lets_a_write_finish_that_has_begun(
    processes: Arena, serve: Callable[..., Any], project: str, token: str, tmp_path: Path
) -> None:
    answers: list[Any] = []
    path, body = f"/api/projects/{project}/agents/Ana/memory", {"type": "learning", "content": "Kept."}
    with serve() as server:
        with locked(processes.url or "", project):
            writer = Thread(target=lambda: answers.append(server.ask("POST", path, token, body)))
            writer.start()
            until(lambda: waits_for_the_lock(server))
            server.process.send_signal(signal.SIGTERM)
            until(lambda: any("Handling signal: term" in line["message"] for line in log_of(tmp_path)))
            assert answers == []
        writer.join(timeout=60)
        assert server.process.wait(timeout=60) == 0
    assert answers[0][0] == 201
    assert [row["content"] for row in processes.do("rows", project=project, kind="memory")] == ["Kept."]


def waits_for_the_lock(server: Server) -> bool:
    """Whether a request has got as far as it can. SQLite tells nobody; a worker has its file open for as long as it answers one."""
    if not SQLITE:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            return bool(cursor.fetchone()[0])
    open_files = [file for pid in server.workers() for file in Path(f"/proc/{pid}/fd").iterdir()]
    return any(str(file.readlink()).endswith("db.sqlite3") for file in open_files if file.is_symlink())


def test_a_worker_that_dies_is_replaced_and_its_figures_stay(
    serve: Callable[..., Any], project: str, token: str, tmp_path: Path
) -> None:
    with serve() as server:
        for _ in range(20):
            assert server.ask("GET", f"/api/projects/{project}", token)[0] == 200
        before, files = server.workers(), set(tmp_path.glob("agentweaver-metrics-*/*"))
        assert served(server) == 20
        os.kill(before[0], signal.SIGKILL)
        until(lambda: len(server.workers()) == 2 and server.workers() != before)
        for _ in range(20):
            assert server.ask("GET", f"/api/projects/{project}", token)[0] == 200
        assert served(server) == 40
        assert {file.name for file in tmp_path.glob("agentweaver-metrics-*/*")} <= {
            "counter_0.db", "counter_1.db", "histogram_0.db", "histogram_1.db",
        }  # fmt: skip
        assert files


def test_a_folder_of_figures_that_was_tidied_away_keeps_nobody_from_working(
    serve: Callable[..., Any], project: str, token: str, tmp_path: Path
) -> None:
    with serve() as server:
        assert server.ask("GET", f"/api/projects/{project}", token)[0] == 200
        [folder] = tmp_path.glob("agentweaver-metrics-*")
        shutil.rmtree(folder)
        asked = [
            server.ask("GET", f"/api/projects/{project}/{path}", token)[0]
            for path in ("runs", "nothing") * 10
        ]
        before = server.workers()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        until(lambda: len(server.workers()) == 2 and set(server.workers()).isdisjoint(before))
        asked += [
            server.ask("GET", f"/api/projects/{project}/{path}", token)[0] for path in ("runs", "nothing")
        ]
        assert asked == [200, 404] * 11
        assert served(server) == 2


def test_workers_are_replaced_after_so_many_requests_without_anybody_noticing(
    serve: Callable[..., Any], project: str, token: str
) -> None:
    with serve(WEB_MAX_REQUESTS="40") as server:
        first = server.workers()
        found = everybody_writes(server, project, token)
        assert set(found) == {200, 201}
        assert set(server.workers()).isdisjoint(first)
        assert served(server) == 4 * CLIENTS * EACH


@pytest.mark.skipif(SQLITE, reason="SQLite has no pool")
def test_a_pool_smaller_than_the_threads_serves_them_all(
    processes: Arena, serve: Callable[..., Any], project: str, token: str
) -> None:
    name = f"pool-{uuid4()}"
    with serve(DATABASE_POOL_SIZE="2", WEB_THREADS="6", PGAPPNAME=name) as server:
        found = everybody_writes(server, project, token)
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", [name])
            connections = cursor.fetchone()[0]
    assert found == {201: 2 * CLIENTS * EACH, 200: 2 * CLIENTS * EACH}
    assert 1 <= connections <= 2 * 2
    assert processes.do("ledger", project=project)["broken"] is None


# What is no request


def ask_raw(server: Server, sent: bytes) -> tuple[int, bytes]:
    """Bytes as they are; the status and the body of the answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        line.sendall(sent)
        line.shutdown(socket.SHUT_WR)
        answer = http.client.HTTPResponse(line)
        answer.begin()
        return answer.status, answer.read()


def test_bodies_and_heads_of_any_kind_are_refused_and_never_a_fault(
    serve: Callable[..., Any], project: str, token: str, tmp_path: Path
) -> None:
    big = b'{"name": "' + b"x" * 3_000 + b'"}'
    head = f"POST /api/projects HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n".encode()
    get = head.replace(b"POST", b"GET")
    chunked, sized = b"Transfer-Encoding: chunked\r\n", b"Content-Length: %d\r\n"
    good = json.dumps({"name": "In pieces", "slug": f"pieces-{uuid4()}"}).encode()
    with serve(MAX_BODY_BYTES="2000", MAX_UPLOAD_BYTES="5000") as server:
        asked = {
            "chunked": head + chunked + b"\r\n" + pieces(good),
            "large": head + sized % len(big) + b"\r\n" + big,
            "large and chunked": head + chunked + b"\r\n" + pieces(big),
            "endless": head + chunked + b"\r\n" + pieces(b"x" * 1_000_000),
            "no chunk": head + chunked + b"\r\nzz\r\nabc",
            "cut off": head + sized % 400 + b'\r\n{"na',
            "two lengths": head + chunked + sized % 5 + b"\r\n0\r\n\r\n",
            "negative": head + b"Content-Length: -1\r\n\r\n",
            "long address": get.replace(b"/api/projects", b"/api/projects?" + b"a" * 9_000) + b"\r\n",
            "long header": get + b"X-Long: " + b"a" * 9_000 + b"\r\n\r\n",
            "many headers": get + b"".join(b"X-%d: a\r\n" % n for n in range(80)) + b"\r\n",
            "no http": b"\x16\x03\x01\x00\xa5\x01\x00\x00\r\n\r\n",
            "strange method": get.replace(b"GET", b"BREW") + b"\r\n",
        }  # fmt: skip
        answers = {kind: ask_raw(server, sent) for kind, sent in asked.items()}
        assert server.ask("GET", "/api/projects", token)[0] == 200
    assert {kind: status for kind, (status, _) in answers.items()} == {
        "chunked": 201, "large": 413, "large and chunked": 413, "endless": 413, "no chunk": 400, "cut off": 400,
        "two lengths": 400, "negative": 400, "long address": 414, "long header": 431, "many headers": 431,
        "no http": 400, "strange method": 405,
    }  # fmt: skip
    for kind in ("large", "large and chunked", "endless"):
        assert json.loads(answers[kind][1])["code"] == "too_large"
    assert [line for line in log_of(tmp_path) if line["level"] == "ERROR"] == []
    assert token not in (tmp_path / "log").read_text(encoding="utf-8")


def pieces(body: bytes) -> bytes:
    """A body as chunks."""
    parts: Iterator[bytes] = (body[at : at + 1_000] for at in range(0, len(body), 1_000))
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
