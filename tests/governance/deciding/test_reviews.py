"""The verbs of deciders: the whole state × action table, and who may use them (SPEC 5 and 6)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from governance.deciding.decisions import (
    approve_decision,
    archive_decision,
    create_decision,
    edit_decision,
    supersede_decision,
)
from governance.deciding.entries import merge_entry, reject_entry
from governance.deciding.gate import Corrections
from governance.deciding.memories import approve_memory, retire_memory
from governance.deciding.projects import create_project
from governance.models import User
from governance.people.policies import grant, revoke
from memory.actors import Human, VerifiedRun
from memory.compiling.compiler import compile_context
from memory.enums import EntryType
from memory.errors import Conflict, CredentialRefused, DomainError, Invalid, NotFound, Refused, Stale
from memory.ledger.changes import change, state_of
from memory.models import AgentMemory, Decision, DecisionInboxEntry, LedgerEvent, Project, Run
from memory.recording import edit_memory, record_memory, submit_entry
from memory.runs import finish_run
from tests.conftest import NOW, Team, start_run
from tests.factories import (
    APPROVED,
    LEGACY,
    RETIRED,
    DecisionFactory,
    EntryFactory,
    MemoryFactory,
    ProjectFactory,
)

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=1)
BY_SCRIBE = {**APPROVED, "approved_by": f"scribe:{uuid.UUID(int=7)}"}


@pytest.fixture
def other_owner(team: Team) -> Human:
    User.objects.create_user("other-owner")
    grant(project_id=team.project.pk, actor=team.owner, username="other-owner", role="owner", now=NOW)
    return Human("other-owner")


def decide(team: Team, verb: Callable[..., Any], actor: Any = None, **values: Any) -> Any:
    return verb(project_id=team.project.pk, actor=actor or team.owner, now=LATER, **values)


def merge(
    team: Team, entry: DecisionInboxEntry, actor: Any = None, revision: int | None = None, **corrections: Any
) -> Any:
    return decide(
        team, merge_entry, actor, entry_id=entry.pk, revision=revision or entry.revision, corrections=Corrections(**corrections),
    )  # fmt: skip


def approve(
    team: Team,
    row: AgentMemory | Decision,
    actor: Any = None,
    revision: int | None = None,
    **corrections: Any,
) -> Any:
    verb, key = (
        (approve_memory, "memory_id") if isinstance(row, AgentMemory) else (approve_decision, "decision_id")
    )
    values = {key: row.pk, "revision": revision or row.revision, "corrections": Corrections(**corrections)}
    return decide(team, verb, actor, **values)


def ledger() -> tuple[int, list[int]]:
    """What no refused or repeated request may move."""
    return LedgerEvent.objects.count(), list(Project.objects.order_by("pk").values_list("epoch", flat=True))


def last_event() -> LedgerEvent:
    event = LedgerEvent.objects.order_by("number").last()
    assert event is not None
    return event


# Merging


@pytest.mark.parametrize("kind", [kind for kind in EntryType if kind.becomes_decision])
def test_a_proposed_decision_becomes_an_active_approved_one_with_its_own_source(
    team: Team, kind: EntryType
) -> None:
    run = start_run(team, "Ben")
    entry, _ = submit_entry(
        project_id=team.project.pk, actor=run, agent_name="Ben", slug="use-x", type=kind, title="Use X", content="C",
        rationale="R", tags="a,b", now=NOW,
    )  # fmt: skip
    decision = merge(team, entry)
    assert state_of(decision) == state_of(Decision.objects.get()) == {
        "agent_id": entry.agent_id, "type": kind, "status": "active", "title": "Use X", "content": "C", "rationale": "R",
        "tags": ["a", "b"], "superseded_by_id": None, "revision": 1, "source_kind": "run",
        "source_identity": f"run:{run.run_id}", "source_run_id": str(run.run_id), "trust_state": "approved",
        "approved_by": "owner", "approved_at": "2026-12-01T10:00:00.000000+00:00",
        "created_at": "2026-12-01T10:00:00.000000+00:00", "updated_at": "2026-12-01T10:00:00.000000+00:00",
    }  # fmt: skip
    entry.refresh_from_db()
    assert (entry.status, entry.reviewed_by, entry.reviewed_at, entry.decision, entry.memory, entry.reason) == (
        "merged", "owner", LATER, decision, None, "",
    )  # fmt: skip


@pytest.mark.parametrize("kind", [kind for kind in EntryType if not kind.becomes_decision])
def test_a_proposed_finding_becomes_an_approved_memory_of_its_agent(team: Team, kind: EntryType) -> None:
    entry = EntryFactory(
        project=team.project,
        type=kind,
        importance="low",
        tags=["cross-team"],
    )
    memory = merge(team, entry)
    assert (memory.type, memory.importance, memory.content, memory.tags, memory.agent) == (
        kind, "low", entry.content, ["cross-team"], entry.agent,
    )  # fmt: skip
    assert (memory.trust_state, memory.approved_by, memory.source_kind, memory.source_identity) == (
        "approved", "owner", "human", "contributor",
    )  # fmt: skip
    entry.refresh_from_db()
    assert (entry.memory, entry.decision) == (memory, None)


def test_an_imported_entry_is_approved_by_merging_and_keeps_its_source(team: Team) -> None:
    entry = EntryFactory(
        project=team.project, type="scope", source_kind="legacy", source_identity="import:a.md#L1"
    )
    decision = merge(team, entry)
    assert (decision.source_kind, decision.source_identity, decision.trust_state) == (
        "legacy",
        "import:a.md#L1",
        "approved",
    )
    assert compile_context(Project.objects.get(pk=team.project.pk), "Ana").text is not None


def test_a_reviewer_may_correct_while_merging_and_the_ledger_keeps_both(team: Team) -> None:
    entry = EntryFactory(project=team.project, type="architectural", tags=["a"], importance="high")
    memory = merge(team, entry, type="pattern", importance="medium", tags="Cross-Team")
    assert isinstance(memory, AgentMemory)
    assert (memory.type, memory.importance, memory.tags, memory.cross_team) == (
        "pattern",
        "medium",
        ["cross-team"],
        True,
    )
    event = LedgerEvent.objects.get(action="memory.merge")
    assert json.loads(event.before) == {"type": "architectural", "importance": "high", "tags": ["a"]}
    assert json.loads(event.after).items() >= {"type": "pattern", "importance": "medium"}.items()
    entry.refresh_from_db()
    assert (entry.type, entry.tags) == ("architectural", ["a"])


@pytest.mark.parametrize(
    ("field", "value"), [("type", "core_context"), ("importance", "top"), ("tags", ["a,b"]), ("type", "")]
)
def test_a_wrong_correction_is_named_and_nothing_is_merged(team: Team, field: str, value: Any) -> None:
    entry = EntryFactory(project=team.project)
    with pytest.raises(Invalid) as caught:
        merge(team, entry, **{field: value})
    assert list(caught.value.errors) == [field]
    assert DecisionInboxEntry.objects.get().status == "pending"


def test_merging_names_the_text_that_was_read(team: Team) -> None:
    entry, _ = submit_entry(project_id=team.project.pk, actor=team.contributor, agent_name="Ana", slug="s", type="scope", content="1", now=NOW)  # fmt: skip
    submit_entry(project_id=team.project.pk, actor=team.contributor, agent_name="Ana", slug="s", type="scope", content="2", now=NOW)  # fmt: skip
    before = ledger()
    with pytest.raises(Stale) as caught:
        merge(team, entry, revision=1)
    assert caught.value.row.content == "2"
    assert (Decision.objects.count(), ledger()) == (0, before)
    assert merge(team, entry, revision=2).content == "2"


def test_merging_again_is_the_same_row_for_the_one_who_merged_and_a_conflict_for_anyone_else(
    team: Team, other_owner: Human
) -> None:
    entry = EntryFactory(project=team.project)
    memory = merge(team, entry)
    before = ledger()
    for revision in (1, 99):
        assert merge(team, entry, revision=revision, importance="low") == memory
    with pytest.raises(Conflict) as caught:
        merge(team, entry, other_owner)
    assert (caught.value.code, caught.value.row.reviewed_by, caught.value.row.status) == (
        "conflict",
        "owner",
        "merged",
    )
    assert "owner" in caught.value.detail
    assert (AgentMemory.objects.count(), ledger()) == (1, before)


# Rejecting


def test_a_rejected_entry_stays_with_its_reason(team: Team) -> None:
    entry = EntryFactory(project=team.project)
    rejected = decide(team, reject_entry, entry_id=entry.pk, revision=1, reason=" Too vague. ")
    assert (rejected.status, rejected.reviewed_by, rejected.reviewed_at, rejected.reason) == (
        "rejected", "owner", LATER, " Too vague. ",
    )  # fmt: skip
    assert state_of(rejected) == state_of(DecisionInboxEntry.objects.get())
    assert (last_event().action, last_event().reason) == ("entry.reject", " Too vague. ")


REASON_NEEDED: dict[str, Callable[[Team, str], Any]] = {
    "reject": lambda team, why: decide(team, reject_entry, entry_id=EntryFactory(project=team.project).pk, reason=why),
    "retire": lambda team, why: decide(team, retire_memory, memory_id=MemoryFactory(project=team.project).pk, reason=why),
    "archive": lambda team, why: decide(team, archive_decision, decision_id=DecisionFactory(project=team.project).pk, reason=why),
    "supersede": lambda team, why: decide(
        team, supersede_decision, decision_id=DecisionFactory(project=team.project).pk,
        superseded_by=DecisionFactory(project=team.project).pk, reason=why,
    ),
}  # fmt: skip


@pytest.mark.parametrize("verb", REASON_NEEDED)
@pytest.mark.parametrize("why", ["", "  \n", "x" * 2001, "a\x00"])
def test_what_takes_something_away_needs_a_reason(team: Team, verb: str, why: str) -> None:
    with pytest.raises(Invalid) as caught:
        REASON_NEEDED[verb](team, why)
    assert list(caught.value.errors) == ["reason"]


def test_rejecting_may_name_the_text_that_was_read(team: Team) -> None:
    entry = EntryFactory(project=team.project, revision=2)
    with pytest.raises(Stale):
        decide(team, reject_entry, entry_id=entry.pk, revision=1, reason="No.")
    assert decide(team, reject_entry, entry_id=entry.pk, reason="No.").status == "rejected"


def test_putting_away_may_name_the_text_that_was_read(team: Team) -> None:
    memory = MemoryFactory(project=team.project, revision=2)
    decision, successor = (DecisionFactory(project=team.project, revision=2) for _ in range(2))
    attempts: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (retire_memory, {"memory_id": memory.pk}),
        (archive_decision, {"decision_id": decision.pk}),
        (supersede_decision, {"decision_id": decision.pk, "superseded_by": successor.pk}),
    ]
    for verb, row in attempts:
        with pytest.raises(Stale):
            decide(team, verb, **row, revision=1, reason="Out of date.")
    assert decide(team, retire_memory, memory_id=memory.pk, revision=2, reason="Out of date.").is_retired
    assert (
        decide(team, archive_decision, decision_id=decision.pk, revision=2, reason="Out of date.").status
        == "archived"
    )


# The whole table of an entry


def pending(team: Team) -> DecisionInboxEntry:
    return EntryFactory(project=team.project)


def merged(team: Team) -> DecisionInboxEntry:
    entry = pending(team)
    merge(team, entry)
    return DecisionInboxEntry.objects.get(pk=entry.pk)


def rejected(team: Team) -> DecisionInboxEntry:
    return decide(team, reject_entry, entry_id=pending(team).pk, reason="No.")


def outcome(attempt: Callable[[], Any]) -> str:
    """The code of the refusal, or the state that the row answered with is in."""
    try:
        row = attempt()
    except DomainError as refusal:
        return refusal.code
    return str(row.status if isinstance(row, (Decision, DecisionInboxEntry)) else row.trust_state)


@pytest.mark.parametrize(
    ("state", "action", "by", "expected"),
    [
        (pending, "merge", "owner", "approved"), (pending, "reject", "owner", "rejected"),
        (merged, "merge", "owner", "approved"), (merged, "merge", "other", "conflict"),
        (merged, "reject", "owner", "conflict"), (merged, "reject", "other", "conflict"),
        (rejected, "merge", "owner", "conflict"), (rejected, "merge", "other", "conflict"),
        (rejected, "reject", "owner", "rejected"), (rejected, "reject", "other", "conflict"),
        (rejected, "reject differently", "owner", "conflict"),
    ],
)  # fmt: skip
def test_every_state_of_an_entry_meets_every_action(
    team: Team,
    other_owner: Human,
    state: Callable[[Team], DecisionInboxEntry],
    action: str,
    by: str,
    expected: str,
) -> None:
    entry = state(team)
    before = ledger()
    actor = team.owner if by == "owner" else other_owner
    reason = "Otherwise." if action == "reject differently" else "No."
    got = outcome(
        lambda: (
            merge(team, entry, actor)
            if action == "merge"
            else decide(team, reject_entry, actor, entry_id=entry.pk, reason=reason)
        )
    )
    assert got == expected
    if entry.status != "pending":
        assert ledger() == before
        assert state_of(DecisionInboxEntry.objects.get()) == state_of(entry)


# The whole table of a memory

MEMORIES: dict[str, dict[str, Any]] = {
    "pending": {},
    "approved": APPROVED,
    "by scribe": BY_SCRIBE,
    "legacy": LEGACY,
    "retired": RETIRED,
    "refused": {**LEGACY, **RETIRED},
}


@pytest.mark.parametrize(
    ("state", "action", "by", "expected", "events"),
    [
        ("pending", "approve", "owner", "approved", ["memory.approve"]),
        ("approved", "approve", "owner", "approved", []),
        ("approved", "approve", "other", "approved", []),
        ("by scribe", "approve", "owner", "approved", ["memory.approve"]),
        ("legacy", "approve", "owner", "approved", ["memory.approve"]),
        ("retired", "approve", "owner", "conflict", []),
        ("refused", "approve", "owner", "conflict", []),
        ("pending", "stale", "owner", "stale", []),
        ("by scribe", "stale", "owner", "stale", []),
        ("legacy", "stale", "owner", "stale", []),
        ("approved", "stale", "other", "stale", []),
        ("retired", "stale", "owner", "conflict", []),
        ("pending", "correct", "owner", "approved", ["memory.approve"]),
        ("approved", "correct", "owner", "approved", ["memory.approve"]),
        ("by scribe", "correct", "owner", "approved", ["memory.approve"]),
        ("legacy", "correct", "owner", "approved", ["memory.approve"]),
        ("retired", "correct", "owner", "conflict", []),
        ("pending", "retire", "owner", "pending", ["memory.retire"]),
        ("approved", "retire", "owner", "approved", ["memory.retire"]),
        ("by scribe", "retire", "owner", "approved", ["memory.retire"]),
        ("legacy", "retire", "owner", "legacy", ["memory.refuse"]),
        ("retired", "retire", "owner", "pending", []),
        ("retired", "retire", "other", "conflict", []),
        ("retired", "retire differently", "owner", "conflict", []),
        ("refused", "retire", "other", "conflict", []),
        ("pending", "edit", "owner", "pending", ["memory.edit"]),
        ("approved", "edit", "owner", "pending", ["memory.edit"]),
        ("by scribe", "edit", "owner", "pending", ["memory.edit"]),
        ("legacy", "edit", "owner", "legacy", ["memory.edit"]),
        ("retired", "edit", "owner", "conflict", []),
        ("refused", "edit", "owner", "conflict", []),
    ],
)
def test_every_state_of_a_memory_meets_every_action(
    team: Team, other_owner: Human, state: str, action: str, by: str, expected: str, events: list[str]
) -> None:
    memory = MemoryFactory(project=team.project, revision=3, **MEMORIES[state])
    known = LedgerEvent.objects.count()
    actor = team.owner if by == "owner" else other_owner
    row = {"memory_id": memory.pk}
    attempts: dict[str, Callable[[], Any]] = {
        "approve": lambda: approve(team, memory, actor),
        "stale": lambda: approve(team, memory, actor, revision=2),
        "correct": lambda: approve(team, memory, actor, tags=["x"]),
        "retire": lambda: decide(team, retire_memory, actor, **row, reason=RETIRED["retire_reason"]),
        "retire differently": lambda: decide(team, retire_memory, actor, **row, reason="Otherwise."),
        "edit": lambda: decide(team, edit_memory, actor, **row, revision=3, content="New."),
    }
    assert outcome(attempts[action]) == expected
    assert [event.action for event in LedgerEvent.objects.order_by("number")[known:]] == events
    kept = AgentMemory.objects.get()
    assert kept.revision == 3 + (action in ("correct", "edit") and bool(events))
    assert kept.is_retired is (state in ("retired", "refused") or (action == "retire" and bool(events)))
    if not events:
        assert state_of(kept) == state_of(memory)
    if events == ["memory.approve"]:
        assert (kept.approved_by, kept.approved_at) == ("owner", LATER)


def test_one_may_repeat_ones_own_approval_even_after_the_number_moved_on(team: Team) -> None:
    memory = MemoryFactory(project=team.project)
    approved = approve(team, memory, importance="low")
    assert approved.revision == 2
    before = ledger()
    assert state_of(approve(team, memory, revision=1)) == state_of(approved)
    assert ledger() == before


def test_an_approval_is_of_the_text_that_was_read_and_of_no_other(team: Team) -> None:
    memory = record_memory(project_id=team.project.pk, actor=team.contributor, agent_name="Ana", type="learning", content="1", now=NOW)  # fmt: skip
    edit_memory(
        project_id=team.project.pk,
        actor=team.contributor,
        memory_id=memory.pk,
        revision=1,
        content="2",
        now=NOW,
    )
    before = ledger()
    with pytest.raises(Stale) as caught:
        approve(team, memory, revision=1)
    assert caught.value.row.content == "2"
    assert (AgentMemory.objects.get().trust_state, ledger()) == ("pending", before)


def test_a_scribes_approval_stays_a_request_to_cross_until_a_person_approves(team: Team) -> None:
    memory = MemoryFactory(project=team.project, tags=["cross-team"], **BY_SCRIBE)
    assert compile_context(Project.objects.get(), "Ben").text is None
    assert list(AgentMemory.objects.cross_team_requests()) == [memory]
    approve(team, memory)
    assert compile_context(Project.objects.get(), "Ben").text is not None
    assert not AgentMemory.objects.cross_team_requests().exists()


def test_an_imported_memory_is_told_only_once_approved_and_may_be_corrected_on_the_way(team: Team) -> None:
    memory = MemoryFactory(project=team.project, importance="medium", **LEGACY)
    assert compile_context(Project.objects.get(), "Ana").text is None
    approved = approve(team, memory, type="core_context", importance="high", tags="a")
    assert (approved.type, approved.importance, approved.tags, approved.revision) == (
        "core_context",
        "high",
        ["a"],
        2,
    )
    assert (approved.source_kind, approved.source_identity) == ("legacy", LEGACY["source_identity"])
    assert compile_context(Project.objects.get(), "Ana").text is not None


def test_retiring_takes_a_memory_out_of_the_next_compile_and_keeps_the_row(team: Team) -> None:
    memory = MemoryFactory(project=team.project)
    epoch = compile_context(Project.objects.get(), "Ana").epoch
    retired = decide(team, retire_memory, memory_id=memory.pk, agent_name="ANA", reason="Wrong.")
    assert (retired.retired_at, retired.retired_by, retired.retire_reason) == (LATER, "owner", "Wrong.")
    result = compile_context(Project.objects.get(), "Ana")
    assert (result.text, result.epoch) == (None, epoch + 1)
    with pytest.raises(NotFound):
        decide(team, retire_memory, memory_id=memory.pk, agent_name="Ben", reason="Wrong.")


@pytest.mark.parametrize(("field", "value"), [("type", "scope"), ("importance", ""), ("tags", "x" * 65)])
def test_a_wrong_correction_of_a_memory_is_named(team: Team, field: str, value: Any) -> None:
    with pytest.raises(Invalid) as caught:
        approve(team, MemoryFactory(project=team.project), **{field: value})
    assert list(caught.value.errors) == [field]


# The whole table of a decision

DECISIONS: dict[str, dict[str, Any]] = {
    "approved": {},
    "pending": {"trust_state": "pending"},
    "legacy": LEGACY,
    "archived": {"status": "archived"},
    "superseded": {"status": "superseded"},
    "refused": {**LEGACY, "status": "archived"},
}


@pytest.mark.parametrize(
    ("state", "action", "expected", "trust", "events"),
    [
        ("approved", "approve", "active", "approved", []),
        ("pending", "approve", "active", "approved", ["decision.approve"]),
        ("legacy", "approve", "active", "approved", ["decision.approve"]),
        ("archived", "approve", "conflict", "approved", []),
        ("superseded", "approve", "conflict", "approved", []),
        ("refused", "approve", "conflict", "legacy", []),
        ("pending", "stale", "stale", "pending", []),
        ("legacy", "stale", "stale", "legacy", []),
        ("archived", "stale", "conflict", "approved", []),
        ("approved", "correct", "active", "approved", ["decision.approve"]),
        ("legacy", "correct", "active", "approved", ["decision.approve"]),
        ("approved", "edit", "active", "approved", ["decision.edit"]),
        ("pending", "edit", "active", "approved", ["decision.edit"]),
        ("legacy", "edit", "active", "approved", ["decision.edit"]),
        ("archived", "edit", "conflict", "approved", []),
        ("superseded", "edit", "conflict", "approved", []),
        ("refused", "edit", "conflict", "legacy", []),
        ("approved", "edit title", "active", "approved", ["decision.edit"]),
        ("pending", "edit title", "active", "approved", ["decision.edit"]),
        ("legacy", "edit title", "active", "legacy", ["decision.edit"]),
        ("approved", "edit nothing", "active", "approved", []),
        ("pending", "edit nothing", "active", "pending", []),
        ("legacy", "edit nothing", "active", "legacy", []),
        ("approved", "edit stale", "stale", "approved", []),
        ("approved", "archive", "archived", "approved", ["decision.archive"]),
        ("pending", "archive", "archived", "pending", ["decision.archive"]),
        ("legacy", "archive", "archived", "legacy", ["decision.refuse"]),
        ("archived", "archive", "conflict", "approved", []),
        ("superseded", "archive", "conflict", "approved", []),
        ("refused", "archive", "conflict", "legacy", []),
        ("approved", "supersede", "superseded", "approved", ["decision.supersede"]),
        ("legacy", "supersede", "superseded", "legacy", ["decision.supersede"]),
        ("archived", "supersede", "conflict", "approved", []),
        ("superseded", "supersede", "conflict", "approved", []),
        ("superseded", "supersede again", "conflict", "approved", []),
        ("refused", "supersede", "conflict", "legacy", []),
    ],
)
def test_every_state_of_a_decision_meets_every_action(
    team: Team, state: str, action: str, expected: str, trust: str, events: list[str]
) -> None:
    first, second = (DecisionFactory(project=team.project) for _ in range(2))
    values = {**DECISIONS[state], **({"superseded_by": first} if state == "superseded" else {})}
    decision = DecisionFactory(project=team.project, revision=3, **values)
    known = LedgerEvent.objects.count()
    row = {"decision_id": decision.pk}
    attempts: dict[str, Callable[[], Any]] = {
        "approve": lambda: approve(team, decision),
        "stale": lambda: approve(team, decision, revision=2),
        "correct": lambda: approve(team, decision, type="scope", tags="a"),
        "edit": lambda: decide(team, edit_decision, **row, revision=3, content="New."),
        "edit title": lambda: decide(team, edit_decision, **row, revision=3, title="New."),
        "edit nothing": lambda: decide(team, edit_decision, **row, revision=3, content=decision.content),
        "edit stale": lambda: decide(team, edit_decision, **row, revision=2, content="New."),
        "archive": lambda: decide(team, archive_decision, **row, reason="Old."),
        "supersede": lambda: decide(team, supersede_decision, **row, superseded_by=second.pk, reason="Old."),
        "supersede again": lambda: decide(
            team, supersede_decision, **row, superseded_by=first.pk, reason="Old."
        ),
    }
    assert outcome(attempts[action]) == expected
    assert [event.action for event in LedgerEvent.objects.order_by("number")[known:]] == events
    kept = Decision.objects.get(pk=decision.pk)
    assert kept.trust_state == trust
    assert kept.revision == 3 + (action in ("correct", "edit", "edit title") and bool(events))
    if not events:
        assert state_of(kept) == state_of(decision)
    if action in ("archive", "supersede") and events:
        assert last_event().reason == "Old."


def test_a_decision_is_created_active_and_approved_by_its_creator(team: Team) -> None:
    decision = decide(
        team,
        create_decision,
        agent_name=" Ana ",
        type="technical",
        title=" T ",
        content=" C\n",
        rationale="R",
        tags="A",
    )
    assert state_of(decision) == state_of(Decision.objects.get()) == {
        "agent_id": decision.agent_id, "type": "technical", "status": "active", "title": "T", "content": " C\n",
        "rationale": "R", "tags": ["a"], "superseded_by_id": None, "revision": 1, "source_kind": "human",
        "source_identity": "owner", "source_run_id": None, "trust_state": "approved", "approved_by": "owner",
        "approved_at": "2026-12-01T10:00:00.000000+00:00", "created_at": "2026-12-01T10:00:00.000000+00:00",
        "updated_at": "2026-12-01T10:00:00.000000+00:00",
    }  # fmt: skip


def test_a_coordinator_creates_decisions_as_itself(team: Team) -> None:
    run = start_run(team, "Lead", role="coordinator")
    values = {"type": "scope", "title": "T", "content": "C"}
    decision = decide(team, create_decision, run, agent_name="LEAD", **values)
    assert (decision.source_kind, decision.source_run_id, decision.approved_by) == (
        "run",
        run.run_id,
        f"run:{run.run_id}",
    )
    assert decision.agent.name == "Lead"
    with pytest.raises(Refused) as caught:
        decide(team, create_decision, run, agent_name="Ana", **values)
    assert caught.value.code == "agent_mismatch"
    assert Decision.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("agent_name", "/"), ("type", "pattern"), ("title", ""), ("title", "a\nb"), ("content", " "), ("rationale", "\x00"), ("tags", ["a,b"])],
)  # fmt: skip
def test_a_wrong_field_of_a_decision_is_named(team: Team, field: str, value: Any) -> None:
    given = {"agent_name": "Ana", "type": "scope", "title": "T", "content": "C"}
    with pytest.raises(Invalid) as caught:
        decide(team, create_decision, **{**given, field: value})
    assert list(caught.value.errors) == [field]
    if field != "agent_name":
        decision = DecisionFactory(project=team.project)
        with pytest.raises(Invalid) as caught:
            decide(team, edit_decision, decision_id=decision.pk, revision=1, **{field: value})
        assert list(caught.value.errors) == [field]


def test_an_edit_of_a_decision_is_approved_by_its_editor(team: Team, other_owner: Human) -> None:
    decision = DecisionFactory(project=team.project)
    edited = decide(
        team,
        edit_decision,
        other_owner,
        decision_id=decision.pk,
        revision=1,
        type="scope",
        tags=["a"],
        rationale="",
    )
    assert (edited.type, edited.tags, edited.revision, edited.approved_by, edited.approved_at) == (
        "scope", ["a"], 2, "other-owner", LATER,
    )  # fmt: skip
    assert edited.source_identity == "contributor"


def test_a_decision_has_no_importance_to_correct(team: Team) -> None:
    with pytest.raises(Invalid) as caught:
        approve(team, DecisionFactory(project=team.project), importance="high")
    assert list(caught.value.errors) == ["importance"]


def test_an_imported_decision_gets_its_type_while_it_is_approved(team: Team) -> None:
    decision = DecisionFactory(project=team.project, type="technical", **LEGACY)
    approve(team, decision, type="architectural")
    result = compile_context(Project.objects.get(), "Ana")
    assert [row.id for row in result.included] == [decision.pk]


# Superseding


def supersede(team: Team, decision: Decision, by: int, actor: Any = None) -> Decision:
    return decide(
        team, supersede_decision, actor, decision_id=decision.pk, superseded_by=by, reason="Replaced."
    )


def test_a_successor_takes_the_place_in_the_next_compile_and_history_stays(team: Team) -> None:
    old, new = (DecisionFactory(project=team.project, title=title) for title in ("Old", "New"))
    superseded = supersede(team, old, new.pk)
    assert (superseded.status, superseded.superseded_by, superseded.content) == (
        "superseded",
        new,
        old.content,
    )
    assert [row.id for row in compile_context(Project.objects.get(), "Ana").included] == [new.pk]
    assert list(new.supersedes.all()) == [old]


def test_no_decision_takes_its_own_place_or_that_of_its_successor(team: Team) -> None:
    one, two, three = (DecisionFactory(project=team.project) for _ in range(3))
    with pytest.raises(Invalid) as caught:
        supersede(team, one, one.pk)
    assert list(caught.value.errors) == ["superseded_by"]
    supersede(team, one, two.pk)
    supersede(team, two, three.pk)
    for successor in (one, two):
        with pytest.raises(Conflict) as conflict:
            supersede(team, three, successor.pk)
        assert conflict.value.row.pk == successor.pk
    assert Decision.objects.get(pk=three.pk).status == "active"


def test_a_successor_is_an_active_decision_of_the_same_project(team: Team) -> None:
    decision = DecisionFactory(project=team.project)
    for unknown in (DecisionFactory(project=ProjectFactory()).pk, 999_999):
        with pytest.raises(Invalid) as caught:
            supersede(team, decision, unknown)
        assert list(caught.value.errors) == ["superseded_by"]
    with pytest.raises(Conflict):
        supersede(team, decision, DecisionFactory(project=team.project, status="archived").pk)


def test_only_one_of_two_deciders_supersedes(team: Team, other_owner: Human) -> None:
    old, new = (DecisionFactory(project=team.project) for _ in range(2))
    supersede(team, old, new.pk)
    before = ledger()
    with pytest.raises(Conflict) as caught:
        supersede(team, old, new.pk, other_owner)
    assert caught.value.row.status == "superseded"
    assert ledger() == before


# Who may decide

ROWS: dict[str, Callable[[Project], int]] = {
    "entry": lambda project: EntryFactory(project=project).pk,
    "memory": lambda project: MemoryFactory(project=project).pk,
    "decision": lambda project: DecisionFactory(project=project, trust_state="pending").pk,
}
VERBS: dict[str, tuple[str, Callable[..., Any]]] = {
    "merge": ("entry", lambda pk, **by: merge_entry(entry_id=pk, revision=1, **by)),
    "reject": ("entry", lambda pk, **by: reject_entry(entry_id=pk, reason="No.", **by)),
    "approve memory": ("memory", lambda pk, **by: approve_memory(memory_id=pk, revision=1, **by)),
    "retire": ("memory", lambda pk, **by: retire_memory(memory_id=pk, reason="No.", **by)),
    "approve decision": ("decision", lambda pk, **by: approve_decision(decision_id=pk, revision=1, **by)),
    "edit": ("decision", lambda pk, **by: edit_decision(decision_id=pk, revision=1, content="New.", **by)),
    "archive": ("decision", lambda pk, **by: archive_decision(decision_id=pk, reason="No.", **by)),
    "supersede": ("decision", lambda pk, **by: supersede_decision(
        decision_id=pk, superseded_by=DecisionFactory(project=Project.objects.get(pk=by["project_id"])).pk, reason="No.", **by)),
    "create": ("decision", lambda pk, **by: create_decision(
        agent_name="Ana", type="scope", title="T", content="C", **by)),
}  # fmt: skip
verbs = pytest.mark.parametrize("verb", VERBS)


def attempt(team: Team, verb: str, actor: Any) -> str:
    """What the verb answers the actor; a refusal must leave no trace."""
    kind, call = VERBS[verb]
    pk = ROWS[kind](team.project)
    before = ledger()
    try:
        call(pk, project_id=team.project.pk, actor=actor, now=LATER)
    except (Refused, NotFound, CredentialRefused) as refusal:
        assert ledger() == before
        return refusal.code
    return "done"


def ended(team: Team, run: VerifiedRun) -> VerifiedRun:
    with change(run.project_id, team.orchestrator, NOW) as opened:
        finish_run(opened, run.run_id, "completed")
    return run


def coordinator_elsewhere(team: Team) -> VerifiedRun:
    other = create_project(actor=team.owner, name="Other", slug="other", now=NOW)
    return start_run(Team(other, *(team.owner,) * 5), role="coordinator")


def superuser(team: Team) -> Human:
    User.objects.create_superuser("root")
    return Human("root")


def child(team: Team) -> VerifiedRun:
    parent = start_run(team, "Lead", role="coordinator")
    return start_run(team, parent=Run.objects.get(pk=parent.run_id))


def former_owner(team: Team) -> Human:
    User.objects.create_user("former")
    grant(project_id=team.project.pk, actor=team.owner, username="former", role="owner", now=NOW)
    revoke(project_id=team.project.pk, actor=team.owner, username="former", now=NOW)
    return Human("former")


ACTORS: dict[str, tuple[Callable[[Team], Any], str]] = {
    "owner": (lambda team: team.owner, "done"),
    "coordinator run": (lambda team: start_run(team, role="coordinator"), "done"),
    "contributor": (lambda team: team.contributor, "decider_required"),
    "viewer": (lambda team: team.viewer, "decider_required"),
    "orchestrator": (lambda team: team.orchestrator, "decider_required"),
    "worker run": (start_run, "decider_required"),
    "worker run named coordinator": (lambda team: start_run(team, "coordinator"), "decider_required"),
    "child run": (child, "decider_required"),
    "superuser": (superuser, "decider_required"),
    "stranger": (lambda team: team.stranger, "not_found"),
    "nobody": (lambda team: Human("no-such-user"), "not_found"),
    "former owner": (former_owner, "not_found"),
    "coordinator of another project": (coordinator_elsewhere, "not_found"),
    "coordinator whose run ended": (
        lambda team: ended(team, start_run(team, role="coordinator")),
        "run_ended",
    ),
}


@verbs
@pytest.mark.parametrize("who", ACTORS)
def test_only_an_owner_or_a_verified_coordinator_of_the_project_decides(
    team: Team, who: str, verb: str
) -> None:
    make, expected = ACTORS[who]
    assert attempt(team, verb, make(team)) == expected


@verbs
def test_an_owner_decides_nothing_in_a_project_of_others(team: Team, verb: str) -> None:
    User.objects.create_user("elsewhere")
    other = create_project(actor=Human("elsewhere"), name="Other", slug="other", now=NOW)
    kind, call = VERBS[verb]
    ours = ROWS[kind](team.project)
    with pytest.raises(NotFound):
        call(ours, project_id=team.project.pk, actor=Human("elsewhere"), now=LATER)
    if verb not in ("create", "supersede"):
        with pytest.raises(NotFound) as caught:
            call(ours, project_id=other.pk, actor=Human("elsewhere"), now=LATER)
        assert caught.value.detail == "Not found."


@verbs
def test_an_inactive_owner_decides_nothing(team: Team, other_owner: Human, verb: str) -> None:
    User.objects.filter(username="other-owner").update(is_active=False)
    assert attempt(team, verb, other_owner) == "not_found"


@verbs
def test_every_decision_stands_in_the_ledger_under_its_decider(team: Team, verb: str) -> None:
    run = start_run(team, role="coordinator")
    assert attempt(team, verb, run) == "done"
    assert last_event().actor == f"run:{run.run_id}"
    assert last_event().at == LATER
