"""A real Chromium against a live server. It is Debian's (or whatever `chromium` is on the path); nothing is downloaded.

Without a Chromium these tests are skipped and say why; AGENTWEAVER_REQUIRE_BROWSER=1 makes that a failure (`.ci/run` sets it).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, expect

from governance.models import User
from tests.conftest import Team

HERE = Path(__file__).parent
PATIENCE = 15_000
"""Milliseconds a browser waits for something to appear: only a fault ever needs them."""
ZONE = "Europe/Berlin"

OpenTab = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)


def chromium() -> str:
    """The browser's path; ends the test where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    why = "no Chromium on the path (Debian: apt-get install chromium)"
    if os.environ.get("AGENTWEAVER_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{why}, and AGENTWEAVER_REQUIRE_BROWSER=1 says there must be one")
    pytest.skip(why)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    path = chromium()
    # Playwright keeps an event loop in this thread until the process ends, which Django takes for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    quiet = ("background-networking", "component-update", "sync", "quic", "gpu", "dev-shm-usage")
    flags = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    return {**browser_type_launch_args, "executable_path": path, "args": flags}


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """What the browsers' consoles complained about: a blocked script or style, an exception. Nothing may."""
    heard: list[str] = []
    yield heard
    assert heard == []


def listen(page: Page, complaints: list[str]) -> None:
    def hear(message: ConsoleMessage) -> None:
        # An answer 403, 409 or 422 is meant, and the browser's console names each of them.
        meant = re.match(r"Failed to load resource: .* status of 4\d\d", message.text)
        if message.type in ("error", "warning") and not meant:
            complaints.append(f"{page.url}: {message.text}")

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))


def sign_in(context: BrowserContext, address: str, username: str) -> None:
    """Plant the cookie of a signed-in session; the form itself has its own test."""
    client = Client()
    client.force_login(User.objects.get(username=username), "django.contrib.auth.backends.ModelBackend")
    name = settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": address}])


@pytest.fixture
def open_tab(new_context: Any, live_server: Any, complaints: list[str]) -> OpenTab:
    """Open a browser of somebody's (nobody's without a name); each has cookies of its own. `open_tab(beside=page)` opens a second tab."""

    def open_(username: str = "", *, beside: Page | None = None, **options: Any) -> Page:
        if beside is not None:
            context = beside.context
        else:
            context = new_context(base_url=live_server.url, timezone_id=ZONE, **options)
            context.set_default_timeout(PATIENCE)
        if username:
            sign_in(context, live_server.url, username)
        page: Page = context.new_page()
        listen(page, complaints)
        return page

    expect.set_options(timeout=PATIENCE)
    return open_


@pytest.fixture
def owner_page(team: Team, open_tab: OpenTab) -> Page:
    return open_tab("owner")
