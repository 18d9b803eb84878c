"""Context: the block exactly as a run is told it, what it is made of, and why every other row is out (SPEC 9, Context)."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from governance.deciding.decisions import archive_decision
from governance.deciding.projects import update_project
from governance.pages.queues import contexts as queue
from governance.pages.views import contexts as views
from memory.compiling.compiler import CompiledContext, Limits, compile_context, compile_decisions
from memory.compiling.receipts import build_for_run
from memory.enums import Layer, OmitReason
from memory.models import ContextReceipt, Project, Run
from tests.conftest import NOW, Team, start_run
from tests.factories import LEGACY, RETIRED, MemoryFactory
from tests.governance.pages.asking import MEMBERS, answers, statements
from tests.governance.pages.conftest import HTMX, Browsers, a_decision, a_memory, a_session

pytestmark = pytest.mark.django_db

CONTEXT = "/projects/lighthouse/context"


def block(response: Any) -> str:
    """The text of the block as a browser would copy it."""
    found = re.search(r'<pre[^>]*id="block"[^>]*>(.*?)</pre>', response.content.decode(), re.DOTALL)
    assert found is not None
    return html.unescape(found[1].removeprefix("\n"))


def build(run_id: Any, limits: Limits | None = None) -> ContextReceipt:
    run = Run.objects.select_related("project", "agent").get(pk=run_id)
    return build_for_run(run, limits or Limits(), NOW).receipt


@pytest.fixture
def rows(team: Team) -> Team:
    """Something in every layer, and something left out for every reason that a rule has."""
    a_decision(team, "Told")
    a_decision(team, "Technical", type="technical")
    a_memory(team, "Core.", type="core_context")
    for number in range(3):
        a_memory(team, f"Learned {number}. <b>&amp;</b>", importance="high")
    a_memory(team, "Not high.", importance="low")
    a_memory(team, "Ben's.", agent_name="Ben", importance="high")
    a_memory(team, "An update.", type="update")
    MemoryFactory(project=team.project, content="Imported.", **LEGACY)
    MemoryFactory(project=team.project, content="Gone.", **RETIRED)
    a_session(team)
    return team


def test_the_block_is_the_compilers_verbatim(rows: Team, owner: Client) -> None:
    response = owner.get(f"{CONTEXT}?agent=Ana")
    assert block(response) == compile_context(rows.project, "Ana").text
    assert b'data-copies="block"' in response.content


def test_the_first_agent_is_shown_when_none_was_chosen(rows: Team, owner: Client) -> None:
    assert block(owner.get(CONTEXT)) == compile_context(rows.project, "Ana").text


@pytest.mark.parametrize(
    ("query", "limits"),
    [
        ("trust=strict", Limits(strict=True)),
        ("max_items=1", Limits(max_items=1)),
        ("max_tokens=300", Limits(max_tokens=300)),
        ("max_items=2&max_tokens=400&trust=strict", Limits(2, 400, strict=True)),
    ],
)
def test_narrower_limits_are_the_compilers_too(rows: Team, owner: Client, query: str, limits: Limits) -> None:
    response = owner.get(f"{CONTEXT}?agent=Ana&{query}")
    compiled = compile_context(rows.project, "Ana", limits)
    assert block(response) == compiled.text
    assert figures(response) == figures_of(compiled)


def figures(response: Any) -> tuple[Any, ...]:
    """The numbers a page shows: tokens of the budget, characters of every part, the rows in and out."""
    page = response.content.decode()
    budget = re.search(r'<h2 id="budget">([\d,]+) of ([\d,]+) tokens', page)
    assert budget is not None
    parts = re.findall(r'layers__figure number">([\d,]+) <', page)
    inside = re.search(r"In the block: (\d+) row", page)
    reasons = re.findall(
        r"<dt>([^<]+)</dt><dd>(\d+)</dd>", page.partition('id="outside"')[2].partition("</dl>")[0]
    )
    return (
        tuple(int(number.replace(",", "")) for number in (*budget.groups(), *parts)),
        int(inside[1]) if inside else None,
        {html.unescape(reason): int(number) for reason, number in reasons},
    )


def figures_of(compiled: CompiledContext) -> tuple[Any, ...]:
    """The same, from the compiler's own result."""
    layers = [sum(row.characters for row in compiled.layer(layer)) for layer in Layer]
    reasons: dict[str, int] = {}
    for row in compiled.omitted:
        label = row.reason.label
        reasons[label[0].upper() + label[1:]] = reasons.get(label[0].upper() + label[1:], 0) + 1
    parts = (compiled.characters - sum(layers), *layers)
    return (compiled.tokens, compiled.policy.max_tokens, *parts), len(compiled.included), reasons


def test_the_numbers_are_the_compilers(rows: Team, owner: Client) -> None:
    compiled = compile_context(rows.project, "Ana")
    shown = figures(owner.get(f"{CONTEXT}?agent=Ana"))
    assert shown == figures_of(compiled)
    assert shown[2] == {
        "Retired": 1, "Imported and not yet approved": 1, "This type is never compiled": 2,
        "Belongs to another agent": 1, "Importance is not high": 1,
    }  # fmt: skip


