"""Decisions: the ledger by status, one with its chain and past, and everything that may be done with it (SPEC 6 and 9)."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from django.test import Client

from governance.deciding.decisions import archive_decision, edit_decision, supersede_decision
from memory.models import Decision
from tests.conftest import NOW, Team, start_run
from tests.factories import LEGACY, AgentFactory, DecisionFactory
from tests.governance.pages.conftest import HTMX, Browsers, a_decision, statements

pytestmark = pytest.mark.django_db

DECISIONS = "/projects/lighthouse/decisions"
TYPED: dict[str, Any] = {
    "agent_name": "Ana",
    "type": "scope",
    "title": "Two lamps",
    "content": "One spare.",
    "rationale": "",
    "tags": "a",
}


def send(client: Client, address: str, *, htmx: bool = False, **data: Any) -> Any:
    return client.post(f"{DECISIONS}/{address}", data, headers=HTMX if htmx else {})


def shown(response: Any) -> list[int]:
    return [int(pk) for pk in re.findall(r'id="decision-(\d+)"', response.content.decode())]


def change_it(team: Team, decision: Decision, content: str) -> None:
    edit_decision(
        project_id=team.project.pk, actor=team.owner, decision_id=decision.pk, revision=decision.revision,
        content=content, now=NOW,
    )  # fmt: skip


def supersede(team: Team, old: Decision, new: Decision) -> None:
    supersede_decision(
        project_id=team.project.pk,
        actor=team.owner,
        decision_id=old.pk,
        superseded_by=new.pk,
        reason="Newer.",
        now=NOW,
    )


# The list


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["legacy", "second", "first"]),
        ("?status=superseded", ["old"]),
        ("?status=archived", ["away"]),
        ("?status=all", ["legacy", "away", "old", "second", "first"]),
        ("?type=process", ["second"]),
        ("?trust=legacy", ["legacy"]),
        ("?agent={ben}", ["second"]),
        ("?q=FIR", ["first"]),
        ("?q=because", ["first"]),
    ],
)
def test_filters_narrow_the_list(team: Team, owner: Client, query: str, expected: list[str]) -> None:
    first = a_decision(team, "first", rationale="Because of it.")
    a_decision(team, "second", type="process", agent_name="Ben")
    supersede(team, a_decision(team, "old"), first)
    archive_decision(
        project_id=team.project.pk,
        actor=team.owner,
        decision_id=a_decision(team, "away").pk,
        reason="Old.",
        now=NOW,
    )
    DecisionFactory(project=team.project, title="legacy", **LEGACY)
    ben = Decision.objects.get(title="second").agent_id
    titles = dict(Decision.objects.values_list("pk", "title"))
    assert [titles[pk] for pk in shown(owner.get(DECISIONS + query.format(ben=ben)))] == expected


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("", b"No active decision yet"),
        ("?status=archived", b"No decision is archived"),
        ("?q=nothing", b"Nothing matches"),
        ("?status=lost", b"These filters cannot be"),
    ],
)
def test_an_empty_list_says_what_to_do_next(owner: Client, query: str, says: bytes) -> None:
    assert says in owner.get(DECISIONS + query).content


@pytest.mark.parametrize("status", ["active", "superseded", "all"])
def test_the_number_of_statements_does_not_follow_the_rows(team: Team, owner: Client, status: str) -> None:
    successor = a_decision(team, "successor")
    counts = []
    for names in (["a"], ["b", "c"]):
        for name in names:
            run = start_run(team, f"Agent {name}")
            row = DecisionFactory(
                project=team.project, source_kind="run", source_run_id=run.run_id, source_identity=f"run:{run.run_id}",
                agent=AgentFactory(project=team.project, name=f"By {name}"),
            )  # fmt: skip
            if status == "superseded":
                supersede(team, row, successor)
        counts.append(statements(owner, f"{DECISIONS}?status={status}"))
    assert counts == [8, 8]


# One decision


def test_the_chain_names_every_decision_before_and_after(team: Team, owner: Client) -> None:
    chain = [a_decision(team, title) for title in ("oil", "gas", "arc", "bulb")]
    for old, new in pairwise(chain):
        supersede(team, old, new)
    for row in chain:
        body = owner.get(f"{DECISIONS}/{row.pk}").content.decode()
        listed = body.partition('id="chain"')[2].partition("</ol>")[0]
        assert re.findall(r">(oil|gas|arc|bulb)<", listed) == ["oil", "gas", "arc", "bulb"]
        assert f"<strong>{row.title}</strong></li>" in listed


def test_a_page_of_one_decision_costs_the_same_however_long_its_chain(team: Team, owner: Client) -> None:
    chain = [a_decision(team, str(n)) for n in range(5)]
    supersede(team, chain[0], chain[1])
    short = statements(owner, f"{DECISIONS}/{chain[1].pk}")
    for old, new in pairwise(chain[1:]):
        supersede(team, old, new)
    assert statements(owner, f"{DECISIONS}/{chain[4].pk}") == short


def test_a_history_shows_what_each_step_changed(team: Team, owner: Client) -> None:
    decision = a_decision(team, "One lamp", content="One.")
    change_it(team, decision, "Two.")
    body = owner.get(f"{DECISIONS}/{decision.pk}").content.decode()
    assert re.findall(r"<strong>(decision\.\w+)</strong> by", body) == ["decision.edit", "decision.create"]
    assert re.search(r'diff--removed">.*One\.</span>', body)
    assert re.search(r'diff--added">.*Two\.</span>', body)


def test_a_new_decision_is_active_and_approved_by_its_writer(team: Team, owner: Client) -> None:
    response = send(owner, "new", **TYPED)
    made = Decision.objects.get()
    assert (response.status_code, response["Location"]) == (302, f"{DECISIONS}/{made.pk}")
    assert (made.title, made.status, made.trust_state, made.approved_by, made.tags) == (
        "Two lamps", "active", "approved", "owner", ["a"],
    )  # fmt: skip


@pytest.mark.parametrize("address", ["new", "{row}/edit"])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"title": ""}, "This field is required."),
        ({"title": "two\nlines"}, "Not saved."),
        ({"content": " "}, "This may not be blank."),
        ({"rationale": "x" * 65_537}, "At most 65536 characters"),
        ({"type": "learning"}, "Select a valid choice."),
        ({"tags": ",".join(f"t{n}" for n in range(21))}, "At most 20 tags"),
    ],
)
def test_bad_input_is_shown_beside_the_field(
    team: Team, owner: Client, address: str, wrong: dict[str, Any], says: str
) -> None:
    row = a_decision(team)
    response = send(owner, address.format(row=row.pk), **{**TYPED, "revision": "1", **wrong})
    assert response.status_code == 422
    assert says in response.content.decode()
    assert list(Decision.objects.values_list("title", "revision")) == [("One database", 1)]


def test_an_edit_of_a_text_that_changed_keeps_what_was_typed(team: Team, owner: Client) -> None:
    decision = a_decision(team)
    change_it(team, decision, "Theirs.")
    response = send(owner, f"{decision.pk}/edit", **TYPED | {"content": "Mine."}, revision=1)
    body = response.content.decode()
    assert response.status_code == 409
    assert "Mine.</textarea>" in body
    assert re.search(r'diff--added">.*Theirs\.</span>', body)
    assert send(owner, f"{decision.pk}/edit", **TYPED | {"content": "Mine."}, revision=2).status_code == 302
    assert Decision.objects.get().content == "Mine."


@pytest.mark.parametrize("htmx", [True, False])
@pytest.mark.parametrize("verb", ["approve", "archive"])
def test_a_text_that_changed_is_shown_again_with_what_changed(
    team: Team, owner: Client, verb: str, htmx: bool
) -> None:
    decision = a_decision(team)
    change_it(team, decision, "Two of them.")
    response = send(
        owner, f"{decision.pk}/{verb}", htmx=htmx, revision=1, reason="It is not so.", type="scope"
    )
    body = response.content.decode()
    assert response.status_code == 409
    assert re.search(r'diff--added">.*Two of them\.</span>', body)
    assert "It is not so.</textarea>" in body
    assert 'name="revision" value="2"' in body
    assert Decision.objects.get().status == "active"


def test_an_imported_decision_gets_its_type_while_it_is_approved(team: Team, owner: Client) -> None:
    decision = DecisionFactory(project=team.project, type="technical", **LEGACY)
    response = send(owner, f"{decision.pk}/approve", htmx=True, revision=1, type="scope", tags="")
    decision.refresh_from_db()
    assert response.status_code == 200
    assert (decision.type, decision.trust_state, decision.approved_by) == ("scope", "approved", "owner")
    assert f"Approved decision {decision.pk}." in response.content.decode()


# Superseding


def test_the_picker_offers_active_decisions_and_searches_them(team: Team, owner: Client) -> None:
    old, bulb, oil = (a_decision(team, title) for title in ("gas", "electric bulb", "oil"))
    archive_decision(project_id=team.project.pk, actor=team.owner, decision_id=oil.pk, reason="Old.", now=NOW)

    def offered(query: str, **headers: str) -> list[int]:
        body = owner.get(f"{DECISIONS}/{old.pk}/supersede{query}", headers=headers).content.decode()
        return [int(pk) for pk in re.findall(r'name="superseded_by" value="(\d+)"', body)]

    assert offered("") == [bulb.pk]
    assert offered("?q=ELECTRIC", **HTMX) == [bulb.pk]
    assert offered("?q=candle%00") == []


def test_superseding_leads_to_the_decision_and_names_its_successor(team: Team, owner: Client) -> None:
    old, new = a_decision(team, "gas"), a_decision(team, "bulb")
    response = send(owner, f"{old.pk}/supersede", superseded_by=new.pk, revision=1, reason="Brighter.")
    old.refresh_from_db()
    assert (response.status_code, response["Location"]) == (302, f"{DECISIONS}/{old.pk}")
    assert (old.status, old.superseded_by_id) == ("superseded", new.pk)
    assert f"Decision {old.pk} is superseded by decision {new.pk}. No run had been told it." in (
        owner.get(f"{DECISIONS}/{old.pk}").content.decode()
    )


def test_a_decision_that_changed_is_not_superseded_unseen(team: Team, owner: Client) -> None:
    old, new = a_decision(team, "gas"), a_decision(team, "bulb")
    change_it(team, old, "Gas, but piped.")
    response = send(owner, f"{old.pk}/supersede", superseded_by=new.pk, revision=1, reason="Brighter.")
    body = response.content.decode()
    assert response.status_code == 409
    assert re.search(r'diff--added">.*Gas, but piped\.</span>', body)
    assert f'value="{new.pk}" checked' in body
    assert "Brighter.</textarea>" in body
    assert 'name="revision" value="2"' in body


@pytest.mark.parametrize(
    ("data", "status", "says"),
    [
        ({"reason": "Newer."}, 422, "Choose the decision that takes over."),
        ({"superseded_by": "{new}", "reason": " "}, 422, "Say why."),
        ({"superseded_by": "{old}", "reason": "Newer."}, 422, "A decision cannot supersede itself."),
        ({"superseded_by": "99999", "reason": "Newer."}, 422, "There is no such decision in this project."),
        (
            {"superseded_by": "{away}", "reason": "Newer."},
            409,
            "the decision that should take over is archived",
        ),
    ],
)
def test_what_cannot_take_over_is_named(
    team: Team, owner: Client, data: dict[str, str], status: int, says: str
) -> None:
    old, new, away = (a_decision(team, title) for title in ("gas", "bulb", "oil"))
    archive_decision(
        project_id=team.project.pk, actor=team.owner, decision_id=away.pk, reason="Old.", now=NOW
    )
    rows = {"old": old.pk, "new": new.pk, "away": away.pk}
    filled: dict[str, Any] = {name: value.format(**rows) for name, value in data.items()}
    response = send(owner, f"{old.pk}/supersede", revision=1, **filled)
    assert response.status_code == status
    assert says in response.content.decode()
    assert Decision.objects.get(pk=old.pk).status == "active"


def test_a_reader_who_may_not_decide_gets_no_forms(team: Team, browsers: Browsers) -> None:
    row = a_decision(team)
    for client in (browsers.contributor, browsers.viewer, browsers.superuser):
        for address in (DECISIONS, f"{DECISIONS}/{row.pk}"):
            body = client.get(address).content.decode()
            assert body.count('method="post"') == 1  # to log out
            assert "All in one." in body
