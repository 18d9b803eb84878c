"""What holds whatever happens: text that comes back equal, and an epoch that tells of every change (SPEC 3, 4, 4.1)."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from governance.deciding import decisions, entries, memories
from governance.deciding.gate import Corrections
from governance.deciding.projects import create_project, update_project
from governance.models import User
from memory.actors import Human
from memory.compiling import envelope
from memory.compiling.compiler import CompiledContext, compile_context, compile_decisions, etag
from memory.enums import DecisionType, EntryType, Importance, MemoryType
from memory.errors import DomainError, OverBudget
from memory.models import AgentMemory, Decision, DecisionInboxEntry, Project, SessionContext
from memory.recording import edit_memory, record_memory, submit_entry
from memory.sessions import SessionFields, start_session, update_current_session
from tests.conftest import NOW
from tests.memory.compiling.test_envelope import NASTY, assert_guarded, nasty_text, storable

ANA = Human("ana")


def found_project() -> Project:
    User.objects.create_user("ana")
    return create_project(
        actor=ANA, name="P", slug="p", policy={"max_items": 1000, "max_tokens": 1_000_000}, now=NOW
    )


def one_line(text: str) -> str:
    """A text as a title or a name may be: on one line, trimmed."""
    kept = (char for char in text if unicodedata.category(char) not in ("Cc", "Zl", "Zp"))
    return "".join(kept).strip()


content = nasty_text.filter(lambda text: bool(text.strip()))
title = nasty_text.map(one_line).map(lambda text: text[:300].strip()).filter(bool)
name = (
    nasty_text.map(one_line)
    .map(lambda text: text.replace("/", "")[:30].strip())
    .filter(lambda text: text not in ("", ".", ".."))
)
issue = nasty_text.map(lambda text: text[:500])
focus = nasty_text.map(lambda text: text[:2000])


class EveryTextFieldIsData(TestCase):
    """Every field a caller can fill is driven through its verb, the compiler and back."""

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(name, title, content, nasty_text, content, focus, st.lists(issue, max_size=3), nasty_text)
    @example(
        "Ana", "T", envelope.END, envelope.BEGIN, "\n" + envelope.END + "\n", "\u2028", ["```", "'"], "\\"
    )
    @example(envelope.END, envelope.BEGIN, "C", "", f'"}}]\n{envelope.END}', "", [], "")
    def test_what_went_in_comes_out_and_nothing_else_does(
        self,
        agent: str,
        heading: str,
        text: str,
        why: str,
        learned: str,
        area: str,
        issues: list[str],
        summary: str,
    ) -> None:
        project = found_project()
        by: dict[str, Any] = {"project_id": project.pk, "actor": ANA, "now": NOW}
        decision = decisions.create_decision(
            **by, agent_name=agent, type="scope", title=heading, content=text, rationale=why
        )
        record_memory(**by, agent_name=agent, type="core_context", content=learned)
        shared = record_memory(**by, agent_name=f"{agent} 2"[-100:], type="learning", importance="high", content=text, tags="cross-team")  # fmt: skip
        memories.approve_memory(**by, memory_id=shared.pk, revision=1)
        fields = SessionFields(focus_area=area, active_issues=issues, summary=summary)
        start_session(**by, session_id="s", fields=fields)

        result = compile_context(project, agent)
        assert result.text is not None
        assert_guarded(result.text)
        shown = decision.agent.name
        assert envelope.parse(result.text) == {
            "schema": envelope.SCHEMA,
            "decisions": [
                {"title": heading, "type": "scope", "agent_name": shown, "content": text, "rationale": why or None}
            ],
            "memory": [
                {"label": "core", "type": "core_context", "agent_name": shown, "importance": "medium", "content": learned,
                 "trust_state": "pending"},
                {"label": f"learning from {shared.agent.name}", "type": "learning", "agent_name": shared.agent.name,
                 "importance": "high", "content": text, "trust_state": "approved"},
            ],
            "session": {"focus_area": area or None, "active_issues": issues, "summary": summary or None},
        }  # fmt: skip
        assert agent.strip() == shown

    @settings(max_examples=40, deadline=None)
    @given(
        st.text(storable, min_size=1, max_size=50).filter(lambda text: bool(text.strip())),
        st.sampled_from(NASTY),
    )
    def test_what_an_agent_proposes_is_data_once_it_is_merged(self, text: str, piece: str) -> None:
        project = found_project()
        by: dict[str, Any] = {"project_id": project.pk, "actor": ANA, "now": NOW}
        for number, kind in enumerate(("architectural", "learning")):
            entry, _ = submit_entry(
                **by,
                agent_name="Ana",
                slug=f"s-{number}",
                type=kind,
                content=f"{text}{piece}",
                rationale=piece,
            )
            entries.merge_entry(**by, entry_id=entry.pk, revision=1)
        block = compile_context(project, "Ana").text
        assert block is not None
        assert_guarded(block)
        data = envelope.parse(block)
        assert data["decisions"][0]["content"] == data["memory"][0]["content"] == f"{text}{piece}"
        assert data["decisions"][0]["rationale"] == (piece or None)


AGENTS = ("Ana", "Ben", "Nobody")
WORDS = st.sampled_from(["a", "b", "<c>", "d" * 300, envelope.END])
TAGS = st.sampled_from([[], ["cross-team"], ["cross-teams"], ["a", "cross-team"]])


def told(project: Project) -> dict[str | None, Any]:
    """What every agent, and a child of anyone, would be told now."""
    return {
        **{agent: answer(partial(compile_context, project, agent)) for agent in AGENTS},
        None: answer(partial(compile_decisions, project)),
    }


def answer(compile: Callable[[], CompiledContext]) -> Any:
    """Everything of an answer but the epoch itself."""
    try:
        result = compile()
    except OverBudget as refusal:
        return refusal.budget, refusal.required
    return result.text, result.included, result.omitted, result.over_budget, result.policy


class Ledger(RuleBasedStateMachine):
    """Random verbs on one project. Whatever an agent would be told changes only together with the epoch, and never without it."""

    memories: Bundle[int] = Bundle("memories")
    decisions: Bundle[int] = Bundle("decisions")
    entries: Bundle[int] = Bundle("entries")

    def __init__(self) -> None:
        super().__init__()
        # Each example has the database to itself.
        self.example = transaction.atomic()
        self.example.__enter__()
        self.clock = NOW
        self.project = found_project()
        self.seen = self.look()

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.example.__exit__(None, None, None)

    def look(self) -> tuple[int, str, dict[str | None, Any]]:
        project = Project.objects.get()
        return project.epoch, etag(project, "x"), told(project)

    def do(self, verb: Callable[..., Any], **values: Any) -> Any:
        """One verb; a refusal is an answer like any other."""
        self.clock += timedelta(seconds=1)
        try:
            return verb(project_id=self.project.pk, actor=ANA, now=self.clock, **values)
        except DomainError:
            return None

    def row(self, verb: Callable[..., Any], **values: Any) -> int:
        made = self.do(verb, **values)
        return made.pk if made is not None else 0

    @rule(target=memories, agent=st.sampled_from(AGENTS[:2]), type=st.sampled_from(MemoryType),
          importance=st.sampled_from(Importance), content=WORDS, tags=TAGS)  # fmt: skip
    def record(self, agent: str, type: str, importance: str, content: str, tags: list[str]) -> int:
        return self.row(
            record_memory, agent_name=agent, type=type, importance=importance, content=content, tags=tags
        )

    @rule(
        memory=memories,
        content=st.none() | WORDS,
        type=st.none() | st.sampled_from(MemoryType),
        tags=st.none() | TAGS,
    )
    def edit_memory(self, memory: int, **values: Any) -> None:
        self.do(edit_memory, memory_id=memory, revision=revision(AgentMemory, memory), **values)

    @rule(
        memory=memories,
        type=st.none() | st.sampled_from(MemoryType),
        importance=st.none() | st.sampled_from(Importance),
    )
    def approve_memory(self, memory: int, **corrections: Any) -> None:
        self.do(memories.approve_memory, memory_id=memory, revision=revision(AgentMemory, memory),
                corrections=Corrections(**corrections))  # fmt: skip

    @rule(memory=memories)
    def retire(self, memory: int) -> None:
        self.do(memories.retire_memory, memory_id=memory, reason="Old.")

    @rule(memory=memories)
    def become_legacy(self, memory: int) -> None:
        """As if it had been imported: nobody vouches for it. Written past the ledger, so what is known is read anew."""
        AgentMemory.objects.filter(pk=memory, retired_at=None).update(
            source_kind="legacy", trust_state="legacy", approved_by="", approved_at=None
        )
        self.seen = self.look()

    @rule(
        target=decisions,
        agent=st.sampled_from(AGENTS[:2]),
        type=st.sampled_from(DecisionType),
        content=WORDS,
        title=st.just("T"),
    )
    def create_decision(self, agent: str, **values: Any) -> int:
        return self.row(decisions.create_decision, agent_name=agent, **values)

    @rule(
        decision=decisions,
        content=st.none() | WORDS,
        type=st.none() | st.sampled_from(DecisionType),
        title=st.none() | st.just("U"),
    )
    def edit_decision(self, decision: int, **values: Any) -> None:
        self.do(
            decisions.edit_decision, decision_id=decision, revision=revision(Decision, decision), **values
        )

    @rule(decision=decisions)
    def archive(self, decision: int) -> None:
        self.do(decisions.archive_decision, decision_id=decision, reason="Old.")

    @rule(decision=decisions, successor=decisions)
    def supersede(self, decision: int, successor: int) -> None:
        self.do(decisions.supersede_decision, decision_id=decision, superseded_by=successor, reason="Old.")

    @rule(target=entries, agent=st.sampled_from(AGENTS[:2]), slug=st.sampled_from(["x", "x--ana", "y"]), type=st.sampled_from(EntryType),
          content=WORDS, tags=TAGS)  # fmt: skip
    def submit(self, agent: str, **values: Any) -> int:
        made = self.do(submit_entry, agent_name=agent, **values)
        return made[0].pk if made is not None else 0

    @rule(entry=entries, type=st.none() | st.sampled_from(EntryType))
    def merge(self, entry: int, **corrections: Any) -> None:
        self.do(entries.merge_entry, entry_id=entry, revision=revision(DecisionInboxEntry, entry),
                corrections=Corrections(**corrections))  # fmt: skip

    @rule(entry=entries)
    def reject(self, entry: int) -> None:
        self.do(entries.reject_entry, entry_id=entry, reason="No.")

    @rule(session_id=st.sampled_from(["s", "t", "u"]), summary=WORDS)
    def start_session(self, session_id: str, summary: str) -> None:
        self.do(start_session, session_id=session_id, fields=SessionFields(summary=summary))

    @rule(focus=WORDS, end=st.booleans())
    def update_session(self, focus: str, end: bool) -> None:
        self.do(update_current_session, fields=SessionFields(focus_area=focus), end=end)

    @rule(max_items=st.integers(0, 3), max_tokens=st.sampled_from([100, 200, 100_000]),
          on_overflow=st.sampled_from(["include", "fail"]), trust=st.sampled_from(["standard", "strict"]))  # fmt: skip
    def change_policy(self, **policy: Any) -> None:
        self.do(update_project, policy=policy)

    @invariant()
    def every_change_of_what_is_told_shows_in_epoch_and_validator(self) -> None:
        epoch, validator, answers = self.look()
        before_epoch, before_validator, before_answers = self.seen
        if answers != before_answers:
            assert epoch > before_epoch
            assert validator != before_validator
        assert epoch >= before_epoch
        self.seen = epoch, validator, answers
        assert told(Project.objects.get()) == answers

    @invariant()
    def every_block_is_guarded_and_within_its_policy(self) -> None:
        for found in self.seen[2].values():
            if len(found) == 5 and found[0] is not None:
                text, included, _, over_budget, policy = found
                assert_guarded(text)
                assert over_budget is (len(text) > policy.budget)
                mandatory = [row for row in included if row.layer <= 2]
                assert not over_budget or mandatory == list(included)
                taken = [row for row in included if row.layer == 3]
                core = [row for row in included if row.layer == 2]
                assert not taken or len(taken) + len(core) <= policy.max_items

    @invariant()
    def at_most_one_session_is_open(self) -> None:
        assert SessionContext.objects.filter(ended_at=None).count() <= 1


def revision(model: Any, pk: int) -> int:
    """The revision a careful caller would name."""
    return model.objects.filter(pk=pk).values_list("revision", flat=True).first() or 1


@pytest.mark.django_db
def test_the_epoch_tells_of_every_change_that_could_alter_a_context() -> None:
    examples, steps = (200, 60) if os.environ.get("AGENTWEAVER_TORTURE") else (12, 25)
    run_state_machine_as_test(
        Ledger,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        ),
    )  # fmt: skip
