"""Policy: what bounds a context, how it is filled, and what other limits would do before anybody saves them (SPEC 4; SPEC 9, Policy)."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from governance.deciding.projects import create_project
from governance.pages.queues import policy as queue
from memory.compiling.compiler import Limits, compile_context, compile_decisions
from memory.models import LedgerEvent, Project
from tests.conftest import NOW, Team
from tests.governance.pages.asking import MEMBERS, answers, statements
from tests.governance.pages.conftest import HTMX, Browsers, a_decision, a_memory

pytestmark = pytest.mark.django_db

PAGE = "/projects/lighthouse/policy"
FORM = {
    "name": "Lighthouse", "slug": "lighthouse", "max_items": "20", "max_tokens": "8000", "on_overflow": "include",
    "trust": "standard",
}  # fmt: skip


def stored(team: Team) -> dict[str, Any]:
    return dict(Project.objects.filter(pk=team.project.pk).values(*FORM, "epoch", "ledger_number").get())


def number(text: str) -> int:
    return int(text.replace(",", ""))


def cells(page: str) -> list[list[str]]:
    """The rows of the preview, as text."""
    table = page.partition('id="effect"')[2].partition("</table>")[0].partition("<tbody>")[2]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    return [[" ".join(re.sub(r"<[^>]+>", " ", html.unescape(c)).split()) for c in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)] for row in rows]  # fmt: skip


@pytest.fixture
def rows(team: Team) -> Team:
    a_decision(team)
    for name in ("Ana", "Ben"):
        for index in range(3):
            a_memory(team, f"{name} {index}. " + "x" * 400, agent_name=name, importance="high")
    return team


def test_every_member_reads_and_owners_write(team: Team, browsers: Browsers) -> None:
    assert answers(browsers, PAGE) == MEMBERS
    assert answers(browsers, PAGE, FORM) == [302, 403, 403, 403, 404, 403, 302]
    viewer = browsers.viewer.get(PAGE).content.decode()
    assert "An owner can change them." in viewer
    assert 'name="max_tokens"' not in viewer


def test_the_policy_is_saved_and_the_ledger_tells_it(team: Team, owner: Client) -> None:
    form = {**FORM, "max_items": "5", "max_tokens": "900", "on_overflow": "fail", "trust": "strict"}
    assert b"The policy is saved." in owner.post(PAGE, form, follow=True).content
    project = Project.objects.get(pk=team.project.pk)
    assert (project.max_items, project.max_tokens, project.on_overflow, project.trust) == (
        5,
        900,
        "fail",
        "strict",
    )
    event = LedgerEvent.objects.latest("number")
    assert (event.action, event.actor) == ("project.update", "owner")


def test_saving_nothing_new_writes_nothing(team: Team, owner: Client) -> None:
    before = stored(team)
    assert owner.post(PAGE, FORM).status_code == 302
    assert stored(team) == before


def test_a_new_slug_leads_to_the_new_address(team: Team, owner: Client) -> None:
    response: Any = owner.post(PAGE, {**FORM, "slug": "tower"}, follow=True)
    assert response.redirect_chain == [("/projects/tower/policy", 302)]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("max_items", "-1", "greater than or equal to 0"),
        ("max_items", "10001", "less than or equal to 10000"),
        ("max_tokens", "0", "greater than or equal to 1"),
        ("max_tokens", "many", "Enter a whole number."),
        ("trust", "blind", "Select a valid choice"),
        ("on_overflow", "", "This field is required."),
        ("name", " ", "This field is required."),
        ("slug", "Not Kebab", "kebab-case"),
        ("slug", "123e4567-e89b-12d3-a456-426614174000", "may not look like a UUID"),
    ],
)
@pytest.mark.parametrize("way", ["save", "preview"])
def test_what_is_wrong_stands_beside_its_field(
    team: Team, owner: Client, way: str, field: str, value: str, says: str
) -> None:
    before, form = stored(team), {**FORM, field: value}
    response = owner.post(PAGE, form) if way == "save" else owner.get(PAGE, {**form, "preview": "1"})
    assert (response.status_code, says in html.unescape(response.content.decode())) == (422, True)
    assert stored(team) == before


@pytest.mark.parametrize("way", ["save", "preview"])
def test_a_taken_slug_is_said_in_words(team: Team, owner: Client, way: str) -> None:
    create_project(actor=team.stranger, name="Tower", slug="tower", now=NOW)
    form = {**FORM, "slug": "tower"}
    response = owner.post(PAGE, form) if way == "save" else owner.get(PAGE, {**form, "preview": "1"})
    assert response.status_code == 409
    assert b"Nothing was done: a project with this slug exists." in response.content


def test_the_loads_are_the_compilers(rows: Team, owner: Client) -> None:
    page = owner.get(PAGE).content.decode()
    figures = [(number(a), number(b)) for a, b in re.findall(r"([\d,]+) of ([\d,]+) tokens", page)]
    contexts = [compile_context(rows.project, name) for name in ("Ana", "Ben")]
    child = compile_decisions(rows.project)
    assert figures == [(context.tokens, 8000) for context in (*contexts, child)]


def test_a_preview_is_what_the_compiler_would_say_and_saves_nothing(rows: Team, owner: Client) -> None:
    before = stored(rows)
    form = {**FORM, "max_items": "2", "max_tokens": "400", "preview": "1"}
    page = owner.get(PAGE, form).content.decode()
    assert stored(rows) == before
    expected = []
    for name in ("Ana", "Ben"):
        now, then = (compile_context(rows.project, name, limits) for limits in (Limits(), Limits(2, 400)))
        out = sum(1 for row in then.omitted if row.reason in ("item_limit", "token_budget"))
        items = [len(context.included) - 1 for context in (now, then)]
        expected.append(
            [name, f"{now.tokens} of 8,000", f"{then.tokens} of 400", f"{items[0]} of 20", f"{items[1]} of 2", f"{out} row" if out == 1 else f"{out} rows"]
        )  # fmt: skip
    assert cells(page)[:2] == expected
    assert 'value="400"' in page


def test_a_preview_says_what_would_fail(rows: Team, owner: Client) -> None:
    page = owner.get(
        PAGE, {**FORM, "max_tokens": "10", "on_overflow": "fail", "preview": "1"}
    ).content.decode()
    assert page.count(">fails<") == 3
    page = owner.get(PAGE, {**FORM, "max_tokens": "10", "preview": "1"}).content.decode()
    assert page.count(">over budget<") == 3


def test_wider_limits_than_now_can_be_previewed(rows: Team, owner: Client) -> None:
    owner.post(PAGE, {**FORM, "max_items": "1"})
    page = owner.get(PAGE, {**FORM, "max_items": "3", "preview": "1"}).content.decode()
    assert [row[3:5] for row in cells(page)][:2] == [["1 of 1", "3 of 3"]] * 2


def test_who_may_not_save_gets_no_preview(rows: Team, browsers: Browsers) -> None:
    response = browsers.viewer.get(PAGE, {**FORM, "preview": "1", "max_tokens": "10"})
    assert (response.status_code, b'id="effect"' in response.content) == (200, False)


def test_the_agents_that_ran_last_are_looked_at_and_the_others_counted(
    rows: Team, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "AGENTS", 1)
    assert b"1 more agent not looked at." in owner.get(PAGE).content


def test_rows_make_no_statements(team: Team, owner: Client) -> None:
    """Agents do, a few each; what they remember does not."""
    counts = []
    for number_of_rows in (1, 2):
        for index in range(number_of_rows):
            a_decision(team, f"{number_of_rows} {index}")
            a_memory(team, f"{number_of_rows} {index}", importance="high")
        counts.append(statements(owner, PAGE))
    assert counts[0] == counts[1]


def test_htmx_gets_the_results_alone(team: Team, owner: Client) -> None:
    page = owner.get(PAGE, {**FORM, "preview": "1"}, headers=HTMX).content
    assert page.strip().startswith(b'<div class="stack" id="results">')
