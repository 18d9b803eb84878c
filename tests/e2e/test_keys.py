"""The keys of a queue: j k x a r / ? (SPEC 9), and where the focus goes after each act."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from memory.models import DecisionInboxEntry
from tests.conftest import Team
from tests.e2e.conftest import OpenTab
from tests.governance.pages.conftest import an_entry

INBOX = "/projects/lighthouse/inbox"


@pytest.fixture
def page(team: Team, owner_page: Page) -> Page:
    """The inbox with three entries."""
    for slug in ("first", "second", "third"):
        an_entry(team, slug, title=slug)
    owner_page.goto(INBOX)
    return owner_page


def row(page: Page, slug: str) -> Locator:
    return page.locator(f"#entry-{DecisionInboxEntry.objects.get(slug=slug).pk}")


def statuses() -> dict[str, str]:
    return dict(DecisionInboxEntry.objects.values_list("slug", "status"))


def test_j_and_k_walk_and_stop_at_the_ends(page: Page) -> None:
    for key, slug in (
        ("j", "first"),
        ("j", "second"),
        ("j", "third"),
        ("j", "third"),
        ("k", "second"),
        ("k", "first"),
        ("k", "first"),
    ):
        page.keyboard.press(key)
        expect(row(page, slug)).to_be_focused()


def test_a_merges_the_entry_and_goes_to_the_next(page: Page) -> None:
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(row(page, "second")).to_be_focused()
    assert statuses() == {"first": "merged", "second": "pending", "third": "pending"}
    page.keyboard.press("a")
    expect(row(page, "third")).to_be_focused()
    page.keyboard.press("a")
    expect(page.locator(".entry--done")).to_have_count(3)
    expect(page.locator("#results-summary")).to_be_focused()


def test_r_asks_for_the_reason(page: Page) -> None:
    page.keyboard.press("j")
    page.keyboard.press("r")
    expect(row(page, "first").get_by_label("Reason")).to_be_focused()
    page.keyboard.type("jkxar/?")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(row(page, "second")).to_be_focused()
    assert DecisionInboxEntry.objects.get(slug="first").reason == "jkxar/?"


def test_x_picks_and_a_then_merges_all_that_are_picked(page: Page) -> None:
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-picked]")).to_have_text("2")
    page.keyboard.press("a")
    expect(page.locator("#report")).to_have_text("2 merged.")
    expect(page.locator("#report")).to_be_focused()
    assert statuses() == {"first": "merged", "second": "pending", "third": "merged"}
    page.keyboard.press("j")
    expect(row(page, "second")).to_be_focused()


def test_with_rows_picked_a_reason_and_enter_reject_them(page: Page) -> None:
    """Enter presses a form's first button by itself; that one merges."""
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("r")
    expect(page.locator("#bulk-reason")).to_be_focused()
    page.keyboard.type("Not now.")
    page.keyboard.press("Enter")
    expect(page.locator("#report")).to_have_text("1 rejected.")
    assert statuses() == {"first": "rejected", "second": "pending", "third": "pending"}


def test_slash_searches_and_question_mark_helps(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_label("Text")).to_be_focused()
    page.keyboard.type("second")
    expect(page.locator(".entry")).to_have_count(1)


def test_single_keys_can_be_switched_off(page: Page) -> None:
    """WCAG 2.1.4: a shortcut of one letter can be turned off."""
    page.keyboard.press("?")
    page.get_by_label("Single keys act").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert set(statuses().values()) == {"pending"}


def test_keys_with_a_modifier_are_the_browsers(page: Page) -> None:
    page.keyboard.press("j")
    page.keyboard.press("Control+a")
    page.keyboard.press("Alt+a")
    expect(row(page, "first")).to_be_focused()
    assert set(statuses().values()) == {"pending"}


def test_a_reader_who_may_not_decide_only_walks(team: Team, open_tab: OpenTab) -> None:
    an_entry(team, "first")
    page = open_tab("viewer")
    page.goto(INBOX)
    for key in "jxar":
        page.keyboard.press(key)
    expect(row(page, "first")).to_be_focused()
    assert statuses() == {"first": "pending"}
