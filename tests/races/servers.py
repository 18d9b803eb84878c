"""A real gunicorn on the arena's database, and what can stand in its way."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import connection

from tests.races.arena import HERE, environment

SQLITE = connection.vendor == "sqlite"


class Server:
    """A real gunicorn with two workers on the arena's database. `log`: where it writes what it has to say."""

    def __init__(self, url: str, log: Path | None = None, /, **more: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        # A killed server cannot clean up behind itself.
        self.folder = TemporaryDirectory(prefix="agentweaver-server-")
        own = {"WEB_BIND": f"127.0.0.1:{self.port}", "WEB_CONCURRENCY": "2", "TMPDIR": self.folder.name}
        with (log or Path(os.devnull)).open("ab") as written:
            # A session of its own: killing the group takes the master and its workers in one moment.
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "agentweaver.wsgi"],
                cwd=HERE, env={**environment(url), **own, **more}, start_new_session=True, stdout=written, stderr=written,
            )  # fmt: skip
        self._wait()

    def _wait(self) -> None:
        for _ in range(300):
            with suppress(OSError):
                if self.ask("GET", "/readyz", "")[0] == 200:
                    return
            time.sleep(0.1)
        self.kill()
        raise AssertionError("the server did not start")

    def workers(self) -> list[int]:
        """The process ids of the workers there are now."""
        told = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        return [int(pid) for pid in told.split()]

    def stop(self) -> int:
        """Asked politely; the exit status."""
        self.process.terminate()
        return self.process.wait(timeout=60)

    def ask(self, method: str, path: str, token: str, body: Any = None) -> tuple[int, Any]:
        caller = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {token}"} if token else {}
        )
        try:
            caller.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = caller.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            caller.close()

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.folder.cleanup()


@contextmanager
def serving(url: str, log: Path | None = None, /, **more: str) -> Iterator[Server]:
    server = Server(url, log, **more)
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def locked(url: str, project: str) -> Iterator[None]:
    """Somebody holds what every writer needs: SQLite's one write lock, or the project's row."""
    if SQLITE:
        holder = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            holder.execute("ROLLBACK")
            holder.close()
        return
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM memory_project WHERE id = %s FOR NO KEY UPDATE", [project])
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")
