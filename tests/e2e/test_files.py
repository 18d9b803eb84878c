"""A team moves in and out in the browser: dry run, import, export, with and without JavaScript (SPEC 8 and 9)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from memory.mirror.writing.manifest import verify_export
from memory.models import Decision
from tests.conftest import Team
from tests.e2e.conftest import OpenTab
from tests.memory.mirror.trees import SQUAD, as_zip

FILES = "/projects/lighthouse/files"


@pytest.fixture
def zipped(tmp_path: Path, settings: Any) -> Path:
    settings.UPLOADS_ROOT = str(tmp_path / "uploads")
    settings.AGENTWEAVER_WORKSPACE_ROOT = str(tmp_path / "workspaces")
    (tmp_path / "workspaces").mkdir()
    file = tmp_path / "squad.zip"
    file.write_bytes(as_zip(SQUAD).getvalue())
    return file


def import_and_export(page: Page, zipped: Path) -> None:
    page.goto(FILES)
    page.get_by_label("Zip file").set_input_files(zipped)
    page.get_by_role("button", name="Show what would come in").click()
    expect(page.get_by_role("heading", name="What would come in")).to_be_visible()
    expect(page.locator(".figures")).to_contain_text("10would be taken")
    assert not Decision.objects.exists()
    page.get_by_label("A second ledger").check()
    page.get_by_role("button", name="Show again").click()
    page.get_by_role("button", name="Import 11 records").click()
    expect(page.locator("#report-title")).to_have_text("11 records came in.")
    assert Decision.objects.legacy().count() == 4
    page.get_by_role("button", name="Export now").click()
    expect(page.locator("#exported-title")).to_contain_text("files are current")


def test_a_team_moves_in_and_out(owner_page: Page, zipped: Path, tmp_path: Path) -> None:
    import_and_export(owner_page, zipped)
    expect(owner_page.locator("#exported-title")).to_be_focused()
    expect(owner_page).to_have_url(re.compile(f"{FILES}$"))
    expect(owner_page.locator("#count-legacy")).to_contain_text("7")
    assert verify_export(tmp_path / "workspaces/lighthouse").valid


def test_the_same_without_javascript(team: Team, open_tab: OpenTab, zipped: Path, tmp_path: Path) -> None:
    import_and_export(open_tab("owner", java_script_enabled=False), zipped)
    assert verify_export(tmp_path / "workspaces/lighthouse").valid


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_page_and_report_are_clean_for_axe_and_fit_the_screen(
    team: Team, open_tab: OpenTab, zipped: Path, width: int, scheme: str
) -> None:
    page = open_tab("owner", viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page.goto(FILES)
    assert Axe().run(page).response["violations"] == []
    page.get_by_label("Zip file").set_input_files(zipped)
    page.get_by_role("button", name="Show what would come in").click()
    expect(page.get_by_role("heading", name="What would come in")).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    assert Axe().run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
