"""An owner's morning in the browser, from logging in to logging out, and what can go wrong on the way (SPEC 9)."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Locator, Page, expect

from governance.models import User
from memory.compiling.compiler import Limits
from memory.compiling.receipts import build_for_run
from memory.enums import TrustState
from memory.models import AgentMemory, Decision, DecisionInboxEntry, Run
from tests.conftest import NOW, Team, start_run
from tests.e2e.conftest import OpenTab
from tests.factories import LEGACY, MemoryFactory
from tests.governance.pages.conftest import a_decision, an_entry

INBOX = "/projects/lighthouse/inbox"
PASSWORD = "a lamp, a lens and a clock"


@pytest.fixture
def morning(team: Team) -> Team:
    """What waits: three proposals, two imported rows, two decisions and a run that was told the first."""
    owner = User.objects.get(username="owner")
    owner.set_password(PASSWORD)
    owner.save()
    a_decision(team, "Lamps burn oil", content="Colza oil.")
    run = start_run(team, "Keeper")
    build_for_run(Run.objects.select_related("agent", "project").get(pk=run.run_id), Limits(), NOW)
    a_decision(team, "Lamps burn electricity", content="Two bulbs and a changer.")
    an_entry(
        team,
        "tides",
        title="Tides repeat",
        type="update",
        content="Tides repeat after 18.6 years.",
        agent_name="Keeper",
    )
    an_entry(team, "rum", title="Rum keeps the lens clean", content="Rum.", agent_name="Keeper")
    an_entry(
        team, "fog", title="Fog signals every 30 seconds", type="scope", content="30 s.", agent_name="Keeper"
    )
    for number in range(2):
        MemoryFactory(
            project=team.project, **LEGACY, content=f"Imported {number}.", importance="medium",
            created_at=NOW - timedelta(days=9),
        )  # fmt: skip
    return team


def entry_named(page: Page, title: str) -> Locator:
    return page.locator(".entry", has_text=title)


def log_in(page: Page) -> None:
    page.goto("/")
    expect(page).to_have_url(re.compile(r"/account/login\?next=%2F$"))
    page.get_by_label("Username").fill("owner")
    page.get_by_label("Password").fill("a wrong one")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert").first).to_contain_text("do not fit together")
    page.get_by_label("Username").fill("owner")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="My projects")).to_be_visible()


def filter_the_inbox(page: Page) -> None:
    page.get_by_role("link", name="in the inbox").click()
    expect(page.locator(".entry")).to_have_count(3)
    page.get_by_role("search").get_by_label("Type").select_option("update")
    expect(page.locator(".entry")).to_have_count(1)
    expect(page).to_have_url(re.compile("type=update"))


def merge_with_a_correction(page: Page) -> None:
    tides = entry_named(page, "Tides repeat")
    tides.get_by_text("Correct first").click()
    tides.get_by_label("Type").select_option("learning")
    tides.get_by_role("link", name="What would change").click()
    expect(tides.locator(".diff--added", has_text="Tides repeat after 18.6 years.")).to_be_visible()
    expect(tides.locator("summary", has_text="Keeper")).to_contain_text(
        re.compile(r"\d+ → \d+ of 8000 tokens")
    )
    tides.get_by_role("button", name="Merge", exact=True).click()
    expect(page.locator("#live")).to_contain_text("Merged as learning memory")
    expect(page.locator("#count-inbox")).to_contain_text("2")
    merged = AgentMemory.objects.exclude(trust_state=TrustState.LEGACY).get()
    assert (merged.type, merged.approved_by) == ("learning", "owner")


def reject_with_a_reason(page: Page) -> None:
    page.get_by_role("link", name="Clear").click()
    expect(page.locator(".entry")).to_have_count(2)
    rum = entry_named(page, "Rum keeps the lens clean")
    rum.get_by_text("Reject").first.click()
    rum.get_by_label("Reason").fill("Rum is for the keeper.")
    rum.get_by_role("button", name="Reject").click()
    expect(page.locator("#live")).to_contain_text("Rejected.")
    page.get_by_role("link", name="Rejected").click()
    expect(entry_named(page, "Rum keeps the lens clean")).to_contain_text("Rum is for the keeper.")


def approve_imported_rows_together(page: Page) -> None:
    page.get_by_role("link", name=re.compile("^Legacy")).click()
    expect(page.get_by_text("2 of 2 wait")).to_be_visible()
    page.get_by_role("link", name="(from no file)").click()
    page.get_by_label("All on this page").check()
    expect(page.locator("[data-picked]")).to_have_text("2")
    bar = page.locator("#bulk")
    bar.get_by_label("Importance").select_option("high")
    bar.get_by_role("button", name="Approve picked").click()
    expect(page.locator("#report")).to_have_text("2 approved.")
    expect(page.get_by_text("0 of 2 wait")).to_be_visible()
    expect(page.get_by_text("This group is done")).to_be_visible()
    approved = AgentMemory.objects.filter(source_kind="legacy").values_list("trust_state", "importance")
    assert list(approved) == [("approved", "high")] * 2


def supersede_a_decision(page: Page) -> None:
    page.get_by_role("link", name="Decisions").click()
    page.get_by_role("link", name="Lamps burn oil").click()
    page.get_by_role("link", name="Supersede").click()
    page.get_by_role("textbox", name="Search").fill("electric")
    page.get_by_label("Lamps burn electricity").check()
    page.get_by_label("Reason").fill("The oil was dear.")
    page.get_by_role("button", name="Supersede").click()
    expect(page.locator(".notices")).to_contain_text("1 run had been told it: Keeper")
    expect(page.get_by_role("heading", name="Chain of decisions")).to_be_visible()
    assert Decision.objects.get(title="Lamps burn oil").status == "superseded"


def look_at_the_context(page: Page) -> None:
    page.get_by_role("link", name="Context").click()
    page.get_by_label("For", exact=True).select_option("Keeper")
    expect(page.locator(".text--block")).to_contain_text("Lamps burn electricity")
    expect(page.locator(".text--block")).to_contain_text("Tides repeat after 18.6 years.")
    expect(page.locator(".text--block")).not_to_contain_text("Lamps burn oil")


def follow_a_receipt(page: Page) -> None:
    page.get_by_role("link", name="Runs").click()
    page.locator("main .table a, main .entries a").first.click()
    page.locator("a[href*='/receipts/']").first.click()
    expect(page.locator(".text--block")).to_contain_text("Lamps burn oil")


def log_out(page: Page) -> None:
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_an_owners_morning(morning: Team, open_tab: OpenTab) -> None:
    page = open_tab()
    for step in (
        log_in, filter_the_inbox, merge_with_a_correction, reject_with_a_reason, approve_imported_rows_together,
        supersede_a_decision, look_at_the_context, follow_a_receipt, log_out,
    ):  # fmt: skip
        step(page)


# What can go wrong


def test_a_text_that_changed_in_the_meantime_is_shown_again(team: Team, owner_page: Page) -> None:
    entry = an_entry(team, title="Tides repeat")
    owner_page.goto(INBOX)
    an_entry(team, title="Tides repeat", content="Tides never repeat.")
    row = owner_page.locator(f"#entry-{entry.pk}")
    row.get_by_text("Reject").first.click()
    row.get_by_label("Reason").fill("We measured it.")
    row.get_by_role("button", name="Reject").click()
    expect(row).to_contain_text("The text changed since you read it, so nothing was done.")
    expect(row.locator(".diff--added")).to_contain_text("Tides never repeat.")
    expect(row.get_by_label("Reason")).to_have_value("We measured it.")
    expect(row).to_be_focused()
    row.get_by_role("button", name="Reject").click()
    expect(owner_page.locator("#live")).to_contain_text("Rejected.")


def test_a_second_tab_learns_that_the_first_one_was_faster(
    team: Team, owner_page: Page, open_tab: OpenTab
) -> None:
    entry = an_entry(team)
    second = open_tab(beside=owner_page)
    for tab in (owner_page, second):
        tab.goto(INBOX)
    owner_page.get_by_role("button", name="Merge", exact=True).click()
    expect(owner_page.locator(".entry--done")).to_have_count(1)
    row = second.locator(f"#entry-{entry.pk}")
    row.get_by_text("Reject").first.click()
    row.get_by_label("Reason").fill("No.")
    row.get_by_role("button", name="Reject").click()
    expect(row).to_contain_text("this entry was already merged by owner")


@pytest.mark.parametrize("scripts", [True, False])
def test_a_double_click_decides_once(team: Team, open_tab: OpenTab, scripts: bool) -> None:
    an_entry(team)
    page = open_tab("owner", java_script_enabled=scripts)
    page.goto(INBOX)
    page.get_by_role("button", name="Merge", exact=True).dblclick()
    expect(page.locator("body")).to_contain_text("Merged as learning memory")
    assert AgentMemory.objects.count() == 1


def test_an_expired_session_leads_to_the_log_in_and_back(morning: Team, open_tab: OpenTab) -> None:
    page = open_tab("owner")
    page.goto(f"{INBOX}?type=scope")
    Session.objects.all().delete()
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(page.get_by_text("Log in to go on where you were.")).to_be_visible()
    page.get_by_label("Username").fill("owner")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile(r"/inbox\?type=scope$"))
    assert DecisionInboxEntry.objects.get(slug="fog").status == "pending"


def test_the_back_button_reads_the_list_again(morning: Team, owner_page: Page) -> None:
    owner_page.goto(INBOX)
    owner_page.get_by_role("search").get_by_label("Type").select_option("scope")
    expect(owner_page.locator(".entry")).to_have_count(1)
    owner_page.get_by_role("link", name="Fog signals every 30 seconds").click()
    owner_page.get_by_role("button", name="Merge", exact=True).click()
    expect(owner_page.locator("#live")).to_contain_text("Merged as scope decision")
    owner_page.go_back()
    expect(owner_page.get_by_text("Nothing matches")).to_be_visible()
    owner_page.go_back()
    expect(owner_page.locator(".entry")).to_have_count(2)


def test_a_server_that_cannot_be_reached_is_said_aloud(
    team: Team, owner_page: Page, complaints: list[str]
) -> None:
    an_entry(team)
    owner_page.goto(INBOX)
    owner_page.route("**/merge", lambda route: route.abort())
    owner_page.get_by_role("button", name="Merge", exact=True).click()
    expect(owner_page.locator("#alert")).to_contain_text("The server cannot be reached.")
    expect(owner_page.get_by_role("button", name="Merge", exact=True)).to_be_enabled()
    assert [text for text in complaints if "ERR_FAILED" not in text and "htmx:" not in text] == []
    complaints.clear()


def test_what_an_agent_wrote_runs_nowhere(team: Team, owner_page: Page) -> None:
    """Were it markup, the policy would block it and the console would say so."""
    an_entry(
        team,
        title="<img src=x onerror=alert(1)>",
        content="<script>alert(2)</script>",
        rationale="<style>*{}</style>",
    )
    owner_page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    owner_page.goto(INBOX)
    expect(owner_page.locator(".entry h3")).to_have_text("<img src=x onerror=alert(1)>")
    expect(owner_page.locator(".entry .text").first).to_have_text("<script>alert(2)</script>")


def test_times_are_written_in_the_readers_zone(team: Team, owner_page: Page) -> None:
    an_entry(team)
    owner_page.goto(INBOX)
    owner_page.reload()
    expect(owner_page.locator(".entry time")).to_have_attribute("title", "1 Dec 2026, 10:00 CET")


# Without a script


def test_a_morning_without_javascript(morning: Team, open_tab: OpenTab) -> None:
    page = open_tab("owner", java_script_enabled=False)
    page.goto(INBOX)
    page.get_by_role("search").get_by_label("Type").select_option("scope")
    page.get_by_role("button", name="Filter").click()
    fog = entry_named(page, "Fog signals every 30 seconds")
    expect(page.locator(".entry")).to_have_count(1)
    fog.get_by_role("link", name="What would change").click()
    expect(page.locator(".diff--added", has_text="Fog signals every 30 seconds").first).to_be_visible()
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(page.locator(".notices")).to_contain_text("Merged as scope decision")
    page.get_by_role("link", name="Pick all on this page").click()
    page.locator("#bulk").get_by_label("Reason").fill("Not today.")
    page.get_by_role("button", name="Reject picked").click()
    expect(page.locator(".notices")).to_contain_text("2 rejected.")
    expect(page.get_by_text("The inbox is empty")).to_be_visible()
    page.get_by_role("link", name=re.compile("^Legacy")).click()
    page.get_by_role("link", name="(from no file)").click()
    page.locator(".entry").first.get_by_role("button", name="Approve").click()
    expect(page.locator(".notices")).to_contain_text("Approved memory")
