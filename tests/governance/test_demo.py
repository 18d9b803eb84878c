"""`manage.py demo` (SPEC 8.1): every state the product knows, made by the real verbs, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings

from governance.demo.making import Demo, make_demo
from governance.demo.stage import span
from governance.management.commands.demo import login
from governance.models import PersonalToken, ScribeReport, User
from governance.people import policies
from governance.people.credentials import verify
from governance.people.policies import Member, Role
from memory.actors import Human
from memory.compiling.compiler import compile_context, compile_decisions
from memory.compiling.envelope import BEGIN, END, parse
from memory.enums import DecisionStatus, EntryStatus, EntryType, MemoryType, OmitReason, RunStatus, TrustState
from memory.ledger.verification import verify as verify_ledger
from memory.models import (
    Agent,
    AgentMemory,
    ContextReceipt,
    Decision,
    DecisionInboxEntry,
    LedgerEvent,
    Project,
    Run,
    SessionContext,
)

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
SECRET = "a-key-of-this-test-that-is-long-enough-to-be-called-a-secret-0123456789"


@pytest.fixture(scope="module")
def demo(django_db_setup: None, django_db_blocker) -> Iterator[Demo]:
    """The demo, made once for this file and rolled back after it."""
    with django_db_blocker.unblock(), override_settings(SECRET_KEY=SECRET), transaction.atomic():
        yield make_demo(NOW)
        transaction.set_rollback(True)


@pytest.fixture
def project(demo: Demo) -> Project:
    return Project.objects.get(slug="kaimauer")


def test_both_ledgers_verify_and_their_times_follow_their_numbers(demo: Demo) -> None:
    for project in Project.objects.all():
        assert verify_ledger(project).valid
        times = list(
            LedgerEvent.objects.filter(project=project).order_by("number").values_list("at", flat=True)
        )
        assert times == sorted(times)
        assert times[-1] < NOW


def test_entries_of_every_kind_wait_and_others_were_decided(project: Project) -> None:
    entries = DecisionInboxEntry.objects.filter(project=project)
    pending = entries.pending()
    assert set(entries.values_list("status", flat=True)) == set(EntryStatus)
    assert set(pending.values_list("type", flat=True)) >= set(EntryType) - {EntryType.UPDATE}
    assert pending.count() > 25, "the inbox has a second page"
    assert {min(row.age_days, 21) // 7 for row in _aged(pending)} == {0, 1, 2, 3}, "every week has some"
    assert pending.filter(revision__gt=1).exists()
    assert pending.filter(slug__contains="--").exists()


def _aged(entries):
    for entry in entries:
        entry.age_days = (NOW - entry.created_at).days
        yield entry


def test_memories_and_decisions_stand_in_every_state(project: Project) -> None:
    memories = AgentMemory.objects.filter(project=project)
    decisions = Decision.objects.filter(project=project)
    assert set(memories.values_list("type", flat=True)) == set(MemoryType)
    assert set(memories.live().values_list("trust_state", flat=True)) == set(TrustState)
    assert memories.filter(retired_at__isnull=False).exists()
    assert memories.cross_team_requests().count() >= 3
    assert set(decisions.values_list("status", flat=True)) == set(DecisionStatus)
    assert decisions.legacy().exists()
    assert decisions.filter(superseded_by__status=DecisionStatus.SUPERSEDED).exists(), "a chain"
    approvers = {
        name.split(":")[0] for name in memories.exclude(approved_by="").values_list("approved_by", flat=True)
    }
    approvers |= {
        name.split(":")[0] for name in decisions.exclude(approved_by="").values_list("approved_by", flat=True)
    }
    assert approvers >= {"mara", "tobias", "run", "scribe"}


def test_runs_sessions_and_receipts_show_every_outcome(project: Project) -> None:
    runs = Run.objects.filter(project=project)
    assert set(runs.values_list("status", flat=True)) == set(RunStatus)
    assert runs.filter(role="coordinator", status="running").exists()
    assert runs.filter(parent__isnull=False).exists()
    assert SessionContext.objects.filter(project=project, ended_at__isnull=True).count() == 1
    assert SessionContext.objects.filter(project=project, ended_at__isnull=False).count() >= 2
    assert set(ContextReceipt.objects.values_list("compile_error", flat=True)) == {
        "",
        "mandatory_context_exceeds_budget",
    }
    assert ContextReceipt.objects.filter(compile_error="", snapshot__isnull=True).exists(), (
        "nothing was eligible"
    )
    assert ScribeReport.objects.filter(run__project=project).count() == runs.exclude(status="running").count()
    failed = [
        (report.run.external_id, step["name"])
        for report in ScribeReport.objects.select_related("run")
        for step in report.steps
        if step["state"] in ("failed", "pending")
    ]
    assert failed == [("kai-138", "export")]


def test_contexts_show_a_full_budget_and_every_reason(project: Project) -> None:
    contexts = {
        agent.name: compile_context(project, agent.name) for agent in Agent.objects.filter(project=project)
    }
    reasons = {row.reason for compiled in contexts.values() for row in compiled.omitted}
    assert {name for name, compiled in contexts.items() if compiled.over_budget} == {"Ballast"}
    assert reasons == set(OmitReason) - {OmitReason.DECISIONS_ONLY}
    assert compile_decisions(project).text is not None


def test_the_text_that_commands_its_reader_stays_data_when_it_is_approved(project: Project) -> None:
    from governance.deciding.entries import merge_entry

    hostile = DecisionInboxEntry.objects.get(project=project, slug="note-for-the-next-reader")
    assert END in hostile.content
    merge_entry(project_id=project.pk, actor=Human("mara"), entry_id=hostile.pk, revision=1, now=NOW)
    text = compile_decisions(Project.objects.get(pk=project.pk)).text
    assert text is not None
    assert (text.count(BEGIN), text.count(END), text.count("\n")) == (1, 1, 5)
    assert hostile.content in [decision["content"] for decision in parse(text)["decisions"]]


def test_people_have_every_role_and_log_in(demo: Demo, project: Project) -> None:
    assert policies.members(project) == [
        Member("dispatch", Role.ORCHESTRATOR),
        Member("ines", Role.CONTRIBUTOR),
        Member("mara", Role.OWNER),
        Member("tobias", Role.OWNER),
        Member("yusuf", Role.VIEWER),
        Member("harbour-board", Role.VIEWER, is_group=True),
    ]
    assert policies.roles_of("ruth", project.pk) == {Role.VIEWER}
    assert demo.password is not None
    assert User.objects.get(username="mara").check_password(demo.password)
    assert not User.objects.get(username="dispatch").has_usable_password()
    assert demo.token is not None
    assert verify(demo.token, NOW) == Human("dispatch")
    assert PersonalToken.objects.filter(revoked_at__isnull=False).exists()
    assert PersonalToken.objects.filter(expires_at__lt=NOW).exists()


def test_a_second_run_changes_nothing_and_prints_the_login_again(demo: Demo) -> None:
    before = _counts()
    with override_settings(SECRET_KEY=SECRET):
        again = make_demo(NOW + timedelta(days=1))
    assert (again.is_new, again.password, again.token) == (False, demo.password, None)
    assert _counts() == before


def _counts() -> Counter:
    return Counter(
        {model.__name__: model.objects.count() for model in (User, Project, LedgerEvent, PersonalToken)}
    )


def test_a_changed_password_is_not_printed(demo: Demo) -> None:
    owner = User.objects.get(username="mara")
    owner.set_password("of my own")
    owner.save()
    with override_settings(SECRET_KEY=SECRET):
        again = make_demo(NOW)
    assert again.password is None
    assert "changepassword mara" in "\n".join(login(again, "http://127.0.0.1:8000"))


def test_the_command_prints_the_login_on_standard_output_alone(demo: Demo) -> None:
    out, err = StringIO(), StringIO()
    with override_settings(SECRET_KEY=SECRET):
        call_command("demo", "--address", "http://localhost:9000", stdout=out, stderr=err)
    assert "http://localhost:9000/" in out.getvalue()
    assert demo.password is not None
    assert demo.password in out.getvalue()
    assert err.getvalue() == "The demo project is there already; nothing changed.\n"


def test_a_span_of_time_reads_days_hours_and_minutes() -> None:
    assert span("12d 4h 30m") == timedelta(days=12, hours=4, minutes=30)


def test_authentication_accepts_the_printed_password(demo: Demo, rf) -> None:
    assert authenticate(rf.post("/"), username="ines", password=demo.password) == User.objects.get(
        username="ines"
    )
