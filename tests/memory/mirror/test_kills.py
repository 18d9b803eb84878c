"""Killed at any moment, an export leaves a folder whose manifest verifies, and the next export finishes it (SPEC 8).

Once for every single step of an export, and once with real processes: a few kills with every test run, many with `make torture`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory.mirror.writing import swapping
from memory.mirror.writing.folders import Folder
from memory.mirror.writing.manifest import verify_export
from tests.memory.mirror.exporter import export

ROOT = Path(__file__).resolve().parents[3]
KILLS = 150 if os.environ.get("AGENTWEAVER_TORTURE") else 3
STEPS = ("write_new", "move", "link", "remove", "remove_tree", "sync")
MANIFEST = ".agentweaver/context/manifest.json"


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it runs."""


def files_in(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Lets the process die before its n-th step on the disk: neither undoing nor tidying runs."""
    left = [-1]

    def stepping(step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return step(*args, **options)

        return run

    def at(number: int) -> None:
        left[0] = number

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(Folder, name, stepping(getattr(Folder, name)))
        undo, tidy = swapping._Swap._undo, swapping._Swap._tidy
        patch.setattr(swapping._Swap, "_undo", lambda swap: None if left[0] <= 0 else undo(swap))
        patch.setattr(swapping._Swap, "_tidy", lambda swap: None if left[0] == 0 else tidy(swap))
        yield at


def test_killed_before_any_step_the_manifest_verifies_and_the_next_export_finishes(
    tmp_path: Path, dying: Callable[[int], None]
) -> None:
    moment, ended = 0, False
    while not ended:
        moment += 1
        folder = tmp_path / str(moment)
        folder.mkdir()
        export(folder, 1)
        before = files_in(folder)
        dying(moment)
        try:
            export(folder, 2)
            ended = True
        except Killed:
            assert verify_export(folder).valid, moment
        dying(-1)
        export(folder, 3)
        check = verify_export(folder)
        assert (check.valid, check.complete) == (True, True), moment
        assert len(before) == len(files_in(folder)), moment
        assert not [path for path in files_in(folder) if "export-" in path or "kept" in path], moment
    assert moment > 20


def test_killed_in_the_first_export_of_all_there_is_nothing_that_is_taken_for_somebody_elses(
    tmp_path: Path, dying: Callable[[int], None]
) -> None:
    for moment in range(1, 60):
        folder = tmp_path / str(moment)
        folder.mkdir()
        dying(moment)
        try:
            export(folder, 1)
        except Killed:
            if (folder / MANIFEST).exists():
                assert verify_export(folder).valid, moment
            else:
                assert all(path.startswith(".agentweaver/export-") for path in files_in(folder)), moment
        dying(-1)
        export(folder, 2)
        assert verify_export(folder).complete
        assert not [path for path in files_in(folder) if "export-" in path or "kept" in path], moment


def killed_after(folder: Path, first: int, seconds: float) -> int:
    """Exports in a process of its own until it is killed; the last one it said was done."""
    command = [sys.executable, "-m", "tests.memory.mirror.exporter", str(folder), str(first)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        time.sleep(seconds)
        process.kill()
        said += process.stdout.read()
    return int(said.split(b"\n")[-2])


@pytest.mark.race
def test_killed_processes_leave_a_manifest_that_verifies(tmp_path: Path) -> None:
    chance, seen, last = random.Random(8), Counter[str](), 0
    for _ in range(KILLS):
        last = killed_after(tmp_path, last + 1, chance.uniform(0, 0.05))
        check = verify_export(tmp_path)
        assert check.valid
        seen["complete" if check.complete else "cut off"] += 1
        # The one that was under way may have been finished, and not said so any more.
        last += 1
    export(tmp_path, last + 2)
    check = verify_export(tmp_path)
    assert (check.valid, check.complete) == (True, True)
    assert not [path for path in files_in(tmp_path) if "export-" in path or "kept" in path]
    print(f"{KILLS} exports killed: {dict(seen)}, {last} done")