def test_the_parts_of_the_block_add_up(rows: Team, owner: Client) -> None:
    (_, _, *parts), _, _ = figures(owner.get(f"{CONTEXT}?agent=Ana"))
    assert sum(parts) == len(compile_context(rows.project, "Ana").text or "")


def test_every_row_left_out_is_named_with_its_reason_in_plain_words(rows: Team, owner: Client) -> None:
    page = owner.get(f"{CONTEXT}?agent=Ana").content.decode().partition('id="outside"')[2]
    left_out = re.findall(
        r'href="[^"]+">((?:memory|decision|session) \d+)</a></th>.*?Why it is out"><span>([^<]+)',
        page,
        re.DOTALL,
    )
    compiled = compile_context(rows.project, "Ana")
    assert [(name, reason.lower()) for name, reason in left_out] == [
        (f"{row.kind} {row.id}", row.reason.label) for row in compiled.omitted
    ]


def test_a_child_run_gets_decisions_only(rows: Team, owner: Client) -> None:
    response = owner.get(f"{CONTEXT}?agent=/child")
    assert block(response) == compile_decisions(rows.project).text
    assert f"{CONTEXT}/rows" not in response.content.decode().partition('id="outside"')[2]


def test_an_agent_nobody_has_named_gets_what_any_agent_would(rows: Team, owner: Client) -> None:
    before = Project.objects.get(pk=rows.project.pk).agents.count()
    assert block(owner.get(f"{CONTEXT}?agent=/unnamed")) == compile_context(rows.project, "Nobody yet").text
    assert Project.objects.get(pk=rows.project.pk).agents.count() == before


def test_nothing_eligible_and_failed_read_differently(team: Team, owner: Client) -> None:
    assert b"Nothing is eligible" in owner.get(CONTEXT).content
    assert b"no active, approved architectural" in owner.get(f"{CONTEXT}?agent=/child").content
    a_decision(team, content="x" * 4000)
    policy = {"max_tokens": 200, "on_overflow": "fail"}
    update_project(project_id=team.project.pk, actor=team.owner, policy=policy, now=NOW)
    page = owner.get(CONTEXT).content.decode()
    assert "This context cannot be compiled" in page
    assert "mandatory_context_exceeds_budget" in page
    assert 'id="block"' not in page


def test_over_the_budget_says_so(team: Team, owner: Client) -> None:
    a_decision(team, content="x" * 4000)
    update_project(project_id=team.project.pk, actor=team.owner, policy={"max_tokens": 200}, now=NOW)
    page = owner.get(CONTEXT).content.decode()
    assert "mandatory, so they went in whole" in page
    assert "chart__limit" in page


@pytest.mark.parametrize(
    "query", ["agent=Nobody", "trust=lax", "max_items=-1", "max_tokens=0", "max_items=x"]
)
def test_what_cannot_be_compiled_says_so(rows: Team, owner: Client, query: str) -> None:
    response = owner.get(f"{CONTEXT}?{query}")
    assert response.status_code == 200
    assert b"This cannot be compiled" in response.content
    assert b'id="block"' not in response.content


def test_htmx_gets_the_results_alone(rows: Team, owner: Client) -> None:
    for address in (CONTEXT, f"{CONTEXT}/rows"):
        page = owner.get(address, headers=HTMX).content
        assert page.strip().startswith(b'<div class="stack" id="results">')


def test_looking_writes_no_receipt(rows: Team, owner: Client) -> None:
    for address in (CONTEXT, f"{CONTEXT}?agent=/child", f"{CONTEXT}/rows"):
        owner.get(address)
    assert ContextReceipt.objects.count() == 0


@pytest.mark.parametrize("address", [CONTEXT, f"{CONTEXT}/rows"])
def test_one_row_or_three_make_the_same_statements(team: Team, owner: Client, address: str) -> None:
    counts = []
    for names in (("a",), ("b", "c")):
        for name in names:
            a_decision(team, name)
            a_memory(team, name, type="core_context")
            a_memory(team, name, type="update")
            build(start_run(team, "Ana").run_id)
        counts.append(statements(owner, f"{address}?agent=Ana"))
    assert counts[0] == counts[1]


# Every row, one by one


def names_of(page: str) -> list[str]:
    """The rows of a page, in their order."""
    return re.findall(r'">((?:memory|decision|session) \d+)</a></th>', page)


def test_every_row_is_explained_once(rows: Team, owner: Client) -> None:
    page = owner.get(f"{CONTEXT}/rows?agent=Ana").content.decode()
    names = names_of(page)
    compiled = compile_context(rows.project, "Ana")
    assert sorted(names) == sorted(
        [f"{r.kind} {r.id}" for r in compiled.included] + [f"{r.kind} {r.id}" for r in compiled.omitted]
    )
    assert page.count("badge--included") == len(compiled.included)


