"""Import and export as pages (SPEC 8 and 9): exported now or as a zip; imported only after a dry run, and exactly what it showed."""

from __future__ import annotations

import io
import os
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from governance.deciding.decisions import create_decision
from governance.models import User
from governance.pages import kept_uploads
from memory.mirror.writing.manifest import verify_export
from memory.models import Agent, Decision, LedgerEvent
from tests.conftest import NOW, Team
from tests.memory.mirror.trees import SQUAD, as_zip, write_tree

pytestmark = pytest.mark.django_db

HERE = "/projects/lighthouse/files"
HTMX = {"HX-Request": "true"}
SOURCES = ["ledger", "inbox", "agents", "session"]


@pytest.fixture(autouse=True)
def uploads(tmp_path: Path, settings: Any) -> Path:
    settings.UPLOADS_ROOT = str(tmp_path / "uploads")
    settings.AGENTWEAVER_WORKSPACE_ROOT = ""
    return tmp_path / "uploads"


@pytest.fixture
def root(tmp_path: Path, settings: Any) -> Path:
    folder = tmp_path / "workspaces"
    folder.mkdir()
    settings.AGENTWEAVER_WORKSPACE_ROOT = str(folder)
    return folder


def browser(username: str, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(
        User.objects.get(username=username), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


@pytest.fixture
def owner(team: Team) -> Client:
    return browser("owner")


@pytest.fixture
def decision(team: Team) -> Decision:
    return create_decision(
        project_id=team.project.pk, actor=team.owner, agent_name="Ana", type="scope", title="WAL", content="Use WAL.",
        now=NOW,
    )  # fmt: skip


def zipped(data: bytes | None = None) -> SimpleUploadedFile:
    return SimpleUploadedFile("squad.zip", as_zip(SQUAD).getvalue() if data is None else data)


def check(client: Client, data: bytes | None = None, **fields: Any) -> Any:
    return client.post(
        f"{HERE}/check", {"place": "upload", "file": zipped(data), "sources": SOURCES, **fields}
    )


def hidden(response: Any) -> dict[str, Any]:
    """What the form under the report sends back."""
    page = response.content.decode()
    named = {
        name: re.search(rf'name="{name}" value="([^"]*)"', page) for name in ("place", "kept", "fingerprint")
    }
    return {
        **{name: found[1] for name, found in named.items() if found},
        "sources": re.findall(r'name="sources" value="(\w+)" id="source-\w+" checked', page),
    }


def take(client: Client, response: Any, **changed: Any) -> Any:
    return client.post(f"{HERE}/import", {**hidden(response), **changed})


def figures(response: Any) -> tuple[int, int, int]:
    report = response.context["shown"].report
    return report.found, report.taken, report.skipped


# --- who gets in --------------------------------------------------------------------------------------------------

ROLES = ("owner", "contributor", "orchestrator", "viewer", "stranger")
ALLOWED = {
    ("GET", HERE): (200, 200, 200, 403, 404),
    ("GET", f"{HERE}/export.zip"): (200, 200, 200, 403, 404),
    ("POST", f"{HERE}/export"): (200, 200, 200, 403, 404),
    ("POST", f"{HERE}/check"): (200, 200, 403, 403, 404),
    ("POST", f"{HERE}/import"): (422, 422, 403, 403, 404),
    ("GET", f"{HERE}/progress"): (200, 200, 403, 403, 404),
}


@pytest.mark.parametrize(("method", "path"), ALLOWED)
def test_each_route_answers_by_role(team: Team, root: Path, method: str, path: str) -> None:
    form: dict[str, Any] = {"place": "upload", "sources": SOURCES} if method == "POST" else {}
    found = []
    for role in ROLES:
        if path.endswith("check"):
            form["file"] = zipped()
        found.append(getattr(browser(role), method.lower())(path, form).status_code)
    assert tuple(found) == ALLOWED[method, path]
    assert Client().get(HERE).status_code == 302


@pytest.mark.parametrize("path", ["check", "import", "export"])
def test_a_form_without_its_token_is_refused_and_a_get_does_nothing(team: Team, path: str) -> None:
    strict = browser("owner", enforce_csrf_checks=True)
    form = {"place": "upload", "file": zipped(), "sources": SOURCES}
    assert strict.post(f"{HERE}/{path}", form).status_code == 403
    assert strict.get(f"{HERE}/{path}").status_code == 405


def test_an_orchestrator_may_export_and_sees_no_form_to_import(team: Team) -> None:
    assert b"Show what would come in" in browser("contributor").get(HERE).content
    assert b"Show what would come in" not in browser("orchestrator").get(HERE).content
    assert b"Import / export" not in browser("viewer").get("/projects/lighthouse").content


def test_the_page_costs_the_same_however_much_there_is(team: Team, owner: Client, decision: Decision) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            owner.get(HERE)
        return len(seen)

    before = queries()
    take(owner, check(owner))
    assert queries() == before <= 6


# --- export -------------------------------------------------------------------------------------------------------


def test_an_export_shows_what_it_wrote_and_the_page_what_lies_there(
    root: Path, owner: Client, decision: Decision
) -> None:
    assert b"Nothing has been exported" in owner.get(HERE).content
    assert list(root.iterdir()) == []
    told = owner.post(f"{HERE}/export")
    assert b"2 files are current, 2 of them written now." in told.content
    assert b".agentweaver/context/boundaries.md" in told.content
    assert verify_export(root / "lighthouse").valid
    page = owner.get(HERE).content.decode()
    assert "The 2 files it lists" in page
    assert "complete" in page


def test_an_export_names_what_it_kept_and_what_is_not_ours(
    root: Path, owner: Client, decision: Decision
) -> None:
    write_tree(root / "lighthouse", {".squad/decisions.md": "Ours.", ".squad/decisions/inbox/a.md": "Mine."})
    page = owner.post(f"{HERE}/export").content.decode()
    assert re.search(r"decisions\.md</code> was not ours; its content is at <code>\.agentweaver/kept/", page)
    assert "1 file of others, not touched" in page


def test_an_export_that_fails_says_so_and_htmx_shows_it(
    team: Team, owner: Client, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memory.mirror.writing.folders.Folder.write_new", full)
    told = owner.post(f"{HERE}/export", headers=HTMX)
    assert told.status_code == 409
    assert b"No space left on device" in told.content
    assert b"<html" not in told.content


def test_without_a_workspace_the_mirror_is_a_download(owner: Client, decision: Decision) -> None:
    page = owner.get(HERE).content
    assert b"keeps no workspace folders" in page
    assert b"Export now" not in page
    assert b"workspace folder on the server" not in page
    assert owner.post(f"{HERE}/export").status_code == 409
    told = owner.get(f"{HERE}/export.zip")
    assert (told["Content-Type"], told["Content-Disposition"]) == (
        "application/zip",
        'attachment; filename="lighthouse.zip"',
    )
    assert ".squad/decisions.md" in zipfile.ZipFile(io.BytesIO(told.content)).namelist()


@pytest.mark.parametrize(
    "manifest",
    [
        b"{", b"[]", b'{"schema":"agentweaver.mirror.v1","project":"<script>","slug":"x","epoch":1,"exported_at":"<b>","files":[]}',
        b'{"schema":"agentweaver.mirror.v1","project":"x","slug":"x","epoch":1,"exported_at":"2026-01-01","files":[{"path":".squad/decisions.md",\
"sha256":"","bytes":1,"rows":{"decision":7}}]}',
    ],
)  # fmt: skip
def test_a_manifest_that_others_wrote_is_only_shown(root: Path, owner: Client, manifest: bytes) -> None:
    file = root / "lighthouse/.agentweaver/context/manifest.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(manifest)
    told = owner.get(HERE)
    assert told.status_code == 200
    assert b"<script>" not in told.content
    assert b"<b>" not in told.content


def test_a_workspace_that_cannot_be_opened_is_said(root: Path, owner: Client, tmp_path: Path) -> None:
    (root / "lighthouse").symlink_to(tmp_path)
    told = owner.get(HERE)
    assert told.status_code == 200
    assert b"The workspace cannot be opened" in told.content


# --- import: the dry run ------------------------------------------------------------------------------------------


def test_a_dry_run_shows_everything_and_writes_nothing(owner: Client) -> None:
    events = LedgerEvent.objects.count()
    told = check(owner)
    page = told.content.decode()
    assert figures(told) == (12, 10, 2)
    assert "Would be taken: 2 charters, 3 decisions, 1 entry, 3 memories, 1 session." in page
    assert "Import 10 records" in page
    assert "A second ledger, decisions/decisions.md: 1" in page
    skipped = re.findall(
        r"<code>([^<]*)</code> line (\d+)</th>\s*<td data-label=\"Reason\"><span>([^<]*)", page
    )
    assert [(path, int(line), why.strip()) for path, line, why in skipped] == [
        (".squad/decisions.md", 26, "words every such file has"),
        (".squad/decisions/decisions.md", 3, "its source was not chosen"),
    ]
    assert ".squad/templates/history.md" in page
    assert LedgerEvent.objects.count() == events
    assert not Decision.objects.exists()


def test_the_import_takes_what_was_shown_without_choosing_the_file_again(
    owner: Client, uploads: Path
) -> None:
    told = take(owner, check(owner))
    page = told.content.decode()
    assert told.status_code == 200
    assert "10 records came in." in page
    assert figures(told) == (12, 10, 2)
    assert set(Decision.objects.values_list("trust_state", "source_kind")) == {("legacy", "legacy")}
    assert list(uploads.iterdir()) == []
    again = check(owner)
    assert figures(again) == (12, 0, 12)
    assert b"There is nothing new" in again.content
    assert b'<button class="button--main">Import' not in again.content


def test_htmx_gets_the_fragment_and_the_counters(owner: Client) -> None:
    form = {"place": "upload", "file": zipped(), "sources": SOURCES}
    shown = owner.post(f"{HERE}/check", form, headers=HTMX)
    assert shown.content.strip().startswith(b'<div class="stack" id="results">')
    done = owner.post(f"{HERE}/import", hidden(shown), headers=HTMX)
    assert b"<html" not in done.content
    assert re.search(r'count-legacy"[^>]*>\s*6', done.content.decode())


def test_a_contributor_brings_no_charters(team: Team) -> None:
    contributor = browser("contributor")
    shown = check(contributor)
    assert figures(shown) == (12, 8, 4)
    assert b"only an owner may say what an agent is for" in shown.content
    assert figures(take(contributor, shown)) == (12, 8, 4)
    assert set(Agent.objects.values_list("charter", flat=True)) == {""}


def test_other_sources_are_shown_before_they_are_taken(owner: Client) -> None:
    first = check(owner)
    changed = take(owner, first, sources=["second_ledger"])
    assert changed.status_code == 409
    assert b"has changed since it was shown" in changed.content
    assert not Decision.objects.exists()
    assert (figures(changed), hidden(changed)["sources"]) == ((12, 1, 11), ["second_ledger"])
    assert figures(take(owner, changed)) == (12, 1, 11)


def test_what_changed_in_the_ledger_meanwhile_is_shown_anew(owner: Client) -> None:
    mine, theirs = check(owner), check(browser("contributor"))
    take(browser("contributor"), theirs)
    late = take(owner, mine)
    assert (late.status_code, figures(late)) == (409, (12, 2, 10))
    assert b"Import 2 records" in late.content
    assert figures(take(owner, late)) == (12, 2, 10)


def test_the_workspace_is_taken_only_as_it_was_shown(root: Path, owner: Client) -> None:
    write_tree(root / "lighthouse", SQUAD)
    form = {"place": "workspace", "sources": SOURCES}
    shown = owner.post(f"{HERE}/check", form)
    assert figures(shown) == (12, 10, 2)
    file = root / "lighthouse/.squad/agents/Ana/history.md"
    file.write_text(file.read_text().replace("Ropes shrink when wet.", "Ropes shrink when wet. " + "x" * 500))
    changed = take(owner, shown)
    assert (changed.status_code, Decision.objects.count()) == (409, 0)
    assert figures(take(owner, changed)) == (12, 10, 2)


# --- import: what is refused --------------------------------------------------------------------------------------


def bomb() -> bytes:
    return as_zip({".squad/decisions.md": b"\0" * (8 * 1024 * 1024)}).getvalue()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "not a readable zip"), (b"no zip", "not a readable zip"), (bomb(), "Compressed more than 200 times"),
        (as_zip({"notes/a.md": "x"}).getvalue(), "No .squad or .ai-team folder in the zip"),
        (as_zip({".squad/../../a.md": "x"}).getvalue(), "leaves its folder"),
        (as_zip({"/etc/.squad/decisions.md": "x"}).getvalue(), "An absolute name"),
        (as_zip({".squad/a.md": "x", ".squad/A.md": "x"}).getvalue(), "Two names differ only in case"),
        (as_zip({f".squad/decisions/inbox/{n}.md": "x" for n in range(5_001)}).getvalue(), "More than 5000 entries"),
    ],
    ids=["empty", "no zip", "bomb", "no squad", "leaving", "absolute", "case", "many"],
)  # fmt: skip
def test_a_zip_that_is_refused_is_a_plain_sentence_beside_the_field(
    owner: Client, uploads: Path, data: bytes, sentence: str
) -> None:
    told = check(owner, data)
    assert told.status_code == 422
    assert sentence in told.content.decode()
    assert not Decision.objects.exists()
    assert not uploads.exists()


