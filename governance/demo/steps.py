"""What can happen in the demo. Each step is data and plays as one call of the verb that the API and the pages call.

A step says how long `ago` it happened (`"12d 4h 30m"`) and `by` whom: a user name, or the `external_id` of a run, which then acts
as that verified run. Rows made earlier are named by their label: a slug, a session's or run's id, or the `label` given here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group

from governance.deciding import projects, scribe
from governance.deciding.decisions import (
    approve_decision,
    archive_decision,
    create_decision,
    edit_decision,
    supersede_decision,
)
from governance.deciding.entries import merge_entry, reject_entry
from governance.deciding.gate import NO_CORRECTIONS, Corrections
from governance.deciding.memories import approve_memory, retire_memory
from governance.deciding.scribe import Exported, Exporter
from governance.demo.stage import Stage, Step
from governance.people import policies
from governance.people.credentials import issue_run_credential
from governance.people.policies import Action
from memory import recording, sessions
from memory.actors import Human
from memory.compiling.compiler import Limits
from memory.compiling.receipts import build_for_run
from memory.ledger.changes import change
from memory.mirror.importing import import_tree
from memory.mirror.reading.tree import read_folder
from memory.models import AgentMemory, Decision, DecisionInboxEntry, Project
from memory.runs import register_run
from memory.sessions import SessionFields

# People and policy


@dataclass(frozen=True, kw_only=True)
class Join(Step):
    user: str
    role: str

    def play(self, stage: Stage, now: datetime) -> None:
        policies.grant(
            project_id=stage.project_id,
            actor=stage.actor(self.by),
            username=self.user,
            role=self.role,
            now=now,
        )


@dataclass(frozen=True, kw_only=True)
class JoinAsGroup(Step):
    group: str
    role: str

    def play(self, stage: Stage, now: datetime) -> None:
        group = Group.objects.get(name=self.group)
        policies.grant_group(
            project_id=stage.project_id, actor=stage.actor(self.by), group=group, role=self.role, now=now
        )


@dataclass(frozen=True, kw_only=True)
class SetPolicy(Step):
    policy: Mapping[str, Any]

    def play(self, stage: Stage, now: datetime) -> None:
        projects.update_project(
            project_id=stage.project_id, actor=Human(self.by), policy=self.policy, now=now
        )


# Sessions


@dataclass(frozen=True, kw_only=True)
class StartSession(Step):
    id: str
    focus: str
    issues: tuple[str, ...] = ()

    def play(self, stage: Stage, now: datetime) -> None:
        sessions.start_session(
            project_id=stage.project_id, actor=stage.allowed(self.by, Action.RECORD), session_id=self.id,
            fields=SessionFields(focus_area=self.focus, active_issues=self.issues), now=now,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NoteSession(Step):
    summary: str | None = None
    issues: tuple[str, ...] | None = None
    end: bool = False

    def play(self, stage: Stage, now: datetime) -> None:
        sessions.update_current_session(
            project_id=stage.project_id, actor=stage.allowed(self.by, Action.RECORD),
            fields=SessionFields(summary=self.summary, active_issues=self.issues), end=self.end, now=now,
        )  # fmt: skip


# Runs


@dataclass(frozen=True, kw_only=True)
class StartRun(Step):
    run: str
    agent: str
    role: str = "worker"
    parent: str | None = None
    charter: str | None = None

    def play(self, stage: Stage, now: datetime) -> None:
        parent = stage.runs[self.parent] if self.parent else None
        with change(stage.project_id, stage.allowed(self.by, Action.RUN_RUNS), now) as opened:
            run, _ = register_run(
                opened, agent_name=self.agent, role=self.role, parent_run_id=parent, external_id=self.run,
                charter=self.charter,
            )  # fmt: skip
        issue_run_credential(run, now)
        stage.runs[self.run] = run.pk


@dataclass(frozen=True, kw_only=True)
class TellRun(Step):
    """Build the run's context, as the orchestrator does before each turn; a receipt is kept."""

    run: str
    limits: Limits | None = None

    def play(self, stage: Stage, now: datetime) -> None:
        stage.allowed(self.by, Action.RUN_RUNS)
        build_for_run(stage.run(self.run), self.limits or Limits(), now)


def full_disk(project: Project, now: datetime) -> Exported:
    """An exporter for the run whose mirror could not be written."""
    raise OSError(f"No space left for the files of {project.slug}.")


@dataclass(frozen=True, kw_only=True)
class EndRun(Step):
    run: str
    status: str = "completed"
    summary: str = ""
    end_session: bool = False
    exporter: Exporter = scribe.no_workspace

    def play(self, stage: Stage, now: datetime) -> None:
        scribe.complete_run(
            project_id=stage.project_id, actor=stage.actor(self.by), run_id=stage.runs[self.run],
            status=self.status, summary=self.summary, end_session=self.end_session,
            exporter=self.exporter, now=now,
        )  # fmt: skip
        for entry in DecisionInboxEntry.objects.filter(source_run_id=stage.runs[self.run]):
            if row := entry.decision or entry.memory:
                stage.keep(entry.slug, row)


# Memory


@dataclass(frozen=True, kw_only=True)
class Remember(Step):
    agent: str
    type: str
    content: str
    importance: str = "medium"
    tags: str = ""
    session: str | None = None
    label: str = ""

    def play(self, stage: Stage, now: datetime) -> None:
        memory = recording.record_memory(
            project_id=stage.project_id, actor=stage.allowed(self.by, Action.RECORD), agent_name=self.agent,
            type=self.type, content=self.content, importance=self.importance, tags=self.tags,
            session_id=self.session, now=now,
        )  # fmt: skip
        stage.keep(self.label, memory)


