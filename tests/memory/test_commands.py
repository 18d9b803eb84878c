"""compile_context (SPEC 8.1): the block alone on standard output, or the whole result as JSON."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from governance.deciding.decisions import create_decision
from governance.deciding.projects import update_project
from governance.models import User
from governance.people.credentials import issue_personal_token
from memory.compiling import envelope
from memory.compiling.compiler import compile_context, compile_decisions
from memory.models import Agent, ContextReceipt, Project
from memory.recording import record_memory
from tests.conftest import NOW, Team

pytestmark = pytest.mark.django_db


def printed(*arguments: str) -> str:
    out = StringIO()
    call_command("compile_context", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def project(team: Team) -> Project:
    """A decision for everybody, and one memory that only Ana is told."""
    create_decision(
        project_id=team.project.pk, actor=team.owner, agent_name="Ana", type="scope", title="One harbour first",
        content="No second harbour before spring.", now=NOW,
    )  # fmt: skip
    record_memory(
        project_id=team.project.pk,
        actor=team.owner,
        agent_name="Ana",
        type="core_context",
        content="Keel is in Go.",
        now=NOW,
    )
    return Project.objects.get(pk=team.project.pk)


def test_it_prints_exactly_the_block(project: Project) -> None:
    text = compile_context(project, "Ana").text
    assert text is not None
    assert printed("lighthouse", "Ana") == text
    assert printed(str(project.pk), " ana ") == text


def test_it_prints_the_decisions_alone(project: Project) -> None:
    text = compile_decisions(project).text
    assert text is not None
    assert envelope.parse(text)["memory"] == []
    assert printed("lighthouse", "--decisions-only") == text
    assert printed("lighthouse", "Ana", "--decisions-only") == text


def test_it_prints_nothing_when_nothing_is_eligible(team: Team) -> None:
    assert printed("lighthouse", "Ana") == ""
    assert printed("lighthouse", "--decisions-only") == ""


def test_json_is_the_preview_of_the_api(project: Project, team: Team, client: Client) -> None:
    record_memory(
        project_id=project.pk, actor=team.owner, agent_name="Ben", type="learning", content="x", now=NOW
    )
    token = issue_personal_token(User.objects.get(username="viewer"), now=timezone.now()).token
    asked = {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    result = json.loads(printed("lighthouse", "Ana", "--json"))

    assert result == client.get("/api/projects/lighthouse/agents/Ana/context", headers=asked).json()
    assert [len(layer["rows"]) for layer in result["layers"]] == [1, 1, 0, 0]
    assert [row["reason"] for row in result["omitted"]] == ["other_agent"]
    result = json.loads(printed("lighthouse", "--decisions-only", "--json"))
    assert result == client.get("/api/projects/lighthouse/context/decisions", headers=asked).json()


def test_json_of_nothing_has_no_context(team: Team) -> None:
    result = json.loads(printed("lighthouse", "Ana", "--json"))
    assert (result["context"], result["sha256"], result["tokens"]) == (None, None, 0)


def test_asking_creates_neither_an_agent_nor_a_receipt(project: Project) -> None:
    printed("lighthouse", "Somebody New")
    assert not Agent.objects.named("Somebody New").exists()
    assert not ContextReceipt.objects.exists()


def test_it_fails_without_an_agent_without_a_project_and_over_the_budget(
    project: Project, team: Team
) -> None:
    with pytest.raises(CommandError, match="AGENT"):
        printed("lighthouse")
    with pytest.raises(CommandError, match="no project"):
        printed("nowhere", "Ana")
    with pytest.raises(CommandError, match="slash"):
        printed("lighthouse", "a/b")
    update_project(
        project_id=project.pk, actor=team.owner, policy={"max_tokens": 10, "on_overflow": "fail"}, now=NOW
    )
    with pytest.raises(CommandError, match="mandatory_context_exceeds_budget"):
        printed("lighthouse", "Ana")
