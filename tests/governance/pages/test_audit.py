"""Audit: the ledger with its filters, any row followed to its source, and a verification somebody can repeat (SPEC 9, Audit)."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from governance.deciding.entries import merge_entry
from governance.deciding.memories import approve_memory
from governance.pages.queues import audit
from governance.pages.views import audit as views
from memory.compiling.compiler import Limits
from memory.compiling.receipts import build_for_run
from memory.models import AgentMemory, LedgerEvent, Project, Run
from memory.recording import edit_memory
from tests.conftest import NOW, Team, start_run
from tests.governance.pages.conftest import HTMX, Browsers, a_decision, a_memory, a_session, an_entry

pytestmark = pytest.mark.django_db

AUDIT = "/projects/lighthouse/audit"
TRAIL = "/projects/lighthouse/trail"
ROOT = Path(__file__).parents[3]


def numbers(response: Any) -> list[int]:
    """The events on a page, in their order."""
    return [
        int(found)
        for found in re.findall(r'<div class="entry__pick number muted">(\d+)<', response.content.decode())
    ]


def statements(client: Client, address: str) -> int:
    client.get(address)
    with CaptureQueriesContext(connection) as caught:
        assert client.get(address).status_code == 200
    return len(caught)


def last(team: Team) -> int:
    return Project.objects.get(pk=team.project.pk).ledger_number


# The list


def test_what_happened_last_stands_first(team: Team, owner: Client) -> None:
    a_memory(team)
    assert numbers(owner.get(AUDIT)) == list(range(last(team), 0, -1))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("action=memory.record", ["memory.record"]),
        ("action=entry.", ["entry.merge", "entry.submit"]),
        ("actor=contributor", ["memory.record", "agent.create", "entry.submit"]),
        ("actor=contribut", []),
        ("target=memory:{memory}", ["memory.record"]),
        ("target=memory:{memory}&actor=owner", []),
        ("run={run}", ["run.register"]),
        ("since=2026-12-02", []),
        ("until=2026-11-30", []),
        ("since=2026-12-01&until=2026-12-01&action=entry.merge", ["entry.merge"]),
    ],
)
def test_filters_narrow_the_ledger(team: Team, owner: Client, query: str, expected: list[str]) -> None:
    entry = an_entry(team)
    memory = a_memory(team)
    merge_entry(project_id=team.project.pk, actor=team.owner, entry_id=entry.pk, revision=1, now=NOW)
    run = start_run(team, "Ben")
    response = owner.get(f"{AUDIT}?{query.format(memory=memory.pk, run=run.run_id)}")
    found = LedgerEvent.objects.filter(project=team.project, number__in=numbers(response)).order_by("-number")
    actions = [event.action for event in found]
    assert sorted(actions) == sorted(expected)


@pytest.mark.parametrize(
    "query", ["run=nonsense", "since=yesterday", "until=9999-12-31", "action=memory.fly"]
)
def test_a_filter_that_cannot_be_says_so(team: Team, owner: Client, query: str) -> None:
    response = owner.get(f"{AUDIT}?{query}")
    assert (response.status_code, numbers(response)) == (200, [])
    assert b"These filters cannot be" in response.content


def test_every_filter_is_one_click_away_from_an_event(team: Team, owner: Client) -> None:
    memory = a_memory(team)
    page = owner.get(f"{AUDIT}?action=memory.record").content.decode()
    for there in ("?action=memory.record", "?actor=contributor", f"?target=memory%3A{memory.pk}"):
        assert f'href="{there}"' in page
        assert numbers(owner.get(AUDIT + there))[0] == last(team)


def test_every_action_the_product_writes_can_be_chosen() -> None:
    """A new action in the code must be offered by the filter."""
    kinds = "agent|decision|entry|member|memory|project|run|session"
    written: set[str] = set()
    for folder in ("memory", "governance"):
        for file in (ROOT / folder).rglob("*.py"):
            if file.name != "audit.py" and "migrations" not in file.parts:
                written |= set(re.findall(rf'[ (]"((?:{kinds})\.[a-z_]+)"[,)]', file.read_text()))
    modules = {"memory.compiling.receipts"}
    assert sorted(written - modules - set(audit.ACTIONS)) == []


def test_pages_go_on_where_the_last_one_ended(
    team: Team, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "PAGE_SIZE", 3)
    first = owner.get(AUDIT)
    top = last(team)
    assert numbers(first) == [top, top - 1, top - 2]
    a_memory(team)
    assert f'href="?below={top - 2}"'.encode() in first.content
    assert numbers(owner.get(f"{AUDIT}?below={top - 2}")) == [n for n in range(top - 3, top - 6, -1) if n > 0]


def test_the_list_counts_nothing_and_asks_the_same_for_any_number(team: Team, owner: Client) -> None:
    """A ledger only grows: a page must not read all of it."""
    before = statements(owner, AUDIT)
    for word in ("one", "two", "three"):
        a_memory(team, word)
    with CaptureQueriesContext(connection) as caught:
        owner.get(AUDIT)
    assert len(caught) == before
    events = [query["sql"] for query in caught if "memory_ledgerevent" in query["sql"]]
    assert len(events) == 1
    assert "COUNT(" not in events[0]


def test_htmx_gets_the_list_alone(team: Team, owner: Client) -> None:
    response = owner.get(f"{AUDIT}?action=project.", headers=HTMX)
    assert response.content.strip().startswith(b'<div class="stack" id="results">')
    assert b"<html" not in response.content


def test_an_agents_words_are_text_in_the_ledger_too(team: Team, owner: Client) -> None:
    memory = a_memory(team, "<script>alert(1)</script>\u202e")
    for address in (AUDIT, f"{AUDIT}/events/{last(team)}", f"{TRAIL}/memory/{memory.pk}"):
        page = owner.get(address).content.decode()
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "\u202e" not in page


# One event


def test_an_event_shows_everything_it_changed(team: Team, owner: Client) -> None:
    memory = a_memory(team, "Before.")
    edit_memory(
        project_id=team.project.pk, actor=team.owner, memory_id=memory.pk, revision=1, now=NOW, content="After."
    )  # fmt: skip
    event = LedgerEvent.objects.get(project=team.project, number=last(team))
    page = owner.get(f"{AUDIT}/events/{event.number}").content.decode()
    for word in ("Before.", "After.", event.hash, event.prev_hash, event.state, "fits its content"):
        assert word in page


def test_an_event_that_was_altered_says_so(
    team: Team, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LedgerEvent, "computed_hash", lambda self: "0" * 64)
    page = owner.get(f"{AUDIT}/events/1").content
    assert b"does not match its hash" in page
    assert b"fits its content" not in page


def test_an_event_that_is_not_there_is_not_found(team: Team, owner: Client) -> None:
    assert owner.get(f"{AUDIT}/events/999").status_code == 404


# From a row to its source


def test_a_trail_leads_from_a_memory_to_who_wrote_proposed_approved_and_was_told(
    team: Team, owner: Client
) -> None:
    run = start_run(team, "Ana")
    entry = an_entry(team, "deep", type="learning")
    memory = merge_entry(project_id=team.project.pk, actor=team.owner, entry_id=entry.pk, revision=1, now=NOW)
    build_for_run(Run.objects.select_related("project", "agent").get(pk=run.run_id), Limits(), NOW)
    page = owner.get(f"{TRAIL}/memory/{memory.pk}").content.decode()
    assert f"/projects/lighthouse/trail/entry/{entry.pk}" in page
    assert "merging revision 1 of the entry" in page
    assert "<strong>contributor</strong>" in page
    assert f"/projects/lighthouse/runs/{run.run_id}" in page
    assert f"/projects/lighthouse/told/memory/{memory.pk}" in page


def test_a_trail_says_which_revision_was_read_before_approving(team: Team, owner: Client) -> None:
    memory = a_memory(team)
    edit_memory(
        project_id=team.project.pk, actor=team.contributor, memory_id=memory.pk, revision=1, now=NOW, content="New."
    )  # fmt: skip
    approve_memory(project_id=team.project.pk, actor=team.owner, memory_id=memory.pk, revision=2, now=NOW)
    assert b"who had read revision 2" in owner.get(f"{TRAIL}/memory/{memory.pk}").content


@pytest.mark.parametrize("kind", ["decision", "memory", "entry", "session", "run", "agent", "project"])
def test_every_kind_of_row_has_a_trail(team: Team, owner: Client, kind: str) -> None:
    memory = a_memory(team)
    rows = {
        "decision": a_decision(team).pk, "memory": memory.pk, "entry": an_entry(team).pk,
        "session": a_session(team).pk, "run": start_run(team).run_id, "agent": memory.agent_id,
        "project": team.project.pk,
    }  # fmt: skip
    assert owner.get(f"{TRAIL}/{kind}/{rows[kind]}").status_code == 200


@pytest.mark.parametrize(
    "name", ["memory/99999", "memory/x", "memory/9999999999999999999", "run/7", "snapshot/1", "member/owner"]
)
def test_a_trail_of_nothing_is_not_found(team: Team, owner: Client, name: str) -> None:
    assert owner.get(f"{TRAIL}/{name}").status_code == 404


def test_who_was_told_a_row_asks_the_same_for_one_run_and_three(team: Team, owner: Client) -> None:
    decision = a_decision(team)
    counts = []
    for agents in (("Ana",), ("Ben", "Cleo")):
        for name in agents:
            run = start_run(team, name)
            build_for_run(Run.objects.select_related("project", "agent").get(pk=run.run_id), Limits(), NOW)
        counts.append(statements(owner, f"/projects/lighthouse/told/decision/{decision.pk}"))
    page = owner.get(f"/projects/lighthouse/told/decision/{decision.pk}").content.decode()
    assert counts[0] == counts[1]
    assert len(re.findall(r"/projects/lighthouse/receipts/\d+", page)) == 3


def test_an_entry_is_never_told(team: Team, owner: Client) -> None:
    assert owner.get(f"/projects/lighthouse/told/entry/{an_entry(team).pk}").status_code == 404


# Verification


def test_a_whole_ledger_is_verified(team: Team, owner: Client) -> None:
    a_memory(team)
    page = owner.get(f"{AUDIT}/verify").content.decode()
    assert "The ledger is whole." in page
    assert f"{last(team)} events checked" in page


def test_a_row_changed_past_the_product_is_named(team: Team, owner: Client) -> None:
    memory = a_memory(team)
    AgentMemory.objects.filter(pk=memory.pk).update(content="Changed past the product.")
    page = owner.get(f"{AUDIT}/verify").content.decode()
    assert "The ledger does not fit." in page
    assert f"memory:{memory.pk}" in page
    assert f"{AUDIT}/events/{last(team)}" in page


def test_the_checkpoint_file_is_what_the_command_reads(team: Team, owner: Client, tmp_path: Path) -> None:
    response = owner.get(f"{AUDIT}/checkpoint")
    assert response.headers["Content-Disposition"] == (
        f'attachment; filename="lighthouse-checkpoint-{last(team)}.json"'
    )
    file = tmp_path / "checkpoint.json"
    file.write_bytes(response.content)
    a_memory(team)
    out = StringIO()
    call_command("verify_ledger", "lighthouse", against=str(file), stdout=out)
    [kept] = json.loads(response.content)["checkpoints"]
    assert kept["number"] == last(team) - 2


def test_a_kept_checkpoint_is_verified_in_the_browser(team: Team, owner: Client) -> None:
    [kept] = json.loads(owner.get(f"{AUDIT}/checkpoint").content)["checkpoints"]
    a_memory(team)
    right = owner.get(f"{AUDIT}/verify", {"number": kept["number"], "hash": kept["hash"]}).content.decode()
    wrong = owner.get(f"{AUDIT}/verify", {"number": kept["number"], "hash": "0" * 64}).content.decode()
    assert f"the chain passes through your checkpoint, event {kept['number']}" in right
    assert "the chain does not pass through the checkpoint" in wrong


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("number=3", "A checkpoint has both"),
        ("hash=" + "a" * 64, "A checkpoint has both"),
        ("number=3&hash=xyz", "64 hexadecimal digits"),
        ("number=-1&hash=" + "a" * 64, "greater than or equal to 0"),
    ],
)
def test_half_a_checkpoint_is_refused(team: Team, owner: Client, query: str, says: str) -> None:
    page = owner.get(f"{AUDIT}/verify?{query}").content.decode()
    assert says in page
    assert "The ledger is whole" not in page


def test_a_ledger_too_long_for_a_page_is_left_to_the_command(
    team: Team, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of such a ledger a page checks the newest events against each other, and says that it did no more."""
    monkeypatch.setattr(views, "VERIFIED_AT_MOST", 2)
    memory = a_memory(team)
    AgentMemory.objects.filter(pk=memory.pk).update(content="Changed past the product.")
    page = owner.get(f"{AUDIT}/verify").content.decode()
    assert "manage.py verify_ledger lighthouse" in page
    assert f"The newest events fit.</strong> 2 events checked, up to event {last(team)}" in page
    assert "The ledger is whole" not in page
    assert "Check against a checkpoint" not in page


# Who may read it


READERS = ("owner", "contributor", "viewer", "orchestrator", "stranger", "superuser", "anonymous")


@pytest.mark.parametrize(
    "address",
    [
        "audit",
        "audit/events/1",
        "audit/verify",
        "audit/checkpoint",
        "trail/memory/{memory}",
        "told/memory/{memory}",
    ],
)
def test_every_member_reads_and_nobody_writes(team: Team, browsers: Browsers, address: str) -> None:
    memory = a_memory(team)
    there = f"/projects/lighthouse/{address.format(memory=memory.pk)}"
    stored = Project.objects.values().get(pk=team.project.pk)
    found = [getattr(browsers, name).get(there).status_code for name in READERS]
    assert found == [200, 200, 200, 200, 404, 200, 302]
    assert [getattr(browsers, name).post(there).status_code for name in READERS] == [405] * 6 + [302]
    assert Project.objects.values().get(pk=team.project.pk) == stored
