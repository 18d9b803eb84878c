"""Rules of the house that no single test would notice being broken. Upward imports are import-linter's to find."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command

from governance.deciding import decisions, entries, memories, projects
from governance.deciding.gate import deciding
from governance.people import policies
from memory import recording, sessions

ROOT = Path(__file__).resolve().parent.parent
OURS = ("agentweaver", "governance", "memory")


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of ours that runs, by its path from the root."""
    paths = (path for app in OURS for path in sorted((ROOT / app).rglob("*.py")))
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8"))
        for path in paths
        if "migrations" not in path.parts
    }


# One write path

SINGLE = {"save", "create", "bulk_create", "bulk_update", "get_or_create", "update_or_create"}
"""Methods that write wherever they are called."""
BY_QUERY = {"update", "delete"}
"""Methods that write when they are a query's; dictionaries and hashes have them too."""

ELSEWHERE: dict[str, set[str]] = {
    # The proof of what was told is append-only by trigger and needs no event.
    "memory/compiling/receipts.py": {
        "ContextSnapshot.objects.create",
        "SnapshotRow.objects.bulk_create",
        "ContextReceipt.objects.create",
    },
    # What was read from files stands beside the rows it became, each of which has its event.
    "memory/mirror/importing.py": {"ImportedRecord.objects.bulk_create"},
    # Grants are guardian's tables; each change of one is noted in the ledger.
    "governance/people/policies.py": {
        "ProjectUserGrant.objects.update_or_create",
        "ProjectGroupGrant.objects.update_or_create",
        "held.delete",
    },
    # Credentials are secrets, not memory.
    "governance/people/credentials.py": {
        "RunCredential.objects.update_or_create",
        "PersonalToken.objects.create",
        "credential.save",
        "stored.update",
    },
    "governance/deciding/scribe.py": {"ScribeReport.objects.create", "report.save"},
    # Accounts and groups belong to no project.
    "governance/demo/people.py": {"Group.objects.get_or_create"},
    "governance/management/commands/issue_token.py": {"user.save"},
}
"""Who writes past `memory.ledger.changes`, what, and why that is right."""


def queries_of(function: ast.AST) -> set[str]:
    """Names that hold a query inside a function: annotated as one, or made from a manager."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and node.annotation and "QuerySet" in ast.unparse(node.annotation):
            names.add(node.arg)
        if isinstance(node, ast.Assign) and ".objects" in ast.unparse(node.value):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def writes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every call that writes to a table, as far as reading the code can tell."""
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.Module)):
            continue
        queries = queries_of(function) if isinstance(function, ast.FunctionDef) else set()
        for call in ast.walk(function):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            receiver, text = ast.unparse(call.func.value), ast.unparse(call.func)
            is_query = receiver in queries or ".objects" in receiver or "_default_manager" in receiver
            if call.func.attr in SINGLE or (call.func.attr in BY_QUERY and is_query):
                yield call.lineno, text


def test_the_ledger_alone_writes_to_the_tables_of_the_ledger() -> None:
    unexpected = {
        f"{path}:{line} {text}"
        for path, tree in modules().items()
        if path != "memory/ledger/changes.py"
        for line, text in writes(tree)
        if text not in ELSEWHERE.get(path, set())
    }
    assert unexpected == set()


@pytest.mark.parametrize(
    "code",
    [
        "def f(row): row.save()",
        "def f(): AgentMemory.objects.filter(pk=1).update(content='x')",
        "def f():\n    rows = Decision.objects.all()\n    rows.delete()",
        "def f(rows: QuerySet[Run]): rows.update(status='x')",
        "AgentMemory.objects.bulk_create([])",
    ],
)
def test_that_rule_finds_what_it_looks_for(code: str) -> None:
    assert len(set(writes(ast.parse(code)))) == 1


def test_nobody_writes_by_hand_written_sql() -> None:
    statement = re.compile(r"\s*(INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|TRUNCATE)\b", re.IGNORECASE)
    found = {
        f"{path}:{node.lineno}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and statement.match(node.value)
    }
    assert found == set()