def test_pages_of_rows_go_on_where_the_last_one_ended(
    rows: Team, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also among rows of one moment, and whatever comes in meanwhile."""
    whole = names_of(owner.get(f"{CONTEXT}/rows?agent=Ana").content.decode())
    monkeypatch.setattr(views, "ROWS", 4)
    found, address = [], "?agent=Ana"
    for _ in range(10):
        page = owner.get(f"{CONTEXT}/rows{address}").content.decode()
        found += names_of(page)
        a_decision(rows, f"Newer {len(found)}")
        onwards = re.search(r'rel="next" href="([^"]+)"', page)
        if onwards is None:
            break
        address = html.unescape(onwards[1])
    assert found == whole
    assert len(found) > 8


@pytest.mark.parametrize("after", ["", "x", "memory-1", "entry-1-1", "memory-99999999999999999-1"])
def test_a_place_that_is_none_is_the_beginning(rows: Team, owner: Client, after: str) -> None:
    page = owner.get(f"{CONTEXT}/rows?agent=Ana&after={after}").content.decode()
    assert names_of(page) == names_of(owner.get(f"{CONTEXT}/rows?agent=Ana").content.decode())


def test_the_context_names_the_first_rows_left_out_and_counts_all(
    team: Team, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "LISTED", 2)
    for number in range(5):
        a_memory(team, f"{number}", type="update")
    page = owner.get(f"{CONTEXT}?agent=Ana").content.decode().partition('id="outside"')[2]
    assert "The first 2 of 5 rows" in page
    assert page.count('data-label="Why it is out"') == 2
    assert "<dt>This type is never compiled</dt><dd>5</dd>" in page


# Receipts


def test_a_receipt_shows_the_stored_bytes(rows: Team, owner: Client) -> None:
    receipt = build(start_run(rows, "Ana").run_id)
    assert receipt.snapshot is not None
    a_decision(rows, "Later")
    response = owner.get(f"/projects/lighthouse/receipts/{receipt.pk}")
    assert block(response) == ContextReceipt.objects.get(pk=receipt.pk).snapshot.block  # type: ignore[union-attr]
    assert "Later" not in block(response)
    assert "none of them changed since" in response.content.decode()


def test_a_receipt_says_what_became_of_its_rows(rows: Team, owner: Client) -> None:
    receipt = build(start_run(rows, "Ana").run_id)
    decision = rows.project.decisions.get(title="Told")
    archive_decision(
        project_id=rows.project.pk, actor=rows.owner, decision_id=decision.pk, reason="Old.", revision=1, now=NOW
    )  # fmt: skip
    page = owner.get(f"/projects/lighthouse/receipts/{receipt.pk}").content.decode()
    assert "1 of them changed since" in page
    assert 'badge badge--retired">archived' in page


def test_an_earlier_receipt_is_found_from_the_context(rows: Team, owner: Client) -> None:
    receipt = build(start_run(rows, "Ana").run_id)
    child = build(start_run(rows, "Ana", parent=Run.objects.get()).run_id)
    mine, theirs = (f"/projects/lighthouse/receipts/{found.pk}" for found in (receipt, child))
    for agent, there, absent in (("Ana", mine, theirs), ("/child", theirs, mine)):
        page = owner.get(f"{CONTEXT}?agent={agent}").content.decode()
        assert f'href="{there}"' in page
        assert f'href="{absent}"' not in page
    assert "has been told anything yet" in owner.get(f"{CONTEXT}?agent=Ben").content.decode()


def test_receipts_of_nothing_and_of_a_failure_say_which(team: Team, owner: Client) -> None:
    run = start_run(team, "Ana")
    nothing = build(run.run_id)
    a_decision(team, content="x" * 4000)
    policy = {"max_tokens": 200, "on_overflow": "fail"}
    update_project(project_id=team.project.pk, actor=team.owner, policy=policy, now=NOW)
    failed = build(run.run_id)
    pages = [owner.get(f"/projects/lighthouse/receipts/{r.pk}").content.decode() for r in (nothing, failed)]
    assert ["Nothing was eligible" in page for page in pages] == [True, False]
    assert ["mandatory_context_exceeds_budget" in page for page in pages] == [False, True]


def test_every_reason_has_words() -> None:
    assert [
        reason for reason in OmitReason if reason.label.casefold() == reason.value and "_" in reason.value
    ] == []


@pytest.mark.parametrize("address", ["context", "context/rows", "receipts/{receipt}"])
def test_every_member_reads_and_nobody_posts(rows: Team, browsers: Browsers, address: str) -> None:
    receipt = build(start_run(rows, "Ana").run_id)
    there = f"/projects/lighthouse/{address.format(receipt=receipt.pk)}"
    assert answers(browsers, there) == MEMBERS
    assert answers(browsers, there, {}) == [405] * 6 + [302]


def test_a_receipt_of_another_project_is_not_found(rows: Team, owner: Client) -> None:
    assert owner.get("/projects/lighthouse/receipts/99999").status_code == 404
