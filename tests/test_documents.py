"""The documents say what is there: links lead somewhere, commands exist, every variable and every dependency is explained."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
    relative = [link for link in links if "://" not in link]
    assert [link for link in relative if not (document.parent / link).exists()] == []


def test_every_command_the_readme_names_exists() -> None:
    named = set(
        re.findall(
            r"^\| `([a-z_]+)(?= |`)[^|]*\|", README.split("## Commands")[1].split("###")[0], re.MULTILINE
        )
    )
    assert named >= {"demo", "issue_token", "grant", "import_squad", "compile_context", "verify_ledger"}
    assert named - set(get_commands()) == set()


def test_every_dependency_has_its_reason_in_the_readme() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [re.split(r"[\[<>=~ ]", line)[0] for line in project["dependencies"]]
    assert [
        name
        for name in named
        if not re.search(rf"^\| [^|]*\b{re.escape(name)}\b[^|]*\|", README, re.MULTILINE)
    ] == []


def test_every_variable_that_settings_read_stands_in_the_example() -> None:
    settings = (ROOT / "agentweaver" / "settings.py").read_text(encoding="utf-8")
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    read = set(re.findall(r"""env(?:\.\w+)?\(\s*"([A-Z_]+)""", settings))
    assert read == set(re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE))


def test_the_makefile_has_every_target_the_readme_names() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)\b", README)) - targets == set()