def test_a_zip_that_is_too_large_is_refused_before_it_is_parsed(
    team: Team, settings: Any, uploads: Path
) -> None:
    settings.MAX_UPLOAD_BYTES = 1_000
    told = check(browser("owner"))
    assert told.status_code == 422
    assert b"The file is too large" in told.content
    assert not uploads.exists()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"sources": []}, "Choose at least one."), ({"sources": ["attic"]}, "attic is not one of the available choices"),
        ({"place": "workspace"}, "workspace is not one of the available choices"), ({"file": ""}, "Choose a zip file."),
        ({"kept": "../../etc/passwd", "file": ""}, "Choose a zip file."),
    ],
)  # fmt: skip
def test_a_form_that_cannot_be_keeps_the_page(owner: Client, fields: dict[str, Any], sentence: str) -> None:
    told = check(owner, **fields)
    assert told.status_code == 422
    assert sentence in told.content.decode()


def test_a_workspace_without_files_is_a_plain_sentence(root: Path, owner: Client) -> None:
    told = owner.post(f"{HERE}/check", {"place": "workspace", "sources": SOURCES})
    assert told.status_code == 422
    assert b"The project has no workspace folder yet" in told.content


def test_names_from_the_zip_are_text(owner: Client) -> None:
    told = check(owner, as_zip({**SQUAD, ".squad/<script>alert(1)</script>\u202e.md": "x"}).getvalue())
    assert b"<script>alert" not in told.content
    assert b"RIGHT-TO-LEFT" in told.content or b"U+202E" in told.content