def test_no_model_does_more_than_asked_when_it_is_saved_or_deleted() -> None:
    ours = {
        base
        for label in ("memory", "governance")
        for model in apps.get_app_config(label).get_models()
        for base in model.__mro__
        if base.__module__.split(".")[0] in OURS
    }
    assert {base for base in ours if {"save", "delete"} & set(vars(base))} == set()


# Verbs

VERBS = [
    pytest.param(function, id=f"{module.__name__}.{name}")
    for module in (recording, sessions, entries, memories, decisions, projects, policies)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__
    and not name.startswith("_")
    and "project_id" in inspect.signature(function).parameters
    and "actor" in inspect.signature(function).parameters
    and "now" in inspect.signature(function).parameters
]


def test_verbs_are_found() -> None:
    assert len(VERBS) > 15


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_takes_everything_by_name(verb: Callable[..., object]) -> None:
    if verb is deciding:
        return
    kinds = {parameter.kind for parameter in inspect.signature(verb).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}


def test_the_core_looks_at_no_clock_and_no_dice() -> None:
    """A compile is a pure function and a verb is told the time: only edges may look."""
    core = [
        path for path in modules() if re.fullmatch(r"memory/((models|ledger|compiling|log)/)?\w+\.py", path)
    ]
    core += [
        "governance/deciding/entries.py",
        "governance/deciding/memories.py",
        "governance/deciding/decisions.py",
        "governance/deciding/gate.py",
        "governance/deciding/projects.py",
        "governance/people/policies.py",
    ]
    banned = re.compile(r"\b(now|today|utcnow|time|monotonic|random|uuid1)\(\)|\brandom\.")
    found = {
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path in core
        for node in ast.walk(modules()[path])
        if isinstance(node, ast.Call) and banned.search(ast.unparse(node.func) + "()")
    }
    assert found == set()


# Schema


@pytest.mark.django_db
def test_the_migrations_are_current() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


# Templates: a strict Content-Security-Policy lets nothing inline run, so nothing inline may be there

TEMPLATES = sorted(path for folder in ("templates", *OURS) for path in (ROOT / folder).rglob("*.html"))
HANDLER = re.compile(r"on[a-z]+|hx-on.*|data-hx-on.*")


class Inline(HTMLParser):
    """Collects what a page would run or style by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if (tag == "script" and not named.get("src")) or tag == "style":
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            is_code = re.match(r"\s*(javascript|js)\s*:", value or "", re.IGNORECASE)
            if name == "style" or HANDLER.fullmatch(name) or is_code:
                self.found.append(f"<{tag} {name}={value!r}>")

    handle_startendtag = handle_starttag


def inline(template: str) -> list[str]:
    """What of a template is inline, read as the HTML it makes."""
    text = re.sub(r"\{%\s*comment.*?endcomment\s*%\}|\{#.*?#\}", "", template, flags=re.DOTALL)
    text = re.sub(r"\{\{.*?\}\}", "x", text)
    parser = Inline()
    parser.feed(re.sub(r"\{%.*?%\}", " ", text))
    parser.close()
    return parser.found


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_in_a_template_is_inline(path: Path) -> None:
    assert inline(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "template",
    [
        "<script>alert(1)</script>",
        '<script type="application/json">{}</script>',
        "<style>p {}</style>",
        '<p style="color: red">',
        '<p {% if a %}style="x"{% endif %}>',
        '<button onclick="x()">',
        '<form hx-on:submit="x()">',
        '<form hx-on::after-request="x()">',
        "<div hx-vals='js:{a: 1}'>",
        '<a href=" javascript:x()">',
        '<img src="{{ a }}" onerror="x"/>',
    ],
)
def test_that_rule_finds_what_is_inline(template: str) -> None:
    assert len(inline(template)) == 1


def test_what_is_not_inline_is_let_be() -> None:
    fine = '<script src="{% static "app.js" %}" defer></script><p class="on" data-on="x">{# <style> #}{{ "onclick=" }}</p>'
    assert inline(fine) == []
