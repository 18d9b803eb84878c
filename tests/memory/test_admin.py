"""The ledger's tables in the admin: every one can be looked at, none can be changed (SPEC 5 and 9)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from governance.deciding.entries import merge_entry
from governance.models import User
from memory.compiling.compiler import Limits
from memory.compiling.receipts import build_for_run
from memory.enums import SourceKind
from memory.models import (
    AgentMemory,
    ContextReceipt,
    Decision,
    DecisionInboxEntry,
    ImportedRecord,
    LedgerEvent,
    Project,
    Run,
    SnapshotRow,
)
from tests.conftest import NOW, Team, start_run
from tests.factories import (
    LEGACY,
    AgentFactory,
    DecisionFactory,
    EntryFactory,
    MemoryFactory,
    ProjectFactory,
    SessionFactory,
)

pytestmark = pytest.mark.django_db

MODELS = [model for model in apps.get_app_config("memory").get_models() if model is not SnapshotRow]
"""Rows of a snapshot stand on the snapshot's own page."""
NAMES = [model._meta.model_name or "" for model in MODELS]


@pytest.fixture
def root(db: None) -> Client:
    User.objects.create_superuser("root")
    client = Client()
    client.force_login(User.objects.get(username="root"), backend="django.contrib.auth.backends.ModelBackend")
    return client


def fill(team: Team, number: int) -> None:
    """One more row of every table."""
    run = start_run(team, f"Agent {number}")
    sourced = {
        "source_kind": SourceKind.RUN,
        "source_identity": f"run:{run.run_id}",
        "source_run_id": run.run_id,
    }
    agent = AgentFactory(project=team.project, name=f"Bo {number}")
    memory = MemoryFactory(project=team.project, agent=agent, **sourced)
    MemoryFactory(project=team.project, agent=agent, **LEGACY)
    DecisionFactory(project=team.project, agent=agent, title=f"Decision {number}")
    EntryFactory(project=team.project, agent=agent, **sourced)
    SessionFactory(project=team.project, ended_at=NOW)
    ProjectFactory()
    told = Run.objects.select_related("project", "agent").get(pk=run.run_id)
    build_for_run(told, Limits(), NOW)
    ImportedRecord.objects.create(
        project=team.project, path="decisions.md", line=number, digest=str(number), place="p", memory=memory
    )


@pytest.fixture
def rows(team: Team) -> Team:
    fill(team, 1)
    return team


def list_of(name: str) -> str:
    return reverse(f"admin:memory_{name}_changelist")


def first_row(root: Client, name: str) -> str:
    """The address of the page of the first row in a list."""
    found = re.search(r'<th class="field[^>]*><a href="([^"]+)"', root.get(list_of(name)).content.decode())
    assert found is not None
    return found[1]


def test_every_table_of_the_ledger_is_there(db: None) -> None:
    assert [model for model in MODELS if not admin.site.is_registered(model)] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_superuser_opens_every_list_and_every_row(rows: Team, root: Client, name: str) -> None:
    row = first_row(root, name)
    assert root.get(row).status_code == 200
    assert root.get(row.replace("/change/", "/history/")).status_code == 200


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_added_changed_or_deleted(rows: Team, root: Client, name: str) -> None:
    row = first_row(root, name)
    page = root.get(row).content.decode()
    form = re.search(r'<div id="content-main">.*', page, re.DOTALL)
    assert form is not None
    assert re.findall(r'<(?:input|select|textarea)\b(?![^>]*type="hidden")', form[0]) == []
    before = LedgerEvent.objects.count()
    answers = [
        root.get(f"{list_of(name)}add/").status_code,
        root.post(f"{list_of(name)}add/", {}).status_code,
        root.post(row, {"content": "Changed.", "trust_state": "approved"}).status_code,
        root.post(row.replace("/change/", "/delete/"), {"post": "yes"}).status_code,
    ]
    assert answers == [403, 403, 403, 403]
    assert LedgerEvent.objects.count() == before


def test_a_list_offers_no_action(rows: Team, root: Client) -> None:
    page = root.get(list_of("agentmemory"))
    assert b'name="action"' not in page.content
    chosen = {
        "action": "delete_selected",
        "_selected_action": AgentMemory.objects.values_list("pk", flat=True),
    }
    root.post(list_of("agentmemory"), {**chosen, "post": "yes"})
    assert AgentMemory.objects.count() == 2


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("project", "ledgerevent")])
def test_a_list_asks_as_much_for_three_rows_as_for_one(team: Team, root: Client, name: str) -> None:
    counts = []
    fill(team, 1)
    for more in ((), (2, 3)):
        for number in more:
            fill(team, number)
        root.get(list_of(name))
        with CaptureQueriesContext(connection) as caught:
            assert root.get(list_of(name)).status_code == 200
        counts.append(len(caught))
    assert counts[0] == counts[1]


def test_the_ledger_asks_as_much_for_many_events_as_for_few(team: Team, root: Client) -> None:
    counts = []
    for number in (1, 2):
        with CaptureQueriesContext(connection) as caught:
            root.get(list_of("ledgerevent"))
        counts.append(len(caught))
        fill(team, number)
    assert counts[0] == counts[1]


def test_a_list_reads_no_long_text(rows: Team, root: Client) -> None:
    MemoryFactory(project=rows.project, content="x" * 60_000)
    page = root.get(list_of("agentmemory")).content
    assert page.count(b"x" * 90) == 1
    assert b"x" * 91 not in page


