"""Home and the front page of a project: what waits for me, longest first, and what changed lately (SPEC 9)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from governance.deciding.entries import reject_entry
from governance.deciding.projects import create_project
from governance.pages.queues.waiting import waiting_by_day
from memory.actors import Human
from memory.models import Project
from tests.conftest import NOW, Team
from tests.factories import LEGACY, DecisionFactory, EntryFactory, MemoryFactory
from tests.governance.pages.conftest import Browsers, a_memory, an_entry, statements

pytestmark = pytest.mark.django_db

HOME = "/projects/lighthouse"


def another(team: Team, slug: str, actor: Human | None = None) -> Project:
    return create_project(actor=actor or team.owner, name=slug.title(), slug=slug, now=NOW)


def projects_of(response: Any) -> list[str]:
    return re.findall(r'<h2><a href="/projects/([\w-]+)">', response.content.decode())


def figures_of(response: Any) -> list[str]:
    return re.findall(r"<b>(\d+)</b>", response.content.decode())


def test_the_project_that_waits_longest_stands_first(team: Team, owner: Client) -> None:
    later, never = another(team, "later"), another(team, "never")
    EntryFactory(project=team.project, created_at=NOW - timedelta(days=2))
    EntryFactory(project=later, created_at=NOW - timedelta(days=9))
    MemoryFactory(project=never, **LEGACY, created_at=NOW - timedelta(days=90))
    assert projects_of(owner.get("/")) == ["later", "lighthouse", "never"]


def test_what_waits_is_counted_by_kind(team: Team, owner: Client) -> None:
    an_entry(team)
    an_entry(team, "other")
    a_memory(team, tags=["cross-team"])
    MemoryFactory(project=team.project, **LEGACY)
    DecisionFactory(project=team.project, **LEGACY)
    assert figures_of(owner.get("/")) == ["2", "1", "2"]
    assert figures_of(owner.get(HOME)) == ["2", "1", "2"]
    assert b"5 rows wait for a decision." in owner.get(HOME).content


def test_only_projects_of_ones_own_are_shown(team: Team, browsers: Browsers) -> None:
    another(team, "hidden", team.stranger)
    assert projects_of(browsers.viewer.get("/")) == ["lighthouse"]
    assert projects_of(browsers.stranger.get("/")) == ["hidden"]
    assert "you do not decide here" in browsers.viewer.get("/").content.decode()


def test_who_is_in_no_project_learns_what_to_do(browsers: Browsers) -> None:
    body = browsers.stranger.get("/").content.decode()
    assert "You are not in a project yet" in body
    assert "Nothing yet." in body


def test_what_changed_lately_leads_to_the_rows(team: Team, owner: Client) -> None:
    entry = an_entry(team)
    reject_entry(
        project_id=team.project.pk, actor=team.owner, entry_id=entry.pk, reason="Said <before>.", now=NOW
    )
    for address in ("/", HOME):
        body = owner.get(address).content.decode()
        assert f'<strong>entry.reject</strong> <a href="{HOME}/inbox/{entry.pk}">entry {entry.pk}</a>' in body
        assert "“Said &lt;before&gt;.”" in body


def test_the_number_of_statements_does_not_follow_projects_or_rows(team: Team, owner: Client) -> None:
    an_entry(team)
    first = statements(owner, "/"), statements(owner, HOME)
    for slug in ("second", "third"):
        EntryFactory(project=another(team, slug))
        an_entry(team, slug)
    assert (statements(owner, "/"), statements(owner, HOME)) == first == (6, 9)


def test_the_curve_counts_backwards_from_what_waits_now(team: Team) -> None:
    of = {"project": team.project}
    reviewed = {"reviewed_by": "owner", "status": "rejected", "reason": "No."}
    EntryFactory(**of, created_at=NOW - timedelta(days=40))
    EntryFactory(**of, created_at=NOW - timedelta(days=2))
    EntryFactory(**of, created_at=NOW - timedelta(days=3), reviewed_at=NOW - timedelta(days=1), **reviewed)
    days = waiting_by_day(team.project, 2, NOW)
    assert [day.number for day in days] == [1] * 26 + [2, 3, 2, 2]
    assert (days[0].day, days[-1].day) == ((NOW - timedelta(days=29)).date(), NOW.date())


def test_the_curve_is_said_in_words_too(team: Team, owner: Client) -> None:
    an_entry(team)
    assert b"at most 1" in owner.get(HOME).content


def test_two_clicks_lead_everywhere_an_owner_needs(owner: Client) -> None:
    """SPEC 9: everything is reachable in two clicks from the project's home."""
    body = owner.get(HOME).content.decode()
    linked = set(re.findall(rf'href="{HOME}/(\w+)"', body))
    assert linked >= {
        "inbox",
        "legacy",
        "memory",
        "decisions",
        "context",
        "runs",
        "session",
        "audit",
        "members",
        "policy",
        "tokens",
    }


def test_times_are_in_the_readers_zone_and_name_it(team: Team, owner: Client) -> None:
    an_entry(team)
    for cookie, written in (
        ("Asia%2FKathmandu", "14:45 Asia/Kathmandu"),
        ("Europe%2FBerlin", "10:00 CET"),
        ("../etc", "09:00 UTC"),
    ):
        owner.cookies["zone"] = cookie
        assert f"1 Dec 2026, {written}" in owner.get("/").content.decode()
