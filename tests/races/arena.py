"""Starts contenders and lets them move at the same moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.races.moves import play

HERE = Path(__file__).parents[2]
LONG = os.environ.get("AGENTWEAVER_TORTURE") == "1"
RACE = [
    pytest.mark.race,
    # What threads and other processes are to see has to be committed. SQLite's contenders have a file of their own; it is a copy of
    # the tests' database, which there is only where a test asks for one.
    pytest.mark.django_db(transaction=connection.vendor == "postgresql"),
]
Move = tuple[str, dict[str, Any]]


def database_url(name: str | None = None) -> str:
    """The tests' own PostgreSQL database as a URL another process can use."""
    given = connection.settings_dict
    who = given["USER"] + (f":{given['PASSWORD']}" if given["PASSWORD"] else "")
    if str(given["HOST"]).startswith("/"):
        return f"postgres://{who}@{given['HOST']}/{name or given['NAME']}".replace("@/", "@//", 1)
    return f"postgres://{who}@{given['HOST']}:{given['PORT'] or 5432}/{name or given['NAME']}"


def environment(url: str) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": url,
        "SECRET_KEY": "x" * 50,
        "DEBUG": "true",
        "SQLITE_TIMEOUT": "60",
    }


class Contender:
    """A process that moves when told."""

    def __init__(self, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.races.worker"], cwd=HERE, env=environment(url),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        self.acks: list[list[Any]] = []

    def listen(self) -> dict[str, Any]:
        """The next answer; acknowledgements on the way are kept. `{"gone": …}` when the process died."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith(b"\n"):
                break
            said = json.loads(line)
            if "ack" not in said:
                return dict(said)
            self.acks.append(said["ack"])
        return {"gone": self.process.wait()}

    def start(self, move: Move, at: float = 0.0) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((json.dumps({"move": move[0], "with": move[1], "at": at}) + "\n").encode())

    def play(self, move: Move) -> dict[str, Any]:
        self.start(move)
        return self.listen()

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


@dataclass
class Arena:
    """One database and its contenders: threads of this process, or processes of their own when `url` is given."""

    url: str | None = None
    contenders: list[Contender] = field(default_factory=list)

    def crowd(self, count: int) -> None:
        """Have at least so many contenders ready."""
        new = [Contender(self.url or "") for _ in range(count - len(self.contenders))]
        for contender in new:
            assert "ready" in contender.listen()
        self.contenders += new

    def do(self, name: str, **arguments: Any) -> Any:
        """One move, alone; its result."""
        outcome = self.race((name, arguments))[0]
        assert "ok" in outcome, outcome
        return outcome["ok"]

    def race(self, *moves: Move) -> list[dict[str, Any]]:
        """All moves at once; their outcomes in order. Nothing may fail but by being refused."""
        outcomes = self._threads(moves) if self.url is None else self._processes(moves)
        for outcome in outcomes:
            assert not {"failed", "gone"} & set(outcome), outcome
        return outcomes

    def _processes(self, moves: tuple[Move, ...]) -> list[dict[str, Any]]:
        self.crowd(len(moves))
        at = time.time() + 0.02 if len(moves) > 1 else 0.0
        taking_part = self.contenders[: len(moves)]
        for contender, move in zip(taking_part, moves, strict=True):
            contender.start(move, at)
        return [contender.listen() for contender in taking_part]

    def _threads(self, moves: tuple[Move, ...]) -> list[dict[str, Any]]:
        if len(moves) == 1:
            return [play(*moves[0], lambda done: None)]
        ready = threading.Barrier(len(moves))

        def move(given: Move) -> dict[str, Any]:
            try:
                connection.ensure_connection()
                ready.wait(timeout=30)
                return play(*given, lambda done: None)
            finally:
                connection.close()

        with ThreadPoolExecutor(len(moves)) as pool:
            return list(pool.map(move, moves))

    def close(self) -> None:
        for contender in self.contenders:
            contender.stop()
        self.contenders = []
