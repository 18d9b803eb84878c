"""Verbs against a bare INSERT, and many writers at once, on one project and on eight (SPEC 11)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from governance.deciding.memories import approve_memory
from memory.models import AgentMemory, Project
from memory.recording import record_memory, submit_entry
from tests.benchmarks import load
from tests.benchmarks.load import OWNER
from tests.benchmarks.measuring import Report, interleaved
from tests.benchmarks.world import Scale
from tests.races.arena import HERE, database_url, environment

pytestmark = pytest.mark.benchmark

CONTENT = load.TEXTS[0]


@pytest.fixture(scope="module")
def project(stored: None) -> Project:
    return load.new_project("writing")


def test_verbs_against_a_bare_insert(
    project: Project, scale: Scale, report: Report, raw: psycopg.Connection[Any]
) -> None:
    number = count()

    def record() -> AgentMemory:
        return record_memory(
            project_id=project.pk, actor=OWNER, agent_name="a0", type="learning", content=CONTENT,
            tags=f"t{next(number)}", now=timezone.now(),
        )  # fmt: skip

    def submit() -> object:
        return submit_entry(
            project_id=project.pk, actor=OWNER, agent_name="a0", type="scope", title="A title",
            content=CONTENT, slug=f"entry-{next(number)}", now=timezone.now(),
        )  # fmt: skip

    waiting = [record() for _ in range(scale.rounds + 8)]

    def approve() -> object:
        memory = waiting.pop()
        return approve_memory(
            project_id=project.pk, actor=OWNER, memory_id=memory.pk, revision=1, now=timezone.now()
        )

    works = {"record": record, "submit": submit, "approve": approve, "bare": bare_insert(raw, record())}
    times = interleaved(scale.rounds, works)
    for verb in ("record", "submit", "approve"):
        report.ratio(f"{verb} / bare INSERT", times, verb, "bare", note="each with its commit")


def bare_insert(raw: psycopg.Connection[Any], like: AgentMemory) -> Callable[[], Any]:
    """The memory's own row once more, and nothing else: no lock, no event, no epoch."""
    given = [
        field for field in AgentMemory._meta.concrete_fields if not field.primary_key and not field.generated
    ]
    columns = ", ".join(str(field.column) for field in given)
    places = ", ".join(["%s"] * len(given))
    values = [field.value_from_object(like) for field in given]
    text = f"INSERT INTO memory_agentmemory ({columns}) VALUES ({places})"
    return lambda: raw.execute(text, values)


def test_writers_at_once(stored: None, scale: Scale, report: Report) -> None:
    for projects in (1, 8):
        for writers in scale.writers:
            slugs = [f"crowd-{writers}-{projects}-{number}" for number in range(projects)]
            for slug in slugs:
                load.new_project(slug)
            written = crowd([slugs[number::writers] or slugs for number in range(writers)], scale.writing)
            where = "one project" if projects == 1 else "eight projects"
            report.add(f"writes a second, {writers} at once, {where}", sum(written) / scale.writing, "/s")


def crowd(shares: list[list[str]], seconds: float) -> list[int]:
    """How many changes each of the writers made in its projects. All begin when all are ready."""
    crew = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.writer", str(seconds), *slugs], cwd=HERE, text=True,
            env=environment(database_url()), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for slugs in shares
    ]  # fmt: skip
    for writer in crew:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in crew:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    answers = [writer.communicate()[0] for writer in crew]
    assert [writer.returncode for writer in crew] == [0] * len(crew)
    return [int(answer) for answer in answers]
