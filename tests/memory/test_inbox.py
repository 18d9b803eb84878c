"""Submitting to the inbox and the slugs it gives (SPEC 6, submit)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from governance.deciding.entries import merge_entry, reject_entry
from governance.deciding.projects import create_project
from governance.models import User
from memory.actors import Human, VerifiedRun
from memory.enums import EntryType
from memory.errors import Conflict, Invalid, Refused
from memory.ledger.changes import state_of
from memory.models import Agent, DecisionInboxEntry, LedgerEvent, Project
from memory.recording import kebab, submit_entry
from memory.values import clean_slug
from tests.conftest import NOW, Team, start_run
from tests.factories import EntryFactory, ProjectFactory

pytestmark = pytest.mark.django_db


def submit(
    team: Team, actor: Human | VerifiedRun | None = None, slug: str = "auth-token", **values: Any
) -> tuple[DecisionInboxEntry, bool]:
    given: dict[str, Any] = {"agent_name": "Ana", "type": "architectural", "content": "Text."}
    return submit_entry(
        project_id=team.project.pk, actor=actor or team.contributor, slug=slug, now=NOW, **{**given, **values}
    )


def slugs() -> dict[str, str]:
    return dict(DecisionInboxEntry.objects.order_by("pk").values_list("slug", "content"))


def test_an_entry_is_kept_whole_under_the_source_that_submitted_it(team: Team) -> None:
    run = start_run(team)
    entry, is_new = submit(
        team, run, title=" Use tokens ", rationale="Why.\r\n", tags="A,b", importance="low"
    )
    stored = DecisionInboxEntry.objects.get()
    assert is_new is True
    assert state_of(stored) == state_of(entry) == {
        "agent_id": Agent.objects.get().pk, "slug": "auth-token", "type": "architectural", "title": "Use tokens",
        "content": "Text.", "rationale": "Why.\r\n", "importance": "low", "tags": ["a", "b"], "status": "pending",
        "reviewed_by": "", "reviewed_at": None, "reason": "", "decision_id": None, "memory_id": None, "revision": 1,
        "source_kind": "run", "source_identity": f"run:{run.run_id}", "source_run_id": str(run.run_id),
        "created_at": "2026-12-01T09:00:00.000000+00:00", "updated_at": "2026-12-01T09:00:00.000000+00:00",
    }  # fmt: skip


@pytest.mark.parametrize("type_", EntryType)
def test_every_type_may_be_proposed_and_what_is_not_said_has_its_default(team: Team, type_: str) -> None:
    entry, _ = submit(team, type=type_)
    assert (entry.title, entry.rationale, entry.importance, entry.tags) == ("auth-token", "", "high", [])
    assert submit(team, title="  ", type=type_)[0].title == "auth-token"


@pytest.mark.parametrize(
    ("field", "value"),
    [("agent_name", ""), ("slug", "Not Kebab"), ("slug", ""), ("slug", "x" * 121), ("type", "core_context"), ("type", ""),
     ("title", "x" * 301), ("title", "a\nb"), ("content", " "), ("content", "a\x00"), ("rationale", "x" * 65_537),
     ("importance", "urgent"), ("tags", [f"t{n}" for n in range(21)])],
)  # fmt: skip
def test_a_wrong_field_is_named_and_nothing_is_written(team: Team, field: str, value: Any) -> None:
    events = LedgerEvent.objects.count()
    with pytest.raises(Invalid) as caught:
        submit(team, **{field: value})
    assert list(caught.value.errors) == [field]
    assert not DecisionInboxEntry.objects.exists()
    assert LedgerEvent.objects.count() == events


def test_a_proposal_alters_no_context(team: Team) -> None:
    submit(team)
    epoch = Project.objects.get().epoch
    submit(team, slug="another")
    submit(team, content="New.")
    assert Project.objects.get().epoch == epoch


def test_the_same_agent_from_the_same_source_updates_its_pending_entry_in_place(team: Team) -> None:
    entry, _ = submit(team)
    again, is_new = submit(team, agent_name=" ANA ", content="New.", type="scope", title="T", tags="a", importance="low", rationale="R")  # fmt: skip
    assert (again.pk, is_new, again.revision) == (entry.pk, False, 2)
    assert slugs() == {"auth-token": "New."}
    stored = DecisionInboxEntry.objects.get()
    assert (stored.type, stored.title, stored.tags, stored.importance, stored.rationale) == ("scope", "T", ["a"], "low", "R")  # fmt: skip
    last = LedgerEvent.objects.order_by("number").last()
    assert last is not None
    assert last.action == "entry.update"
    assert '"content":"Text."' in last.before
    assert '"content":"New."' in last.after


def test_submitting_the_same_again_changes_nothing(team: Team) -> None:
    entry, _ = submit(team)
    events = LedgerEvent.objects.count()
    again, is_new = submit(team)
    assert (again.pk, again.revision, is_new) == (entry.pk, 1, False)
    assert LedgerEvent.objects.count() == events


def test_two_agents_reusing_a_slug_both_stand_in_the_queue(team: Team) -> None:
    ana, ben = start_run(team, "Ana"), start_run(team, "Ben")
    submit(team, ana, content="Ana's")
    submit(team, ben, agent_name="Ben", content="Ben's")
    submit(team, ana, content="Ana's second")
    assert slugs() == {"auth-token": "Ana's second", "auth-token--ben": "Ben's"}
    _, is_new = submit(team, ben, agent_name="Ben", content="Ben's second")
    assert is_new is False
    assert slugs() == {"auth-token": "Ana's second", "auth-token--ben": "Ben's second"}


def test_another_source_of_the_same_agent_gets_an_entry_of_its_own_and_keeps_it(team: Team) -> None:
    first, second = start_run(team), start_run(team)
    for actor, text in ((first, "1"), (second, "2"), (team.contributor, "3"), (team.owner, "4")):
        assert submit(team, actor, content=text)[1] is True
    expected = {
        "auth-token": "1",
        "auth-token--ana": "2",
        "auth-token--ana--2": "3",
        "auth-token--ana--3": "4",
    }
    assert slugs() == expected
    for actor, text in ((first, "1b"), (second, "2b"), (team.contributor, "3b"), (team.owner, "4b")):
        assert submit(team, actor, content=text)[1] is False
    assert slugs() == {slug: f"{text}b" for slug, text in expected.items()}


def test_the_slug_that_was_answered_names_the_same_entry(team: Team) -> None:
    submit(team, team.owner)
    given, _ = submit(team, content="1")
    assert given.slug == "auth-token--ana"
    again, is_new = submit(team, slug=given.slug, content="2")
    assert (again.pk, is_new) == (given.pk, False)


def test_a_slug_of_ones_own_is_never_taken_for_one_made_from_a_shorter(team: Team) -> None:
    submit(team, content="short")
    submit(team, slug="auth-token--ana", content="long")
    submit(team, content="short again")
    assert slugs() == {"auth-token": "short again", "auth-token--ana": "long"}


@pytest.mark.parametrize("outcome", ["merged", "rejected"])
def test_a_decided_entry_of_the_same_agent_is_a_conflict_whoever_asks(team: Team, outcome: str) -> None:
    run = start_run(team)
    entry, _ = submit(team, run)
    decided: dict[str, Any] = {
        "project_id": team.project.pk,
        "actor": team.owner,
        "entry_id": entry.pk,
        "now": NOW,
    }
    if outcome == "merged":
        merge_entry(**decided, revision=1)
    else:
        reject_entry(**decided, reason="No.")
    for actor in (run, start_run(team), team.contributor):
        with pytest.raises(Conflict) as caught:
            submit(team, actor, content="New.")
        assert (caught.value.row.pk, caught.value.row.status) == (entry.pk, outcome)
    assert slugs() == {"auth-token": "Text."}
    submit(team, agent_name="Ben", content="Ben's")
    assert slugs() == {"auth-token": "Text.", "auth-token--ben": "Ben's"}


def test_slugs_of_two_projects_do_not_meet(team: Team) -> None:
    EntryFactory(project=ProjectFactory(), slug="auth-token")
    assert submit(team)[0].slug == "auth-token"


def test_a_worker_submits_as_its_own_agent_only(team: Team) -> None:
    with pytest.raises(Refused) as caught:
        submit(team, start_run(team), agent_name="Ben")
    assert caught.value.code == "agent_mismatch"


def test_a_slug_of_full_length_still_gets_a_name_of_its_own(team: Team) -> None:
    long = "x" * 120
    for n in range(12):
        submit(team, Human(f"person-{n}"), slug=long, content=str(n))
    assert list(slugs().values()) == [str(n) for n in range(12)]
    assert all(clean_slug(slug) == slug for slug in slugs())
    assert list(slugs())[:3] == [long, f"{'x' * 109}--ana", f"{'x' * 109}--ana--2"]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Ana", "ana"),
        ("José B.", "jose-b"),
        ("日本", "agent"),
        ("--", "agent"),
        ("A__b", "a-b"),
        ("x" * 99, "x" * 60),
    ],
)
def test_an_agents_name_becomes_a_part_of_a_slug(name: str, slug: str) -> None:
    assert kebab(name) == slug
    assert clean_slug(slug) == slug


def test_agents_whose_names_leave_nothing_of_a_slug_are_kept_apart(team: Team) -> None:
    submit(team, content="Ana's")
    for name in ("日本", "中国"):
        submit(team, agent_name=name, content=name)
        submit(team, agent_name=name, content=f"{name}!")
    assert slugs() == {"auth-token": "Ana's", "auth-token--agent": "日本!", "auth-token--agent--2": "中国!"}


submission = st.tuples(
    st.sampled_from(["ana", "bo"]), st.sampled_from(["Ana", "ana ", "Ben"]), st.sampled_from(["x", "x-y", "x--y", "x--z"]),
)  # fmt: skip
"""Who submits (a person), for which agent, under which slug."""


class NoTextIsLost(TestCase):
    @settings(max_examples=40, deadline=None)
    @given(st.lists(submission, max_size=12))
    def test_the_last_text_of_every_source_agent_and_slug_stands_in_the_queue(
        self, submissions: list[tuple[str, str, str]]
    ) -> None:
        User.objects.create_user("ana")
        project = create_project(actor=Human("ana"), name="P", slug="p", now=NOW)
        last: dict[tuple[str, str, str], str] = {}
        for number, (person, agent, slug) in enumerate(submissions):
            submit_entry(
                project_id=project.pk, actor=Human(person), agent_name=agent, slug=slug, type="scope",
                content=str(number), now=NOW,
            )  # fmt: skip
            last[person, agent.strip().lower(), slug] = str(number)
        assert sorted(slugs().values()) == sorted(last.values())
