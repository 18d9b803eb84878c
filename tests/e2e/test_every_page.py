"""Every page there is, from the table of addresses: accessible, quiet in the console, and no wider than the screen (SPEC 9).

The demo fills the pages. axe looks at each in light and dark at 1280 and 360 px, with everything unfolded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib import admin
from django.test import Client
from django.urls import NoReverseMatch, URLResolver, get_resolver, reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from governance.demo.making import make_demo
from governance.models import User
from memory.enums import EntryStatus
from memory.models import (
    AgentMemory,
    ContextReceipt,
    Decision,
    DecisionInboxEntry,
    LedgerEvent,
    Project,
    SessionContext,
)
from tests.e2e.conftest import OpenTab

OWNER, VIEWER, NEWCOMER, SUPERUSER = "mara", "yusuf", "newcomer", "root"
Look = tuple[Literal["light", "dark"], int, dict[str, Any]]
ALL = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
CONTRAST = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
LOOKS: list[Look] = [
    ("light", 1280, ALL),
    ("dark", 1280, CONTRAST),
    ("dark", 360, ALL),
    ("light", 360, CONTRAST),
]
"""What depends on the width is asked at both widths, what depends on colours in all four."""
HALVES = 2


class Visit(NamedTuple):
    who: str
    address: str


STATES = (
    Visit(OWNER, "/projects/kaimauer/inbox?status=merged"),
    Visit(OWNER, "/projects/kaimauer/inbox?status=rejected"),
    Visit(OWNER, "/projects/kaimauer/inbox?q=no-such-word"),
    Visit(OWNER, "/projects/kaimauer/inbox?run=none&agent=none"),
    Visit(OWNER, "/projects/kaimauer/inbox?pick=all&q=harbour"),
    Visit(OWNER, "/projects/kaimauer/legacy?kind=memory"),
    Visit(OWNER, "/projects/kaimauer/legacy?kind=decision"),
    Visit(OWNER, "/projects/kaimauer/memory?view=requests"),
    Visit(OWNER, "/projects/kaimauer/memory?view=retired"),
    Visit(OWNER, "/projects/kaimauer/decisions?status=all"),
    Visit(OWNER, "/projects/kaimauer/context?agent=Ballast"),
    Visit(OWNER, "/projects/kaimauer/context?agent=Keel"),
    Visit(OWNER, "/projects/kaimauer-handbook/inbox"),
    Visit(OWNER, "/projects/kaimauer-handbook/legacy"),
    Visit(OWNER, "/projects/kaimauer-handbook/context"),
    Visit(OWNER, "/projects/kaimauer/audit?action=entry.merge"),
    Visit(OWNER, "/nothing/here"),
    Visit(VIEWER, "/projects/kaimauer"),
    Visit(VIEWER, "/projects/kaimauer/inbox"),
    Visit(VIEWER, "/projects/kaimauer/decisions/new"),
    Visit(NEWCOMER, "/"),
    Visit("", "/account/login?next=/projects/kaimauer"),
)
"""What the table of addresses cannot know: filters, emptiness, refusals, other readers."""


@pytest.fixture
def demo(live_server: Any) -> None:
    make_demo(timezone.now())
    User.objects.create_user(NEWCOMER)
    User.objects.create_superuser(SUPERUSER)


def routes(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        path = f"{prefix}{pattern.pattern}"
        yield from routes(pattern, path) if isinstance(pattern, URLResolver) else [path]


def pages() -> list[str]:
    """The paths of all routes that are neither of the API nor of the Django admin nor for machines."""
    others = ("api/", "admin/", "healthz", "readyz", "metrics")
    return [path for path in routes(get_resolver()) if not path.startswith(others)]


def known_rows() -> dict[str, Any]:
    """A row of the demo for everything an address may name; a page with a new kind of name has to say here what it means."""
    project = Project.objects.get(slug="kaimauer")
    mine: dict[str, Any] = {"project": project}
    receipt = ContextReceipt.objects.filter(run__project=project, snapshot__isnull=False).latest("at")
    decision = Decision.objects.filter(**mine, status="superseded").latest("pk")
    return {
        "project": project.slug,
        "entry_id": DecisionInboxEntry.objects.filter(**mine, status=EntryStatus.PENDING).latest("pk").pk,
        "memory_id": AgentMemory.objects.filter(**mine, retired_at=None).latest("pk").pk,
        "decision_id": decision.pk,
        "session_pk": SessionContext.objects.filter(**mine).latest("pk").pk,
        "run_id": receipt.run_id,
        "receipt_id": receipt.pk,
        "number": LedgerEvent.objects.filter(**mine).latest("number").number,
        "kind": "decision",
        "row_id": decision.pk,
        "token_id": 1,
    }


def visits() -> list[Visit]:
    """Every address that answers a GET with a page."""
    client = Client()
    client.force_login(User.objects.get(username=OWNER), "django.contrib.auth.backends.ModelBackend")
    return [Visit(OWNER, address) for address in addresses(known_rows()) if is_page(client, address)]


def addresses(rows: dict[str, Any]) -> list[str]:
    return ["/" + re.sub(r"<\w+:(\w+)>", lambda name: str(rows[str(name[1])]), path) for path in pages()]


def is_page(client: Client, address: str) -> bool:
    """A form's own address answers 405 to a GET, a file downloads, and some places only lead on."""
    response = client.get(address)
    assert response.status_code in (200, 302, 405), f"{address}: {response.status_code}"
    return response.status_code == 200 and response["Content-Type"].startswith("text/html")


