"""The documents say what is there: links lead somewhere, commands exist, every variable and every dependency is explained."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands

from agentweaver.api import urls
from agentweaver.codes import TITLES
from governance.pages.queues.files import WHY
from memory.mirror.reading import squad, tree

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


def test_the_limits_of_files_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    limits = dict(re.findall(r"^\| ([a-z][^|]*?) \| ([^|]*?) \|", page.split("### Limits")[1], re.MULTILINE))
    assert limits == {
        "a request with files": f"`MAX_UPLOAD_BYTES`, {settings.MAX_UPLOAD_BYTES // 1_000_000} MB",
        "entries of a tree": f"{tree.MAX_ENTRIES:,}",
        "all files, unpacked": f"{tree.MAX_TOTAL_BYTES >> 20} MB",
        "one file": f"{tree.MAX_FILE_BYTES >> 20} MB",
        "lines of one file, and of all": f"{squad.MAX_LINES:,}, and {squad.MAX_TOTAL_LINES:,}",
        "folders deep": str(tree.MAX_DEPTH),
        "a name, a path": f"{tree.MAX_NAME} and {tree.MAX_PATH} characters",
        "compression": f"{tree.MAX_ZIP_RATIO} times (entries over {tree.RATIO_FLOOR >> 20} MB)",
    }


def test_every_reason_of_a_report_is_explained() -> None:
    page = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    table = page.split("### The report")[1].split("### Limits")[0]
    assert set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*)\|", table, re.MULTILINE)))) == set(
        WHY
    )


API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def routes() -> set[tuple[str, str]]:
    """Method and path of every operation of the API, as the document writes them."""
    found = set()
    for route in urls.urlpatterns:
        operations = getattr(getattr(route.callback, "cls", None), "operations", {})
        path = "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(route.pattern))
        found |= {(method, path) for method in operations}
    return found


def test_the_api_document_names_every_route_and_no_other() -> None:
    lines = re.findall(r"^\| ([A-Z, ]+) \| `(/[^`]+)` \|", API, re.MULTILINE)
    named = [(method, path) for methods, path in lines for method in methods.split(", ")]
    assert sorted(named) == sorted(routes())
    assert "/api/schema" in API
    assert "/api/docs" in API


def test_the_api_document_names_every_code_and_no_other() -> None:
    named = re.findall(r"^\| \d{3} \| `(\w+)` \|", API, re.MULTILINE)
    assert sorted(named) == sorted(TITLES)
