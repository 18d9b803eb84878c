"""What a run is told, and the proof of it (SPEC 4, Building for a run; SPEC 3, ContextSnapshot and ContextReceipt)."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

import pytest
from django.db import OperationalError

from governance.deciding.memories import approve_memory
from memory.compiling import compiler, envelope
from memory.compiling.compiler import Limits, compile_context
from memory.compiling.envelope import parse
from memory.compiling.receipts import RunContext, build_for_run
from memory.enums import MemoryType
from memory.errors import Conflict, OverBudget
from memory.ledger.changes import change
from memory.ledger.verification import verify
from memory.models import ContextReceipt, ContextSnapshot, Project, Run, SnapshotRow
from memory.recording import edit_memory, record_memory
from memory.runs import finish_run, register_run
from tests.conftest import NOW, Team
from tests.factories import APPROVED, DecisionFactory, MemoryFactory, SessionFactory, agent_of

pytestmark = pytest.mark.django_db


def run_of(team: Team, name: str = "Ana", *, parent: Run | None = None, charter: str = "You are Ana.") -> Run:
    with change(team.project.pk, team.orchestrator, NOW) as opened:
        run, _ = register_run(
            opened, agent_name=name, parent_run_id=parent.pk if parent else None, charter=charter
        )
    return run


def told(run: Run, **limits: Any) -> RunContext:
    fresh = Run.objects.select_related("agent", "project").get(pk=run.pk)
    return build_for_run(fresh, Limits(**limits), NOW)


def some_of_everything(team: Team) -> dict[str, Any]:
    agent = agent_of(team.project)
    return {
        "decision": DecisionFactory(project=team.project, agent=agent, revision=3),
        "core": MemoryFactory(project=team.project, agent=agent, type=MemoryType.CORE_CONTEXT, revision=2),
        "learning": MemoryFactory(project=team.project, agent=agent),
        "session": SessionFactory(project=team.project, revision=5),
    }


def test_a_run_is_told_its_charter_and_the_four_layers_and_the_receipt_proves_it(team: Team) -> None:
    run, rows = run_of(team), some_of_everything(team)
    answer = told(run)
    project = Project.objects.get()
    assert (answer.charter, answer.compile_error, answer.error) == ("You are Ana.", None, None)
    assert answer.compiled == compile_context(project, "Ana")
    receipt = ContextReceipt.objects.get()
    assert receipt == answer.receipt
    assert (receipt.run_id, receipt.at, receipt.epoch, receipt.decisions_only, receipt.compile_error) == (
        run.pk, NOW, project.epoch, False, "",
    )  # fmt: skip
    assert receipt.snapshot is not None
    snapshot = ContextSnapshot.objects.get()
    assert answer.compiled is not None
    assert (snapshot.block, snapshot.sha256) == (answer.compiled.text, answer.compiled.sha256)
    assert snapshot.sha256 == hashlib.sha256(snapshot.block.encode()).hexdigest()
    stood = SnapshotRow.objects.order_by("pk").values_list(
        "layer", "decision", "memory", "session", "revision"
    )
    assert list(stood) == [
        (1, rows["decision"].pk, None, None, 3),
        (2, None, rows["core"].pk, None, 2),
        (3, None, rows["learning"].pk, None, 1),
        (4, None, None, rows["session"].pk, 5),
    ]


def test_a_child_is_told_its_charter_and_the_decisions_only(team: Team) -> None:
    run = run_of(team, parent=run_of(team, "Lead"))
    some_of_everything(team)
    answer = told(run)
    assert answer.charter == "You are Ana."
    assert answer.compiled is not None
    assert answer.compiled.text is not None
    data = parse(answer.compiled.text)
    assert (len(data["decisions"]), data["memory"], data["session"]) == (1, [], None)
    assert answer.receipt.decisions_only is True
    assert SnapshotRow.objects.get().decision is not None


def test_a_child_without_an_eligible_decision_is_told_its_charter_alone(team: Team) -> None:
    MemoryFactory(project=team.project, type=MemoryType.CORE_CONTEXT)
    SessionFactory(project=team.project)
    answer = told(run_of(team, parent=run_of(team, "Lead")))
    assert answer.compiled is not None
    assert (answer.charter, answer.compiled.text, answer.compile_error) == ("You are Ana.", None, None)
    assert (answer.receipt.snapshot, answer.receipt.compile_error) == (None, "")


def test_nothing_eligible_and_a_failure_are_different_answers_and_receipts(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(team)
    nothing = told(run)
    assert nothing.compiled is not None
    assert (nothing.compiled.text, nothing.compile_error) == (None, None)
    DecisionFactory(project=team.project)
    monkeypatch.setattr(envelope, "decision_records", lambda _: 1 / 0)
    failed = told(run)
    assert (failed.compiled, failed.compile_error, failed.charter) == (None, "compile_failed", "You are Ana.")
    receipts = ContextReceipt.objects.order_by("pk")
    assert [(receipt.snapshot, receipt.compile_error) for receipt in receipts] == [
        (None, ""),
        (None, "compile_failed"),
    ]


@pytest.mark.parametrize(
    "fault",
    [
        ValueError,
        TypeError,
        KeyError,
        RuntimeError,
        AttributeError,
        RecursionError,
        OperationalError,
    ],
)
@pytest.mark.parametrize("is_child", [True, False])
def test_no_failure_to_compile_stops_a_run_and_each_is_a_warning(
    team: Team, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: type[Exception], is_child: bool
) -> None:  # fmt: skip
    run = run_of(team, parent=run_of(team, "Lead") if is_child else None)
    DecisionFactory(project=team.project)

    def fail(*_: Any, **__: Any) -> None:
        raise fault("no prompt text in here")

    monkeypatch.setattr(compiler, "_assemble", fail)
    answer = told(run)
    assert (answer.charter, answer.compiled, answer.compile_error) == ("You are Ana.", None, "compile_failed")
    assert (answer.receipt.compile_error, answer.receipt.epoch) == (
        "compile_failed",
        Project.objects.get().epoch,
    )
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert str(run.pk) in record.getMessage()
    assert record.exc_info is not None


@pytest.mark.parametrize("is_child", [True, False])
def test_mandatory_rows_beyond_the_budget_are_a_code_of_their_own(
    team: Team, caplog: pytest.LogCaptureFixture, is_child: bool
) -> None:
    run = run_of(team, parent=run_of(team, "Lead") if is_child else None)
    DecisionFactory(project=team.project, content="d" * 1000)
    Project.objects.update(max_tokens=100, on_overflow="fail")
    answer = told(run)
    assert answer.compile_error == answer.receipt.compile_error == "mandatory_context_exceeds_budget"
    assert (answer.charter, answer.compiled) == ("You are Ana.", None)
    assert isinstance(answer.error, OverBudget)
    assert answer.error.budget == 400
    [record] = caplog.records
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)


def test_a_block_is_stored_once_however_often_and_to_whomever_it_is_told(team: Team) -> None:
    some_of_everything(team)
    runs = [run_of(team), run_of(team, "ANA ")]
    for run in (*runs, runs[0]):
        told(run)
    assert ContextSnapshot.objects.count() == 1
    assert SnapshotRow.objects.count() == 4
    assert ContextReceipt.objects.filter(snapshot__isnull=False).count() == 3


def test_the_same_bytes_from_another_revision_are_told_apart(team: Team) -> None:
    run = run_of(team)
    memory = record_memory(project_id=team.project.pk, actor=team.owner, agent_name="Ana", type="core_context", content="A", now=NOW)  # fmt: skip
    told(run)
    edit: dict[str, Any] = {
        "project_id": team.project.pk,
        "actor": team.owner,
        "memory_id": memory.pk,
        "now": NOW,
    }
    edit_memory(**edit, revision=1, content="B")
    edit_memory(**edit, revision=2, content="A")
    told(run)
    first, second = ContextSnapshot.objects.order_by("pk")
    assert first.block == second.block
    assert first.sha256 == second.sha256
    assert [row.revision for row in SnapshotRow.objects.order_by("pk")] == [1, 3]


def test_what_a_run_was_told_stays_as_it_was_when_the_rows_change(team: Team) -> None:
    run = run_of(team)
    memory = record_memory(project_id=team.project.pk, actor=team.owner, agent_name="Ana", type="core_context", content="A", now=NOW)  # fmt: skip
    before = told(run)
    approve_memory(project_id=team.project.pk, actor=team.owner, memory_id=memory.pk, revision=1, now=NOW)
    after = told(run)
    assert before.compiled is not None
    assert after.compiled is not None
    assert [s.block for s in ContextSnapshot.objects.order_by("pk")] == [
        before.compiled.text,
        after.compiled.text,
    ]
    assert after.receipt.epoch == before.receipt.epoch + 1


def test_every_run_that_was_told_a_row_can_be_named(team: Team) -> None:
    memory = MemoryFactory(project=team.project, tags=["cross-team"], **APPROVED)
    ana, ben = run_of(team), run_of(team, "Ben")
    told(ana)
    told(ben)
    runs = ContextReceipt.objects.filter(snapshot__rows__memory=memory).values_list("run", flat=True)
    assert set(runs) == {ana.pk, ben.pk}


def test_a_request_may_narrow_what_a_run_is_told(team: Team) -> None:
    run = run_of(team)
    some_of_everything(team)
    answer = told(run, max_items=1)
    assert answer.compiled is not None
    assert [row.layer for row in answer.compiled.included] == [1, 2, 4]


@pytest.mark.django_db(transaction=True)
def test_a_run_that_ends_while_its_context_is_compiled_is_told_nothing(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end has written down all it was told: the block that comes too late is neither kept nor answered."""
    run = run_of(team)
    some_of_everything(team)
    compile_for_agent = compiler.compile_for_agent

    def compile_too_slowly(*given: Any) -> Any:
        compiled = compile_for_agent(*given)
        with change(team.project.pk, team.orchestrator, NOW) as opened:
            finish_run(opened, run.pk, "cancelled")
        return compiled

    monkeypatch.setattr("memory.compiling.receipts.compile_for_agent", compile_too_slowly)
    with pytest.raises(Conflict) as caught:
        told(run)
    assert caught.value.row.status == "cancelled"
    assert not ContextReceipt.objects.exists()
    assert not ContextSnapshot.objects.exists()


def test_telling_a_run_changes_nothing_but_the_proof(team: Team) -> None:
    run = run_of(team)
    record_memory(project_id=team.project.pk, actor=team.owner, agent_name="Ana", type="core_context", content="A", now=NOW)  # fmt: skip
    before = Project.objects.get()
    told(run)
    after = Project.objects.get()
    assert (after.epoch, after.ledger_number) == (before.epoch, before.ledger_number)
    assert verify(after).valid is True