def look_at(page: Page, address: str, looks: Sequence[Look]) -> list[str]:
    """What is wrong with a page in each of its looks."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    page.goto(address)
    expect(page.locator(".htmx-request")).to_have_count(0)
    page.evaluate(UNFOLD)
    page.evaluate(AXE)
    return [fault for look in looks for fault in faults(page, look)]


UNFOLD = "document.querySelectorAll('details').forEach((details) => { details.open = true; })"
AXE = Axe().axe_script
RUN = """async (rules) => {
  await Promise.all(document.getAnimations().map((fading) => fading.finished));
  return (await axe.run(document, {runOnly: rules, resultTypes: ['violations'], preload: false})).violations;
}"""
"""Colours that fade from one scheme to the other are looked at when they have arrived. Preloading would write a style into the page."""


def faults(page: Page, look: Look) -> Iterator[str]:
    scheme, width, rules = look
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    for violation in page.evaluate(RUN, rules):
        node = violation["nodes"][0]
        yield f"{scheme} {width}: {violation['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
    wide: int = page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        yield f"{scheme} {width}: scrolls sideways, {wide} px wide: {page.evaluate(WIDEST)}"


WIDEST = """[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth)
  .slice(0, 3).map((e) => e.outerHTML.slice(0, 120))"""


DJANGOS_OWN = ("label-title-only", "aria-prohibited-attr")
"""What Django's admin does in markup of its own: the search field of a list, the tooltip above a picker of many."""


def walk(open_tab: OpenTab, places: list[Visit], looks: Sequence[Look] = LOOKS) -> dict[str, list[str]]:
    tabs: dict[str, Page] = {}
    found = {}
    for who, address in places:
        if who not in tabs:
            tabs[who] = open_tab(who)
        if wrong := look_at(tabs[who], address, looks):
            found[f"{who} {address}"] = wrong
    return found


@pytest.mark.parametrize("half", range(HALVES))
def test_every_page_is_accessible_quiet_and_fits(demo: None, open_tab: OpenTab, half: int) -> None:
    places = [*visits(), *STATES]
    assert len(places) > 45
    assert walk(open_tab, places[half::HALVES]) == {}


def test_the_django_admin_is_accessible_too(demo: None, open_tab: OpenTab) -> None:
    places = [Visit("", "/admin/login/"), Visit(SUPERUSER, "/admin/")]
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        places.append(Visit(SUPERUSER, reverse(f"{name}_changelist")))
        if row := model._default_manager.first():
            try:
                places.append(Visit(SUPERUSER, reverse(f"{name}_change", args=[row.pk])))
            except NoReverseMatch:
                continue
    found = walk(open_tab, places, [(scheme, width, rules) for scheme, width, rules in LOOKS if rules is ALL])
    ours = {
        place: [fault for fault in faults if not any(f": {rule}:" in fault for rule in DJANGOS_OWN)]
        for place, faults in found.items()
    }
    assert {place: faults for place, faults in ours.items() if faults} == {}


def test_a_form_that_is_no_longer_valid_is_explained(demo: None, open_tab: OpenTab) -> None:
    page = open_tab()
    page.goto("/account/login")
    page.get_by_label("Username").fill("mara")
    page.get_by_label("Password").fill("whatever")
    page.context.clear_cookies()
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="This form is no longer valid")).to_be_visible()