@pytest.mark.parametrize(
    ("model", "query", "expected"),
    [
        (AgentMemory, "trust_state__exact=legacy", 1),
        (AgentMemory, "source_kind__exact=run", 1),
        (AgentMemory, "source_kind__exact=human", 0),
        (AgentMemory, "run={run}", 1),
        (AgentMemory, "run=kai-1", 1),
        (AgentMemory, "run=nobody", 0),
        (AgentMemory, "project__id__exact={project}", 2),
        (AgentMemory, "project__id__exact={other}", 0),
        (AgentMemory, "q=bo+1", 2),
        (AgentMemory, "q=ann", 0),
        (AgentMemory, "q=run:{run}", 1),
        (Decision, "q=decis", 1),
        (Decision, "trust_state__exact=approved", 1),
        (DecisionInboxEntry, "run={run}", 1),
        (LedgerEvent, "run={run}", 1),
        (LedgerEvent, "q=run:{run}", 1),
        (LedgerEvent, "q=member", 0),
        (LedgerEvent, "q=owner", 5),
        (ContextReceipt, "run={run}", 1),
        (ContextReceipt, "decisions_only__exact=1", 0),
    ],
)
def test_filters_and_search_narrow_a_list(
    rows: Team, root: Client, model: Any, query: str, expected: int
) -> None:
    run = Run.objects.get()
    Run.objects.update(external_id="kai-1")
    other = ProjectFactory()
    address = query.format(run=run.pk, project=rows.project.pk, other=other.pk)
    response: Any = root.get(f"{list_of(model._meta.model_name)}?{address}")
    assert response.status_code == 200
    assert response.context["cl"].result_count == expected


def test_the_filter_by_run_keeps_the_other_filters(rows: Team, root: Client) -> None:
    page = root.get(f"{list_of('agentmemory')}?trust_state__exact=legacy&q=bo&run=x").content.decode()
    form = page.partition('class="run-filter"')[2].partition("</form>")[0]
    assert re.findall(r'name="(\w+)" value="(\w+)"', form) == [
        ("trust_state__exact", "legacy"),
        ("q", "bo"),
        ("run", "x"),
    ]


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("agentmemory", lambda: f"/trail/memory/{AgentMemory.objects.latest('pk').pk}"),
        ("decision", lambda: f"/trail/decision/{Decision.objects.get().pk}"),
        ("decisioninboxentry", lambda: f"/trail/entry/{DecisionInboxEntry.objects.get().pk}"),
        ("run", lambda: f"/trail/run/{Run.objects.get().pk}"),
        ("ledgerevent", lambda: f"/audit/events/{Project.objects.get(slug='lighthouse').ledger_number}"),
        ("contextreceipt", lambda: f"/receipts/{ContextReceipt.objects.get().pk}"),
        ("importedrecord", lambda: f"/trail/memory/{ImportedRecord.objects.get().memory_id}"),
    ],
)
def test_a_row_leads_to_its_audit_trail(
    rows: Team, root: Client, name: str, address: Callable[[], str]
) -> None:
    there = f"/projects/lighthouse{address()}"
    assert f'href="{there}"' in root.get(list_of(name)).content.decode()
    assert root.get(there).status_code == 200


def test_a_snapshot_names_its_rows_and_who_was_told(rows: Team, root: Client) -> None:
    page = root.get(first_row(root, "contextsnapshot")).content.decode()
    told = SnapshotRow.objects.exclude(decision=None).get()
    assert f"/projects/lighthouse/trail/decision/{told.decision_id}" in page
    assert "/admin/memory/contextreceipt/?snapshot__id__exact=" in page


def test_invisible_characters_are_named(rows: Team, root: Client) -> None:
    row = MemoryFactory(project=rows.project, content="a\u202eb <b>bold</b>")
    for address in (list_of("agentmemory"), f"{list_of('agentmemory')}{row.pk}/change/"):
        page = root.get(address).content.decode()
        assert "\u202e" not in page
        assert '<span class="chip">RIGHT-TO-LEFT OVERRIDE U+202E</span>' in page
        assert "&lt;b&gt;bold" in page


@pytest.mark.parametrize("reader", ["owner", "viewer", "staff"])
def test_nobody_else_gets_in(rows: Team, reader: str) -> None:
    User.objects.create_user("staff", is_staff=True)
    client = Client()
    client.force_login(User.objects.get(username=reader), backend="django.contrib.auth.backends.ModelBackend")
    for name in NAMES:
        assert client.get(list_of(name), follow=True).status_code == 403


def test_a_superuser_who_was_shut_out_does_not_get_in(rows: Team, root: Client) -> None:
    User.objects.filter(username="root").update(is_active=False)
    assert root.get(list_of("project")).status_code == 302


def test_a_superuser_without_a_role_approves_nothing(rows: Team, root: Client) -> None:
    """SPEC 5: not here, and on the pages neither."""
    entry = DecisionInboxEntry.objects.get()
    response = root.post(f"/projects/lighthouse/inbox/{entry.pk}/merge", {"revision": "1"})
    assert response.status_code == 403
    merge_entry(project_id=rows.project.pk, actor=rows.owner, entry_id=entry.pk, revision=1, now=NOW)
