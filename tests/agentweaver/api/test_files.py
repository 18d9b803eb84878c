"""Export, export.zip and import over HTTP (SPEC 7 and 8)."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from governance.deciding.decisions import create_decision
from memory.actors import VerifiedRun
from memory.mirror.writing.manifest import verify_export
from memory.models import Agent, Decision, LedgerEvent
from tests.agentweaver.api.conftest import Caller, errors, problem, token_of
from tests.conftest import NOW, Team, start_run
from tests.memory.mirror.trees import SQUAD, as_zip, write_tree


@pytest.fixture
def root(tmp_path: Path, settings: Any) -> Path:
    settings.AGENTWEAVER_WORKSPACE_ROOT = str(tmp_path)
    return tmp_path


@pytest.fixture
def decision(team: Team) -> Decision:
    return create_decision(
        project_id=team.project.pk, actor=team.owner, agent_name="Ana", type="scope", title="WAL", content="Use WAL.",
        now=NOW,
    )  # fmt: skip


def upload(caller: Caller, data: bytes | None = None, **fields: Any) -> Any:
    """A multipart request, as a browser or curl sends it."""
    file = SimpleUploadedFile("squad.zip", as_zip(SQUAD).getvalue() if data is None else data)
    return caller.client.post(
        f"{caller.base}/memory/import",
        {"file": file, **fields},
        headers={"Authorization": f"Bearer {caller.token}"},
    )


# --- export -------------------------------------------------------------------------------------------------------


def test_an_export_writes_the_workspace_and_lists_its_files(
    root: Path, owner: Caller, decision: Decision
) -> None:
    told = owner.post("memory/export")
    body = told.json()
    assert told.status_code == 200
    assert [file["path"] for file in body["files"]] == [
        ".agentweaver/context/boundaries.md",
        ".squad/decisions.md",
    ]
    assert body["files"][1]["rows"] == {"decision": [decision.pk]}
    assert (body["decisions"], body["entries"], body["memories"], body["patterns"], body["sessions"]) == (
        1,
        0,
        0,
        0,
        0,
    )
    assert (body["kept"], body["removed"], body["foreign"]) == ([], [], [])
    assert re.fullmatch(
        r"[0-9-]{10}T[0-9:]{8}(\.[0-9]{6})?Z", body["exported_at"]
    )  # as every time of the API
    assert verify_export(root / "lighthouse").valid


def test_a_run_may_export(root: Path, team: Team, as_run: Callable[[VerifiedRun], Caller]) -> None:
    assert as_run(start_run(team)).post("memory/export").status_code == 200


def test_without_a_workspace_root_only_the_zip_can_be_had(owner: Caller, settings: Any) -> None:
    settings.AGENTWEAVER_WORKSPACE_ROOT = ""
    assert problem(owner.post("memory/export")) == (409, "no_workspace")
    assert problem(owner.post("memory/import", {"source": "workspace"})) == (409, "no_workspace")
    assert owner.get("memory/export.zip").status_code == 200


def test_an_export_that_fails_is_an_error_and_leaves_the_old_files(
    root: Path, owner: Caller, decision: Decision, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.post("memory/export")
    ledger = root / "lighthouse/.squad/decisions.md"
    before = ledger.read_bytes()
    owner.post(f"decisions/{decision.pk}/archive", {"reason": "old"})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memory.mirror.writing.folders.Folder.write_new", full)
    assert problem(owner.post("memory/export")) == (503, "export_failed")
    assert ledger.read_bytes() == before


def test_the_zip_holds_the_files(owner: Caller, decision: Decision) -> None:
    told = owner.get("memory/export.zip", Accept="application/zip")
    assert (told.status_code, told["Content-Type"], told["Content-Disposition"]) == (
        200, "application/zip", 'attachment; filename="lighthouse.zip"',
    )  # fmt: skip
    with zipfile.ZipFile(io.BytesIO(b"".join(told.streaming_content))) as archive:
        assert archive.namelist() == [
            ".agentweaver/context/boundaries.md",
            ".squad/decisions.md",
            ".agentweaver/context/manifest.json",
        ]
        manifest = json.loads(archive.read(".agentweaver/context/manifest.json"))
    assert manifest["files"][1]["rows"] == {"decision": [decision.pk]}


# --- import -------------------------------------------------------------------------------------------------------


def test_an_uploaded_zip_comes_in_as_legacy_with_its_report(owner: Caller) -> None:
    told = upload(owner)
    body = told.json()
    assert told.status_code == 200
    assert (body["dry_run"], body["found"], body["taken"], body["skipped"]) == (False, 12, 10, 2)
    assert body["taken_by_kind"] == {"charter": 2, "decision": 3, "entry": 1, "memory": 3, "session": 1}
    assert body["not_selected"] == [{"source": "second_ledger", "count": 1, "reason": "source_not_selected"}]
    assert {item["reason"] for item in body["skipped_items"]} == {"boilerplate", "source_not_selected"}
    assert set(Decision.objects.values_list("trust_state", "source_kind")) == {("legacy", "legacy")}
    assert owner.get("decisions?trust_state=legacy").json()["total_count"] == 3
    assert upload(owner).json()["taken"] == 0


def test_a_dry_run_writes_nothing(owner: Caller) -> None:
    events = LedgerEvent.objects.count()
    body = upload(owner, dry_run="true").json()
    assert (body["dry_run"], body["taken"], body["taken_items"][0]["id"]) == (True, 10, None)
    assert LedgerEvent.objects.count() == events
    assert upload(owner, dry_run="false").json()["dry_run"] is False


@pytest.mark.parametrize("sources", ["second_ledger", " second_ledger ,"])
def test_sources_are_chosen_by_name(owner: Caller, sources: str) -> None:
    assert upload(owner, sources=sources).json()["taken_by_kind"] == {"decision": 1}


def test_a_contributor_brings_no_charters(contributor: Caller) -> None:
    body = upload(contributor).json()
    assert body["skipped_by_reason"]["decider_required"] == 2
    assert set(Agent.objects.values_list("charter", flat=True)) == {""}


def test_the_workspace_can_be_taken_in(root: Path, owner: Caller) -> None:
    write_tree(root / "lighthouse", SQUAD)
    asked = {"source": "workspace", "dry_run": True, "sources": ["ledger"]}
    assert owner.post("memory/import", asked).json()["taken_by_kind"] == {"decision": 3}
    body = owner.post("memory/import", {"source": "workspace"}).json()
    assert (body["taken"], body["dry_run"]) == (10, False)


def test_a_workspace_that_is_not_there_or_a_symlink_is_not_read(
    root: Path, owner: Caller, tmp_path: Path
) -> None:
    assert errors(owner.post("memory/import", {"source": "workspace"})).keys() == {"source"}
    assert list(root.iterdir()) == []
    write_tree(root / "elsewhere", SQUAD)
    (root / "lighthouse").symlink_to(root / "elsewhere")
    assert errors(owner.post("memory/import", {"source": "workspace"})).keys() == {"source"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "source"), ({"source": "disk"}, "source"), ({"source": "workspace", "dry_run": "true"}, "dry_run"),
        ({"source": "workspace", "sources": ["attic"]}, "sources"), ({"source": "workspace", "sources": 1}, "sources"),
        ({"source": "workspace", "sources": [1]}, "sources"), ({"source": "workspace", "trust_state": "approved"}, "trust_state"),
    ],
)  # fmt: skip
def test_a_bad_body_is_refused_by_the_fields_name(root: Path, owner: Caller, body: Any, field: str) -> None:
    assert errors(owner.post("memory/import", body)).keys() == {field}


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"dry_run": "perhaps"}, "dry_run"), ({"sources": "attic"}, "sources"), ({"colour": "red"}, "colour"),
     ({"dry_run": ["true", "false"]}, "dry_run")],
)  # fmt: skip
def test_a_bad_form_is_refused_by_the_fields_name(owner: Caller, fields: Any, field: str) -> None:
    assert errors(upload(owner, **fields)).keys() == {field}
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    "data",
    [b"", b"no zip", as_zip({"notes/a.md": "x"}).getvalue(), as_zip({".squad/../../a.md": "x"}).getvalue(),
     as_zip(SQUAD).getvalue()[:-40]],
    ids=["empty", "no zip", "no squad", "leaving", "cut off"],
)  # fmt: skip
def test_a_zip_that_is_none_or_not_safe_is_bad_input(owner: Caller, data: bytes) -> None:
    assert errors(upload(owner, data)).keys() == {"file"}
    assert not Decision.objects.exists()


def test_a_form_without_a_file_is_refused(owner: Caller) -> None:
    told = owner.client.post(
        f"{owner.base}/memory/import", {"dry_run": "true"}, headers={"Authorization": f"Bearer {owner.token}"}
    )
    assert errors(told).keys() == {"file"}
    text = owner.client.post(
        f"{owner.base}/memory/import", {"file": "text"}, headers={"Authorization": f"Bearer {owner.token}"}
    )
    assert errors(text).keys() == {"file"}


def test_a_request_that_is_too_large_is_refused_before_it_is_read(owner: Caller, settings: Any) -> None:
    settings.MAX_UPLOAD_BYTES = 1000
    assert problem(upload(owner)) == (413, "too_large")


def test_another_kind_of_body_is_not_read(owner: Caller) -> None:
    told = owner.client.generic(
        "POST", f"{owner.base}/memory/import", b"PK", content_type="application/zip",
        headers={"Authorization": f"Bearer {owner.token}"},
    )  # fmt: skip
    assert problem(told) == (415, "unsupported_media_type")


def test_a_form_through_the_browser_needs_its_csrf_token(team: Team, client: Any) -> None:
    from django.test import Client

    from governance.models import User

    browser = Client(enforce_csrf_checks=True)
    browser.force_login(User.objects.get(username="owner"))
    file = SimpleUploadedFile("squad.zip", as_zip(SQUAD).getvalue())
    told = browser.post("/api/projects/lighthouse/memory/import", {"file": file})
    assert problem(told) == (403, "csrf_failed")
    browser.get("/account/login")
    assert token_of("owner")