# --- what is kept -------------------------------------------------------------------------------------------------


def test_an_upload_is_its_persons_in_its_project_alone(team: Team, owner: Client) -> None:
    shown = check(owner)
    told = take(browser("contributor"), shown)
    assert told.status_code == 422
    assert b"The zip is no longer kept here" in told.content


def test_an_upload_is_gone_after_an_hour_and_the_reader_is_told(owner: Client, uploads: Path) -> None:
    shown = check(owner)
    [kept] = uploads.iterdir()
    old = time.time() - kept_uploads.KEPT_SECONDS - 1
    os.utime(kept, (old, old))
    told = take(owner, shown)
    assert told.status_code == 422
    assert b"The zip is no longer kept here. Choose it again." in told.content
    assert list(uploads.iterdir()) == []


def test_one_zip_is_kept_for_each_person_and_a_few_for_all(
    team: Team, owner: Client, uploads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        check(
            owner,
            as_zip({".squad/decisions.md": f"# Decisions\n\n### 2026-01-01: {name}\n\nText.\n"}).getvalue(),
        )
    assert len(list(uploads.iterdir())) == 1
    monkeypatch.setattr(kept_uploads, "MAX_KEPT", 1)
    check(browser("contributor"))
    assert len(list(uploads.iterdir())) == 1


def test_nobody_else_on_the_machine_can_read_what_is_kept(owner: Client, uploads: Path) -> None:
    check(owner)
    assert uploads.stat().st_mode & 0o777 == 0o700
    assert next(uploads.iterdir()).stat().st_mode & 0o777 == 0o600


def test_a_folder_that_others_can_open_is_not_used_and_the_file_is_asked_for_again(
    owner: Client, uploads: Path
) -> None:
    uploads.mkdir(mode=0o755)
    uploads.chmod(0o755)
    shown = check(owner)
    assert figures(shown) == (12, 10, 2)
    assert b"Choose the same one again" in shown.content
    assert list(uploads.iterdir()) == []
    assert figures(take(owner, shown, file=zipped())) == (12, 10, 2)


def test_a_link_in_place_of_the_folder_is_not_followed(
    team: Team, owner: Client, uploads: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    uploads.symlink_to(elsewhere)
    check(owner)
    assert list(elsewhere.iterdir()) == []


# --- progress -----------------------------------------------------------------------------------------------------


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, team: Team) -> Iterator[list[dict[str, Any]]]:
    """Everything another request of this person would have been told while an import was under way."""
    seen: list[dict[str, Any]] = []
    other = browser("owner")
    write = kept_uploads.Progress.__call__

    def watched(self: kept_uploads.Progress, stage: str, done: int, total: int) -> None:
        write(self, stage, done, total)
        if stage == "reading":
            seen.append(other.get(f"{HERE}/progress").json())

    monkeypatch.setattr(kept_uploads, "TOLD_EVERY", 0)
    monkeypatch.setattr(kept_uploads.Progress, "__call__", watched)
    yield seen
    assert other.get(f"{HERE}/progress").json() == {}


def test_how_far_an_import_is_can_be_asked_meanwhile(owner: Client, told: list[dict[str, Any]]) -> None:
    check(owner)
    assert told[0] == {"stage": "reading", "done": 1, "total": 8}
    assert [told["done"] for told in told] == sorted(told["done"] for told in told)


def test_nothing_under_way_is_an_empty_answer(owner: Client) -> None:
    answer = owner.get(f"{HERE}/progress")
    assert (answer.json(), answer["Cache-Control"]) == ({}, "no-store")


def test_what_a_killed_worker_left_is_not_told(owner: Client, team: Team, uploads: Path) -> None:
    with kept_uploads.Progress(team.project.pk, "owner") as killed:
        killed("writing", 7, 9)
        assert owner.get(f"{HERE}/progress").json() == {"stage": "writing", "done": 7, "total": 9}
        with kept_uploads.Progress(team.project.pk, "owner"):
            assert owner.get(f"{HERE}/progress").json() == {}
