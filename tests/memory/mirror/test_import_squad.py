"""import_squad (SPEC 8.1): the report alone on standard output, exit 0 only when it worked."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from memory.management.console import shell_author
from memory.models import Decision, LedgerEvent, Project
from tests.conftest import Team
from tests.memory.mirror.trees import SQUAD, as_zip, write_tree

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "repo", SQUAD)


def run(*arguments: object) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("import_squad", *map(str, arguments), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_it_prints_the_report_and_nothing_else(team: Team, folder: Path) -> None:
    out, err = run("lighthouse", folder)
    assert out.startswith(".squad: found 12, took 10, skipped 2\n")
    assert "  not chosen: 1 in second_ledger (source_not_selected)" in out
    assert "  .squad/templates/history.md: template" in out
    assert err == ""


def test_its_json_is_the_whole_report(team: Team, folder: Path) -> None:
    report = json.loads(run("lighthouse", folder, "--json")[0])
    assert (report["found"], report["taken"], report["skipped"]) == (12, 10, 2)
    assert report["taken_by_kind"] == {"charter": 2, "decision": 3, "entry": 1, "memory": 3, "session": 1}
    assert {item["reason"] for item in report["skipped_items"]} >= {"source_not_selected", "boilerplate"}
    assert all(file["found"] == file["taken"] + file["skipped"] for file in report["files"])


def test_it_reads_a_zip(team: Team, tmp_path: Path) -> None:
    file = tmp_path / "squad.zip"
    file.write_bytes(as_zip(SQUAD).getvalue())
    assert run("lighthouse", file)[0].startswith(".squad: found 12, took 10")


def test_the_rows_are_the_commands_and_no_persons(team: Team, folder: Path) -> None:
    run("lighthouse", folder)
    actors = set(LedgerEvent.objects.filter(action__endswith=".import").values_list("actor", flat=True))
    assert actors == {shell_author().identity}


def test_sources_are_chosen_by_name(team: Team, folder: Path) -> None:
    run("lighthouse", folder, "--sources", "ledger,second_ledger")
    assert Decision.objects.count() == 4


def test_it_makes_a_project_only_when_told_to(folder: Path) -> None:
    with pytest.raises(CommandError, match="no project"):
        run("harbour", folder)
    out, err = run("harbour", folder, "--create")
    assert "took 10" in out
    assert "Made the project harbour" in err
    assert Decision.objects.filter(project__slug="harbour").count() == 3


def test_a_dry_run_makes_no_project(folder: Path) -> None:
    out, err = run("harbour", folder, "--create", "--dry-run")
    assert "would take 10" in out
    assert err == "Without --dry-run the project harbour would be made.\n"
    assert not Project.objects.exists()


@pytest.mark.parametrize("slug", ["Not Kebab", "6f1c0d52-3f1b-4c58-9f0c-6a8c0b8e9d11"])
def test_it_makes_no_project_under_a_name_that_is_no_slug(folder: Path, slug: str) -> None:
    with pytest.raises(CommandError):
        run(slug, folder, "--create")
    assert not Project.objects.exists()


def test_a_tree_that_is_refused_makes_no_project(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    with pytest.raises(CommandError, match="not_a_squad_tree"):
        run("harbour", tmp_path / "notes", "--create")
    assert not Project.objects.exists()


def test_it_refuses_in_readable_words(team: Team, tmp_path: Path, folder: Path) -> None:
    text = tmp_path / "text.md"
    text.write_text("# no zip")
    with pytest.raises(CommandError, match="neither a folder nor a zip"):
        run("lighthouse", text)
    with pytest.raises(CommandError, match="No such file"):
        run("lighthouse", tmp_path / "nothing")
    with pytest.raises(CommandError, match="no such source"):
        run("lighthouse", folder, "--sources", "attic")


def test_no_escape_sequence_of_a_file_reaches_the_terminal(team: Team, tmp_path: Path) -> None:
    write_tree(tmp_path, {".squad/decisions.md": "# Decisions\n", ".squad/log/\x1b[31mred.md": "x"})
    out, _ = run("lighthouse", tmp_path)
    assert "\x1b" not in out
