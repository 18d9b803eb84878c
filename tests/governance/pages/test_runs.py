"""Runs: what each wrote, what it was told, what the scribe did, and what may be done about it (SPEC 9, Runs)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from governance.deciding import scribe
from governance.deciding.projects import update_project
from governance.models import RunCredential
from governance.people.credentials import issue_run_credential, verify
from memory.actors import VerifiedRun
from memory.compiling.compiler import Limits
from memory.compiling.receipts import build_for_run
from memory.errors import CredentialRefused
from memory.models import LedgerEvent, Project, Run
from memory.recording import record_memory, submit_entry
from tests.conftest import NOW, Team, start_run
from tests.factories import RunFactory
from tests.governance.pages.asking import MEMBERS, READERS, answers, statements
from tests.governance.pages.conftest import HTMX, Browsers, a_decision

pytestmark = pytest.mark.django_db

RUNS = "/projects/lighthouse/runs"


def work(team: Team, agent: str = "Ana") -> VerifiedRun:
    """A run that remembered one thing, proposed two and was told something."""
    run = start_run(team, agent)
    common: dict[str, Any] = {"project_id": team.project.pk, "actor": run, "agent_name": agent, "now": NOW}
    record_memory(**common, type="learning", content=f"{agent} learned.")
    submit_entry(**common, slug=f"{agent}-one".lower(), type="learning", content="One.")
    submit_entry(**common, slug=f"{agent}-two".lower(), type="scope", content="Two.")
    tell(run)
    return run


def tell(run: VerifiedRun) -> None:
    build_for_run(Run.objects.select_related("project", "agent").get(pk=run.run_id), Limits(), NOW)


def finish(team: Team, run: VerifiedRun, **more: Any) -> Any:
    given: dict[str, Any] = {"status": "completed", "exporter": scribe.no_workspace, **more}
    return scribe.complete_run(
        project_id=team.project.pk, actor=team.orchestrator, run_id=run.run_id, now=NOW + timedelta(hours=1), **given
    )  # fmt: skip


def listed(response: Any) -> list[str]:
    return re.findall(rf'<th[^>]*><span><a href="{RUNS}/([0-9a-f-]+)"', response.content.decode())


# The list


def test_the_newest_run_stands_first(team: Team, owner: Client) -> None:
    older = RunFactory(project=team.project, started_at=NOW - timedelta(days=1))
    newer = RunFactory(project=team.project, started_at=NOW)
    assert listed(owner.get(RUNS)) == [str(newer.pk), str(older.pk)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"worker", "coordinator", "ended"}),
        ("status=running", {"worker", "coordinator"}),
        ("status=completed", {"ended"}),
        ("role=coordinator", {"coordinator"}),
        ("agent={ben}", {"ended"}),
        ("external_id=KAI-1", {"ended"}),
        ("external_id=nothing", set()),
        ("status=lost", set()),
    ],
)
def test_filters_narrow_the_runs(team: Team, owner: Client, query: str, expected: set[str]) -> None:
    runs = {"worker": start_run(team), "coordinator": start_run(team, "Cleo", role="coordinator")}
    ended = start_run(team, "Ben")
    finish(team, ended)
    Run.objects.filter(pk=ended.run_id).update(external_id="kai-12")
    keys = {name: str(run.run_id) for name, run in {**runs, "ended": ended}.items()}
    response = owner.get(f"{RUNS}?{query.format(ben=ended.agent_id)}")
    assert response.status_code == 200
    assert set(listed(response)) == {keys[name] for name in expected}


def test_the_list_says_how_much_each_run_wrote_and_was_told(team: Team, owner: Client) -> None:
    work(team)
    start_run(team, "Ben")
    page = owner.get(RUNS).content.decode()
    assert sorted(re.findall(r'"Wrote"><span>(.*?)</span></td>', page)) == [
        "2 entries, 1 memory",
        '<span class="muted">nothing</span>',
    ]
    assert "1 time</span>" in page


def test_the_list_marks_what_failed(team: Team, owner: Client) -> None:
    def full(project: Project, now: Any) -> scribe.Exported:
        raise OSError("No space left.")

    finish(team, work(team), exporter=full)
    a_decision(team, content="x" * 4000)
    policy = {"max_tokens": 200, "on_overflow": "fail"}
    update_project(project_id=team.project.pk, actor=team.owner, policy=policy, now=NOW)
    tell(start_run(team, "Ben"))
    page = owner.get(RUNS).content.decode()
    assert (page.count("context failed"), page.count("scribe failed")) == (1, 1)


@pytest.mark.parametrize("address", [RUNS, f"{RUNS}?status=running"])
def test_one_run_or_three_make_the_same_statements(team: Team, owner: Client, address: str) -> None:
    counts = []
    for agents in (("Ana",), ("Ben", "Cleo")):
        for agent in agents:
            finish(team, work(team, agent))
            work(team, f"{agent}-too")
        counts.append(statements(owner, address))
    assert counts[0] == counts[1]


def test_htmx_gets_the_list_alone(team: Team, owner: Client) -> None:
    page = owner.get(RUNS, headers=HTMX).content
    assert page.strip().startswith(b'<div class="stack" id="results">')


# One run


def test_a_run_shows_what_it_wrote_and_was_told(team: Team, owner: Client) -> None:
    run = work(team)
    page = owner.get(f"{RUNS}/{run.run_id}").content.decode()
    for words in ("1 memory", "Ana learned.", "2 inbox entries", "ana-one", "ana-two"):
        assert words in page
    assert len(re.findall(r"/projects/lighthouse/receipts/\d+", page)) == 1
    assert "The scribe comes when the run ends." in page


def test_a_run_shows_what_the_scribe_did_and_left(team: Team, owner: Client) -> None:
    run = work(team)
    finish(team, run, summary="Half of it is done.")
    page = owner.get(f"{RUNS}/{run.run_id}").content.decode()
    assert "Half of it is done." in page
    filed, _, left = page.partition("Left for a person")
    assert "ana-one" in filed.partition("<h3>Filed</h3>")[2]
    assert "this type needs an owner or a coordinator" in left
    assert f"approved by scribe:{run.run_id}" in page


def test_a_context_that_failed_stands_on_the_runs_page(team: Team, owner: Client) -> None:
    a_decision(team, content="x" * 4000)
    policy = {"max_tokens": 200, "on_overflow": "fail"}
    update_project(project_id=team.project.pk, actor=team.owner, policy=policy, now=NOW)
    run = start_run(team)
    tell(run)
    assert b"mandatory_context_exceeds_budget" in owner.get(f"{RUNS}/{run.run_id}").content


def test_a_child_leads_to_its_parent_and_back(team: Team, owner: Client) -> None:
    parent = start_run(team)
    child = start_run(team, "Ben", parent=Run.objects.get())
    for here, there in ((parent, child), (child, parent)):
        assert f"{RUNS}/{there.run_id}" in owner.get(f"{RUNS}/{here.run_id}").content.decode()


def test_one_row_or_three_of_a_run_make_the_same_statements(team: Team, owner: Client) -> None:
    run = work(team)
    before = statements(owner, f"{RUNS}/{run.run_id}")
    for number in range(2):
        record_memory(
            project_id=team.project.pk, actor=run, agent_name="Ana", type="learning", content=f"{number}", now=NOW
        )  # fmt: skip
        tell(run)
        start_run(team, f"Child {number}", parent=Run.objects.get(pk=run.run_id))
    assert statements(owner, f"{RUNS}/{run.run_id}") == before


def test_a_run_of_nowhere_is_not_found(team: Team, owner: Client) -> None:
    assert owner.get(f"{RUNS}/{uuid4()}").status_code == 404
    for verb in ("finish", "retry", "revoke"):
        assert owner.post(f"{RUNS}/{uuid4()}/{verb}", {"status": "completed"}).status_code == 404


# What may be done about it

RUNNERS = [302, 403, 403, 302, 404, 403, 302]
"""Owners and orchestrators; everybody else is told, or sees nothing."""
MANAGERS = [302, 403, 403, 403, 404, 403, 302]


@pytest.mark.parametrize(
    ("verb", "expected"), [("finish", RUNNERS), ("retry", RUNNERS), ("revoke", MANAGERS)]
)
def test_who_may_do_what_with_a_run(team: Team, browsers: Browsers, verb: str, expected: list[int]) -> None:
    found = []
    for name in READERS:
        run = start_run(team, name)
        issue_run_credential(Run.objects.get(pk=run.run_id), timezone.now())
        if verb == "retry":
            finish(team, run)
        address = f"{RUNS}/{run.run_id}/{verb}"
        assert getattr(browsers, name).get(address).status_code in (405, 302)
        found.append(getattr(browsers, name).post(address, {"status": "cancelled"}).status_code)
    assert found == expected


def test_every_member_reads(team: Team, browsers: Browsers) -> None:
    run = work(team)
    for address in (RUNS, f"{RUNS}/{run.run_id}"):
        assert answers(browsers, address) == MEMBERS


def test_a_run_is_ended_by_hand(team: Team, owner: Client) -> None:
    run = work(team)
    response = owner.post(
        f"{RUNS}/{run.run_id}/finish", {"status": "completed", "summary": "By hand."}, follow=True
    )
    assert b"The run is completed." in response.content
    assert Run.objects.get(pk=run.run_id).summary == "By hand."
    assert "Filed" in response.content.decode()


def test_a_run_ends_once(team: Team, owner: Client) -> None:
    run = start_run(team)
    finish(team, run)
    response = owner.post(f"{RUNS}/{run.run_id}/finish", {"status": "failed"})
    assert response.status_code == 409
    assert b"Nothing was done:" in response.content
    assert Run.objects.get(pk=run.run_id).status == "completed"


def test_a_status_that_is_none_is_refused(team: Team, owner: Client) -> None:
    run = start_run(team)
    assert owner.post(f"{RUNS}/{run.run_id}/finish", {"status": "running"}).status_code == 422
    assert Run.objects.get(pk=run.run_id).is_running


def test_failed_steps_are_tried_again(team: Team, owner: Client) -> None:
    def full(project: Project, now: Any) -> scribe.Exported:
        raise OSError("No space left.")

    run = start_run(team)
    finish(team, run, exporter=full)
    address = f"{RUNS}/{run.run_id}/retry"
    assert f'action="{address}"' in owner.get(f"{RUNS}/{run.run_id}").content.decode()
    response = owner.post(address, headers=HTMX)
    page = response.content.decode()
    assert (response.status_code, 'id="scribe"' in page, "<html" in page) == (200, True, False)
    assert "Every step is done." in page
    assert f'action="{address}"' not in page


def test_the_scribe_is_not_tried_while_the_run_goes_on(team: Team, owner: Client) -> None:
    run = start_run(team)
    for headers in ({}, HTMX):
        response = owner.post(f"{RUNS}/{run.run_id}/retry", headers=headers)
        assert response.status_code == 409
        assert b"Nothing was done: this run has not ended." in response.content


def test_a_credential_is_taken_away_at_once(team: Team, owner: Client) -> None:
    run = start_run(team)
    issued = issue_run_credential(Run.objects.get(), timezone.now())
    page = owner.get(f"{RUNS}/{run.run_id}").content.decode()
    assert issued.credential.prefix in page
    assert issued.token not in page
    response = owner.post(f"{RUNS}/{run.run_id}/revoke", follow=True)
    assert b"the run can ask for nothing any more" in response.content
    with pytest.raises(CredentialRefused):
        verify(issued.token, timezone.now())
    assert LedgerEvent.objects.latest("number").action == "run.revoke_credential"
    assert RunCredential.objects.get().revoked_at is not None


@pytest.mark.parametrize(
    ("reader", "forms"), [("owner", 2), ("orchestrator", 1), ("viewer", 0), ("superuser", 0)]
)
def test_only_what_a_reader_may_do_is_offered(
    team: Team, browsers: Browsers, reader: str, forms: int
) -> None:
    run = start_run(team)
    issue_run_credential(Run.objects.get(), timezone.now())
    page = getattr(browsers, reader).get(f"{RUNS}/{run.run_id}").content.decode()
    assert len(re.findall(rf'action="{RUNS}/[^"]+"', page)) == forms