@dataclass(frozen=True, kw_only=True)
class EditMemory(Step):
    memory: str
    content: str

    def play(self, stage: Stage, now: datetime) -> None:
        memory = AgentMemory.objects.get(pk=stage.memories[self.memory])
        recording.edit_memory(
            project_id=stage.project_id, actor=stage.allowed(self.by, Action.RECORD), memory_id=memory.pk,
            revision=memory.revision, content=self.content, now=now,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ApproveMemory(Step):
    memory: str
    corrections: Corrections = NO_CORRECTIONS

    def play(self, stage: Stage, now: datetime) -> None:
        memory = AgentMemory.objects.get(pk=stage.memories[self.memory])
        approve_memory(
            project_id=stage.project_id, actor=stage.actor(self.by), memory_id=memory.pk,
            revision=memory.revision, corrections=self.corrections, now=now,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RetireMemory(Step):
    memory: str
    reason: str

    def play(self, stage: Stage, now: datetime) -> None:
        retire_memory(
            project_id=stage.project_id, actor=stage.actor(self.by), memory_id=stage.memories[self.memory],
            reason=self.reason, now=now,
        )  # fmt: skip


# Inbox


@dataclass(frozen=True, kw_only=True)
class Propose(Step):
    agent: str
    slug: str
    type: str
    title: str
    content: str
    rationale: str = ""
    importance: str = "high"
    tags: str = ""

    def play(self, stage: Stage, now: datetime) -> None:
        entry, _ = recording.submit_entry(
            project_id=stage.project_id, actor=stage.allowed(self.by, Action.RECORD), agent_name=self.agent,
            slug=self.slug, type=self.type, title=self.title, content=self.content, rationale=self.rationale,
            importance=self.importance, tags=self.tags, now=now,
        )  # fmt: skip
        stage.entries[entry.slug] = entry.pk


@dataclass(frozen=True, kw_only=True)
class Merge(Step):
    entry: str
    corrections: Corrections = NO_CORRECTIONS

    def play(self, stage: Stage, now: datetime) -> None:
        entry = DecisionInboxEntry.objects.get(pk=stage.entries[self.entry])
        row = merge_entry(
            project_id=stage.project_id, actor=stage.actor(self.by), entry_id=entry.pk, revision=entry.revision,
            corrections=self.corrections, now=now,
        )  # fmt: skip
        stage.keep(self.entry, row)


@dataclass(frozen=True, kw_only=True)
class Reject(Step):
    entry: str
    reason: str

    def play(self, stage: Stage, now: datetime) -> None:
        reject_entry(
            project_id=stage.project_id, actor=stage.actor(self.by), entry_id=stage.entries[self.entry],
            reason=self.reason, now=now,
        )  # fmt: skip


# Files


@dataclass(frozen=True, kw_only=True)
class Import(Step):
    """Take in a folder of files. Its decisions are labelled by title, its memories by their first line."""

    folder: Path

    def play(self, stage: Stage, now: datetime) -> None:
        import_tree(
            project_id=stage.project_id, actor=stage.allowed(self.by, Action.IMPORT),
            tree=read_folder(self.folder), charters=policies.can(stage.actor(self.by), Action.DECIDE, stage.project),
            now=now,
        )  # fmt: skip
        for decision in Decision.objects.filter(imported__isnull=False, project_id=stage.project_id):
            stage.keep(decision.title, decision)
        for memory in AgentMemory.objects.filter(imported__isnull=False, project_id=stage.project_id):
            stage.keep(memory.content.split("\n")[0], memory)


# Decisions


@dataclass(frozen=True, kw_only=True)
class Decide(Step):
    agent: str
    type: str
    title: str
    content: str
    rationale: str = ""
    tags: str = ""
    label: str

    def play(self, stage: Stage, now: datetime) -> None:
        decision = create_decision(
            project_id=stage.project_id, actor=stage.actor(self.by), agent_name=self.agent, type=self.type,
            title=self.title, content=self.content, rationale=self.rationale, tags=self.tags, now=now,
        )  # fmt: skip
        stage.keep(self.label, decision)


@dataclass(frozen=True, kw_only=True)
class EditDecision(Step):
    decision: str
    content: str
    rationale: str | None = None

    def play(self, stage: Stage, now: datetime) -> None:
        decision = Decision.objects.get(pk=stage.decisions[self.decision])
        edit_decision(
            project_id=stage.project_id, actor=stage.actor(self.by), decision_id=decision.pk,
            revision=decision.revision, content=self.content, rationale=self.rationale, now=now,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ApproveDecision(Step):
    decision: str
    corrections: Corrections = NO_CORRECTIONS

    def play(self, stage: Stage, now: datetime) -> None:
        decision = Decision.objects.get(pk=stage.decisions[self.decision])
        approve_decision(
            project_id=stage.project_id, actor=stage.actor(self.by), decision_id=decision.pk,
            revision=decision.revision, corrections=self.corrections, now=now,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Supersede(Step):
    decision: str
    successor: str
    reason: str

    def play(self, stage: Stage, now: datetime) -> None:
        supersede_decision(
            project_id=stage.project_id, actor=stage.actor(self.by), decision_id=stage.decisions[self.decision],
            superseded_by=stage.decisions[self.successor], reason=self.reason, now=now,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Archive(Step):
    decision: str
    reason: str

    def play(self, stage: Stage, now: datetime) -> None:
        archive_decision(
            project_id=stage.project_id, actor=stage.actor(self.by), decision_id=stage.decisions[self.decision],
            reason=self.reason, now=now,
        )  # fmt: skip
