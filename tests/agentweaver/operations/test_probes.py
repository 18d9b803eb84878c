"""/healthz, /readyz and /metrics: for machines, that come by address and without a session (SPEC 10)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from agentweaver.operations import metrics, probes
from memory.enums import TrustState
from memory.models import ContextReceipt, DecisionInboxEntry, Run
from tests.agentweaver.api.conftest import Caller
from tests.agentweaver.operations.conftest import Written
from tests.conftest import NOW, Team, start_run
from tests.factories import DecisionFactory, EntryFactory, MemoryFactory, ProjectFactory, RunFactory

TOKEN = "metrics-token-0123456789"
Figures = dict[str, float]


def scraped(**headers: str) -> Figures:
    response = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}", **headers})
    assert (response.status_code, response["Content-Type"].split(";")[0]) == (200, "text/plain")
    told = re.findall(r"^(agentweaver_\S+) (\S+)$", response.content.decode(), re.MULTILINE)
    return {name: float(value) for name, value in told}


def test_alive_asks_no_database(django_assert_num_queries: Any, db: None) -> None:
    with django_assert_num_queries(0):
        response = Client().get("/healthz")
    assert (response.status_code, response.json(), response["Cache-Control"]) == (
        200,
        {"status": "ok"},
        "no-store",
    )


def test_ready_asks_for_the_migrations_only(django_assert_num_queries: Any, db: None) -> None:
    probes.expected()
    with django_assert_num_queries(2):
        response = Client().get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_a_migration_that_is_missing_makes_it_unready(db: None) -> None:
    MigrationRecorder(connection).record_unapplied("memory", "0001_initial")
    response = Client().get("/readyz")
    assert (response.status_code, response.json()) == (
        503,
        {"status": "unavailable", "failed": ["migrations"]},
    )


def test_a_migration_of_a_newer_version_does_not(db: None) -> None:
    MigrationRecorder(connection).record_applied("memory", "9999_tomorrow")
    assert Client().get("/readyz").status_code == 200


def test_a_database_that_is_down_makes_it_unready_and_tells_the_log_alone(
    db: None, monkeypatch: pytest.MonkeyPatch, written: Written
) -> None:
    def down(_: object) -> None:
        raise OperationalError("connection to server at 10.0.0.5 failed for user admin")

    monkeypatch.setattr(MigrationRecorder, "applied_migrations", down)
    response = Client().get("/readyz")
    assert (response.status_code, response.json()) == (503, {"status": "unavailable", "failed": ["database"]})
    assert [line["message"] for line in written()] == ["The database does not answer", "Not ready: database"]
    assert Client().get("/healthz").status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_come_by_address_and_by_plain_http(db: None, settings: Any, path: str) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.METRICS_TOKEN = TOKEN
    answer = Client().get(path, headers={"Host": "10.0.0.5:8000", "Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert Client().head(path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    refused = Client().post(path)
    assert (refused.status_code, refused["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("token", "given", "status"),
    [
        ("", None, 404),
        ("", "Bearer ", 404),
        (TOKEN, None, 401),
        (TOKEN, "Bearer ", 401),
        (TOKEN, f"Bearer {TOKEN}x", 401),
        (TOKEN, f"Basic {TOKEN}", 401),
        (TOKEN, "Bearer tökén", 401),
        (TOKEN, f"Bearer {TOKEN}", 200),
    ],
)
def test_figures_are_for_whoever_holds_the_token(
    db: None, settings: Any, token: str, given: str | None, status: int
) -> None:
    settings.METRICS_TOKEN = token
    headers = {"Authorization": given} if given is not None else {}
    assert Client().get("/metrics", headers=headers).status_code == status


def test_an_owner_of_projects_is_not_who_reads_them(owner: Caller, settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    assert owner.get("/metrics").status_code == 401


@pytest.fixture
def token(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN


def test_what_waits_for_people_is_counted_over_all_projects(team: Team, token: None) -> None:
    assert {name: value for name, value in scraped().items() if name.count("_") > 1 and "{" not in name} == {
        "agentweaver_database_up": 1, "agentweaver_inbox_pending": 0, "agentweaver_inbox_oldest_pending_seconds": 0,
        "agentweaver_legacy_waiting": 0, "agentweaver_runs_with_compile_error": 0,
    }  # fmt: skip
    fill(team)
    now = DecisionInboxEntry.objects.order_by("created_at")[0].created_at + timedelta(hours=2)
    assert dict(metrics.waiting(now)) == {
        "inbox_pending": 2, "inbox_oldest_pending_seconds": 7200, "legacy_waiting": 2, "runs_with_compile_error": 1,
    }  # fmt: skip


def fill(team: Team) -> None:
    """Two entries that wait, two legacy rows; of four runs one whose last context failed and that still runs."""
    EntryFactory(project=team.project)
    EntryFactory(project=ProjectFactory(), created_at=NOW - timedelta(hours=1))
    EntryFactory(project=team.project, status="rejected", reason="No.", reviewed_by="owner", reviewed_at=NOW)
    MemoryFactory(project=team.project, trust_state=TrustState.LEGACY)
    DecisionFactory(project=team.project, trust_state=TrustState.LEGACY)
    failed, healed, ended, _ = (RunFactory(project=team.project) for _ in range(4))
    for run, errors in ((failed, ["", "broken"]), (healed, ["broken", ""]), (ended, ["broken"])):
        for minutes, error in enumerate(errors):
            at = NOW + timedelta(minutes=minutes)
            ContextReceipt.objects.create(project=team.project, run=run, at=at, epoch=1, compile_error=error)
    Run.objects.filter(pk=ended.pk).update(status="failed", ended_at=NOW)


def test_a_database_that_is_down_leaves_the_counters_readable(
    db: None, token: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(_: object) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(metrics, "waiting", down)
    figures = scraped()
    assert figures["agentweaver_database_up"] == 0
    assert "agentweaver_inbox_pending" not in figures


def counted(before: Figures, after: Figures) -> Figures:
    """What rose in between, without the buckets and the sums of seconds."""
    plain = {name: value for name, value in after.items() if not re.search("_bucket|_sum|_created", name)}
    return {
        name: value - before.get(name, 0) for name, value in plain.items() if value != before.get(name, 0)
    }


def test_requests_refusals_and_compiles_are_counted_by_closed_lists(
    owner: Caller, orchestrator: Caller, team: Team, token: None
) -> None:
    before = scraped()
    for name in ("Ana", "Bo", "Cy"):
        owner.get(f"agents/{name}/memory")
    owner("BREW", "")
    Caller(owner.base, "awr_wrong").get()
    for path in ("/nothing", "/anything/else", "/static/css/nothing.css"):
        Client().get(path)
    run = start_run(team)
    orchestrator.post(f"runs/{run.run_id}/context")
    seen = owner.get("context/decisions")
    owner.get("context/decisions", **{"If-None-Match": seen["ETag"]})
    assert counted(before, scraped()) == {
        request("GET", "/api/projects/<project:p>/agents/<str:name>/memory", 200): 3,
        request("OTHER", "/api/projects/<project:p>", 405): 1,
        request("GET", "/api/projects/<project:p>", 401): 1,
        request("GET", "none", 404): 2,
        request("GET", "/static/", 404): 1,
        request("POST", "/api/projects/<project:p>/runs/<run:run_id>/context", 200): 1,
        request("GET", "/api/projects/<project:p>/context/decisions", 200): 1,
        request("GET", "/api/projects/<project:p>/context/decisions", 304): 1,
        'agentweaver_refusals_total{code="method_not_allowed"}': 1,
        'agentweaver_refusals_total{code="invalid_credential"}': 1,
        'agentweaver_compiles_total{of="run",result="empty"}': 1,
        'agentweaver_compiles_total{of="preview",result="empty"}': 1,
        'agentweaver_compiles_total{of="preview",result="unchanged"}': 1,
    }


def request(method: str, route: str, status: int) -> str:
    return f'agentweaver_request_seconds_count{{method="{method}",route="{route}",status="{status}"}}'


def test_no_label_names_a_project_a_person_or_an_agent(owner: Caller, team: Team, token: None) -> None:
    owner.get("agents/Zanzibar/memory")
    owner.get("/projects/lighthouse/inbox")
    owner.post(
        "decisions/inbox", {"agent_name": "Zanzibar", "slug": "zanzibar", "type": "scope", "content": "C"}
    )
    told = " ".join(scraped()).lower()
    assert "decisions/inbox" in told
    assert [
        name for name in ("zanzibar", "lighthouse", '"owner"', str(team.project.pk)) if name in told
    ] == []
