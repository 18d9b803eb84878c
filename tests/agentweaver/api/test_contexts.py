"""Contexts over HTTP: previews and their validators, a run's context and its receipt, explanations, statement counts."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentweaver.api import contexts
from governance.deciding.decisions import create_decision
from governance.deciding.projects import update_project
from memory import recording
from memory.actors import VerifiedRun
from memory.compiling import compiler, receipts
from memory.models import Agent, AgentMemory, ContextReceipt, ContextSnapshot, Run
from memory.sessions import SessionFields, start_session
from tests.agentweaver.api.conftest import Caller, errors, problem
from tests.conftest import NOW, Team, start_run


def decide(team: Team, title: str = "WAL", content: str = "Use WAL.", type: str = "scope") -> Any:
    return create_decision(
        project_id=team.project.pk, actor=team.owner, agent_name="Ana", type=type, title=title, content=content, now=NOW
    )  # fmt: skip


def remember(team: Team, agent: str = "Ana", **fields: Any) -> AgentMemory:
    given: dict[str, Any] = {"type": "learning", "importance": "high", "content": "C", **fields}
    return recording.record_memory(
        project_id=team.project.pk, actor=team.contributor, agent_name=agent, now=NOW, **given
    )


@contextmanager
def statements() -> Iterator[CaptureQueriesContext]:
    """The SQL statements of a block; opening and closing a transaction or savepoint is none."""
    with CaptureQueriesContext(connection) as captured:
        yield captured


def count(captured: CaptureQueriesContext) -> int:
    words = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")
    return len([query for query in captured if not query["sql"].startswith(words)])


# Previews


def test_a_preview_tells_the_block_its_layers_and_what_is_left_out(team: Team, owner: Caller) -> None:
    decision, legacy_type = decide(team), decide(team, "P", type="process")
    memory = remember(team)
    told = owner.get("agents/ANA /context")
    body = told.json()
    assert told.status_code == 200
    assert body.keys() == {
        "agent_name", "context", "sha256", "epoch", "tokens", "policy", "over_budget", "layers", "omitted",
        "omitted_truncated",
    }  # fmt: skip
    assert body["agent_name"] == "Ana"
    assert body["sha256"] == hashlib.sha256(body["context"].encode()).hexdigest()
    assert body["tokens"] == -(-len(body["context"]) // 4)
    assert [(layer["number"], [(row["kind"], row["id"]) for row in layer["rows"]]) for layer in body["layers"]] == [
        (1, [("decision", decision.pk)]), (2, []), (3, [("memory", memory.pk)]), (4, []),
    ]  # fmt: skip
    assert body["omitted"] == [{"kind": "decision", "id": legacy_type.pk, "reason": "type_not_compiled"}]
    assert body["policy"] == {
        "max_items": 20, "max_tokens": 8000, "on_overflow": "include", "trust": "standard",
    }  # fmt: skip


def test_a_preview_of_nothing_is_null_as_json_and_no_content_as_text(owner: Caller) -> None:
    body = owner.get("agents/Nobody/context").json()
    assert (body["context"], body["sha256"], body["tokens"]) == (None, None, 0)
    text = owner.get("agents/Nobody/context", Accept="text/plain")
    assert (text.status_code, text.content) == (204, b"")
    assert Agent.objects.count() == 0


def test_the_bare_block_is_the_text_of_the_json_answer(team: Team, owner: Caller) -> None:
    decide(team)
    text = owner.get("agents/Ana/context", Accept="text/plain")
    assert text["Content-Type"] == "text/plain; charset=utf-8"
    assert text.content.decode() == owner.get("agents/Ana/context").json()["context"]


def test_decisions_only_leave_memories_out(team: Team, owner: Caller) -> None:
    decide(team)
    remember(team)
    body = owner.get("context/decisions").json()
    assert body["agent_name"] is None
    assert [len(layer["rows"]) for layer in body["layers"]] == [1, 0, 0, 0]
    assert '"memory":[],"session":null' in body["context"]


def test_a_request_may_only_narrow_the_policy(team: Team, owner: Caller) -> None:
    for number in range(3):
        remember(team, content=f"C{number}")
    assert owner.get("agents/Ana/context?max_items=1").json()["policy"]["max_items"] == 1
    narrowed = owner.get("agents/Ana/context?max_items=1").json()
    assert [row["reason"] for row in narrowed["omitted"]] == ["item_limit", "item_limit"]
    assert owner.get("agents/Ana/context?max_items=999&max_tokens=99999").json()["policy"]["max_items"] == 20


@pytest.mark.parametrize("given", ["-1", "x", "1.5", "", "99999999999", "１"])
def test_a_limit_that_is_no_whole_number_is_named(owner: Caller, given: str) -> None:
    assert errors(owner.get(f"agents/Ana/context?max_items={given}")).keys() == {"max_items"}


@pytest.mark.parametrize("name", ["%00", "a%00b", "a%2Fb", "..", "%20", "x" * 101, "a%0Ab"])
def test_a_name_nobody_can_have_is_not_found(owner: Caller, name: str) -> None:
    for path in (f"agents/{name}/context", f"agents/{name}/context/explain", f"agents/{name}/memory"):
        assert problem(owner.get(path)) == (404, "not_found")


def test_a_known_etag_is_answered_without_reading_another_row(team: Team, owner: Caller) -> None:
    decide(team)
    first = owner.get("agents/Ana/context")
    tag = first["ETag"]
    assert tag.startswith('"')
    assert first["Vary"] == "Accept, Authorization, Cookie"
    assert first["Cache-Control"] == "private, no-cache"
    for known in (tag, f'"other", {tag}', "*", f"W/{tag}"):
        with statements() as captured:
            again = owner.get("agents/Ana/context", **{"If-None-Match": known})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", tag)
        tables = ("memory_decision", "memory_agentmemory", "memory_sessioncontext", "memory_agent")
        assert [q["sql"] for q in captured if any(f'"{table}"' in q["sql"] for table in tables)] == []


def test_the_etag_changes_with_the_epoch_the_policy_the_limits_and_the_form(
    team: Team, owner: Caller
) -> None:
    decide(team)
    path = "agents/Ana/context"
    tags = [
        owner.get(path)["ETag"], owner.get(f"{path}?max_items=3")["ETag"],
        owner.get(f"{path}?max_tokens=30")["ETag"], owner.get(path, Accept="text/plain")["ETag"],
        owner.get("agents/Ben/context")["ETag"], owner.get("context/decisions")["ETag"],
    ]  # fmt: skip
    decide(team, "Another")
    tags.append(owner.get(path)["ETag"])
    owner.patch("", {"policy": {"trust": "strict"}})
    tags.append(owner.get(path)["ETag"])
    assert len(set(tags)) == 8
    assert owner.get(path)["ETag"] == tags[-1]


def test_mandatory_context_over_a_budget_that_is_to_fail_is_422_with_figures(
    team: Team, owner: Caller
) -> None:
    decide(team, content="x" * 400)
    owner.patch("", {"policy": {"max_tokens": 100, "on_overflow": "fail"}})
    for path in ("agents/Ana/context", "context/decisions", "agents/Ana/context/explain"):
        refused = owner.get(path)
        assert problem(refused) == (422, "mandatory_context_exceeds_budget")
        assert refused.json()["budget"] == 400
        assert refused.json()["required"] > 400


def test_over_budget_is_said_at_the_top_when_everything_mandatory_is_included(
    team: Team, owner: Caller
) -> None:
    decide(team, content="x" * 4000)
    body = owner.get("agents/Ana/context?max_tokens=100").json()
    assert body["over_budget"] is True
    assert "x" * 4000 in body["context"]


# For a run


def child_of(team: Team, parent: VerifiedRun) -> VerifiedRun:
    return start_run(team, "Ben", parent=Run.objects.get(pk=parent.run_id))


def test_a_run_gets_charter_block_and_a_receipt_that_proves_it(team: Team, orchestrator: Caller) -> None:
    decision = decide(team)
    run = orchestrator.post("runs", {"agent_name": "Ana", "charter": "Be careful."}).json()
    told = orchestrator.post(f"runs/{run['id']}/context").json()
    receipt = ContextReceipt.objects.get()
    assert (told["receipt_id"], told["charter"], told["run_id"]) == (receipt.pk, "Be careful.", run["id"])
    assert receipt.snapshot is not None
    assert (receipt.snapshot.block, receipt.snapshot.sha256) == (told["context"], told["sha256"])
    assert [row.decision_id for row in receipt.snapshot.rows.all()] == [decision.pk]
    orchestrator.post(f"runs/{run['id']}/context")
    assert (ContextReceipt.objects.count(), ContextSnapshot.objects.count()) == (2, 1)


def test_a_child_gets_its_charter_and_decisions_only(
    team: Team, as_run: Callable[[VerifiedRun], Caller]
) -> None:
    decide(team)
    remember(team, "Ben", type="core_context")
    child = child_of(team, start_run(team))
    told = as_run(child).post(f"runs/{child.run_id}/context").json()
    assert told["decisions_only"] is True
    assert [len(layer["rows"]) for layer in told["layers"]] == [1, 0, 0, 0]


def test_nothing_eligible_and_failed_are_different_answers(
    team: Team, orchestrator: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = start_run(team)
    nothing = orchestrator.post(f"runs/{run.run_id}/context").json()
    assert (nothing["context"], nothing["compile_error"], len(nothing["layers"])) == (None, None, 4)

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(receipts, "compile_for_agent", broken)
    with caplog.at_level(logging.WARNING):
        failed = orchestrator.post(f"runs/{run.run_id}/context")
    assert failed.status_code == 200
    assert (failed.json()["context"], failed.json()["compile_error"]) == (None, "compile_failed")
    assert ContextReceipt.objects.order_by("pk").last().compile_error == "compile_failed"  # type: ignore[union-attr]
    assert "could not be compiled" in caplog.text


def test_over_budget_fails_for_a_run_with_its_charter_and_never_for_a_child(
    team: Team, orchestrator: Caller, owner: Caller
) -> None:
    decide(team, content="x" * 400)
    owner.patch("", {"policy": {"max_tokens": 100, "on_overflow": "fail"}})
    run = orchestrator.post("runs", {"agent_name": "Ana", "charter": "Be careful."}).json()
    refused = orchestrator.post(f"runs/{run['id']}/context")
    code = "mandatory_context_exceeds_budget"
    assert problem(refused) == (422, code)
    told = refused.json()
    assert (told["charter"], told["context"], told["compile_error"]) == ("Be careful.", None, code)
    assert (told["budget"], told["receipt_id"]) == (400, ContextReceipt.objects.get().pk)
    child = orchestrator.post(
        "runs", {"agent_name": "Ben", "charter": "Small.", "parent_run_id": run["id"]}
    ).json()
    answered = orchestrator.post(f"runs/{child['id']}/context")
    assert answered.status_code == 200
    assert {name: answered.json()[name] for name in ("charter", "context", "compile_error")} == {
        "charter": "Small.", "context": None, "compile_error": code,
    }  # fmt: skip


def test_a_run_that_has_ended_is_told_nothing(team: Team, orchestrator: Caller) -> None:
    run = start_run(team)
    orchestrator.post(f"runs/{run.run_id}/complete", {"status": "failed"})
    refused = orchestrator.post(f"runs/{run.run_id}/context")
    assert problem(refused) == (409, "conflict")
    assert refused.json()["current"]["status"] == "failed"
    assert ContextReceipt.objects.count() == 0


def test_a_run_may_not_build_anothers_context(team: Team, as_run: Callable[[VerifiedRun], Caller]) -> None:
    mine, other = start_run(team), start_run(team)
    assert problem(as_run(mine).post(f"runs/{other.run_id}/context")) == (403, "role_required")


def test_limits_of_a_run_come_from_the_body(team: Team, orchestrator: Caller) -> None:
    remember(team)
    run = start_run(team)
    told = orchestrator.post(f"runs/{run.run_id}/context", {"max_items": 0, "max_tokens": None}).json()
    assert (told["policy"]["max_items"], [row["reason"] for row in told["omitted"]]) == (0, ["item_limit"])
    for wrong in ({"max_items": True}, {"max_items": "1"}, {"max_items": 1.0}, {"max_items": -1}):
        assert errors(orchestrator.post(f"runs/{run.run_id}/context", wrong)).keys() == {"max_items"}


# Statements


@pytest.mark.parametrize("as_itself", [False, True])
def test_building_a_runs_context_takes_at_most_eight_statements(
    team: Team, orchestrator: Caller, as_run: Callable[[VerifiedRun], Caller], as_itself: bool
) -> None:
    for number in range(3):
        decide(team, f"D{number}")
        remember(team, content=f"C{number}")
    run = start_run(team)
    caller = as_run(run) if as_itself else orchestrator
    # Once a minute it is noted that a credential is in use; that has happened now.
    caller.get()
    with statements() as first:
        assert caller.post(f"runs/{run.run_id}/context").status_code == 200
    assert count(first) <= 8, [query["sql"][:120] for query in first]
    with CaptureQueriesContext(connection) as again:
        assert caller.post(f"runs/{run.run_id}/context").status_code == 200
    assert len(again) <= 6, [query["sql"][:120] for query in again]


@pytest.mark.parametrize("path", ["agents/Ana/context", "agents/Nobody/context", "context/decisions"])
@pytest.mark.parametrize("as_itself", [False, True])
def test_a_preview_takes_at_most_eight_statements_whatever_is_stored(
    team: Team, orchestrator: Caller, as_run: Callable[[VerifiedRun], Caller], path: str, as_itself: bool
) -> None:
    caller = as_run(start_run(team)) if as_itself else orchestrator
    caller.get(path)
    counts = set()
    for rows in (1, 3):
        for number in range(rows):
            decide(team, f"D{rows}{number}")
            remember(team, content=f"C{rows}{number}")
        with CaptureQueriesContext(connection) as captured:
            assert caller.get(path).status_code == 200
        counts.add(len(captured))
    assert len(counts) == 1
    assert max(counts) <= 5


def test_a_caller_is_never_answered_from_an_epoch_older_than_the_one_it_names(
    team: Team, owner: Caller, orchestrator: Caller
) -> None:
    decide(team)
    epoch = owner.get("context/decisions").json()["epoch"]
    run = start_run(team)
    for path in ("agents/Ana/context", "context/decisions"):
        assert owner.get(f"{path}?min_epoch={epoch}").json()["epoch"] == epoch
        ahead = owner.get(f"{path}?min_epoch={epoch + 1}")
        assert (ahead.status_code, ahead.json()["code"]) == (409, "conflict")
        assert owner.get(f"{path}?min_epoch=soon").json()["errors"].keys() == {"min_epoch"}
    told = orchestrator.post(f"runs/{run.run_id}/context", {"min_epoch": epoch})
    assert (told.status_code, told.json()["epoch"]) == (200, epoch)
    assert orchestrator.post(f"runs/{run.run_id}/context", {"min_epoch": epoch + 1}).status_code == 409
    assert ContextReceipt.objects.count() == 1


# Explained


def test_every_candidate_row_is_explained_as_the_compile_has_it(team: Team, owner: Caller) -> None:
    start_session(
        project_id=team.project.pk, actor=team.owner, session_id="old", fields=SessionFields(focus_area="Old"), now=NOW
    )  # fmt: skip
    start_session(
        project_id=team.project.pk, actor=team.owner, session_id="s", fields=SessionFields(focus_area="Focus"), now=NOW
    )  # fmt: skip
    decide(team, "In")
    decide(team, "Out", type="process")
    remember(team, content="taken")
    remember(team, content="too many")
    remember(team, content="small", importance="low")
    remember(team, "Ben", content="of Ben")
    told = owner.get("agents/Ana/context/explain?max_items=1").json()
    found = {
        (row["kind"], row["title"]): (row["included"], row["layer"], row["reason"]) for row in told["items"]
    }
    assert found == {
        ("session", "Focus"): (True, 4, None),
        ("session", "Old"): (False, None, "not_active"),
        ("decision", "In"): (True, 1, None),
        ("decision", "Out"): (False, None, "type_not_compiled"),
        ("memory", "taken"): (False, None, "item_limit"),
        ("memory", "too many"): (True, 3, None),
        ("memory", "small"): (False, None, "low_importance"),
        ("memory", "of Ben"): (False, None, "other_agent"),
    }
    preview = owner.get("agents/Ana/context?max_items=1").json()
    included = {(row["kind"], row["id"]) for layer in preview["layers"] for row in layer["rows"]}
    assert {(row["kind"], row["id"]) for row in told["items"] if row["included"]} == included
    reasons = {(row["kind"], row["id"], row["reason"]) for row in told["items"] if row["kind"] != "session"}
    assert {(r["kind"], r["id"], r["reason"]) for r in preview["omitted"]} == {r for r in reasons if r[2]}


def test_an_explanation_is_paged_and_its_statements_do_not_grow(team: Team, owner: Caller) -> None:
    owner.get()
    decide(team)
    with CaptureQueriesContext(connection) as one:
        owner.get("agents/Ana/context/explain")
    for number in range(5):
        remember(team, content=f"C{number}")
    with CaptureQueriesContext(connection) as many:
        whole = owner.get("agents/Ana/context/explain").json()
    assert len(one) == len(many)
    pages = [owner.get(f"agents/Ana/context/explain?page={n}&page_size=2").json() for n in (1, 2, 3, 4)]
    assert [row["id"] for page in pages for row in page["items"]] == [row["id"] for row in whole["items"]]
    assert [(p["total_count"], p["total_pages"], len(p["items"])) for p in pages] == [(6, 3, 2)] * 3 + [
        (6, 3, 0)
    ]


def test_a_change_during_the_compile_gives_no_etag_to_newer_rows(
    team: Team, owner: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = compiler.compile_context

    def slow(*args: Any) -> Any:
        update_project(project_id=team.project.pk, actor=team.owner, name="Meanwhile", now=NOW)
        return real(*args)

    monkeypatch.setattr(contexts, "compile_context", slow)
    assert "ETag" not in owner.get("agents/Ana/context")
