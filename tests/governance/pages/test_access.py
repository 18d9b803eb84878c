"""Who gets an answer from the deciding pages: reader × route → status, and what a GET may not do (SPEC 5 and 9)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from memory.models import LedgerEvent, Project
from tests.conftest import Team
from tests.factories import LEGACY, DecisionFactory, MemoryFactory
from tests.governance.pages.conftest import Browsers, a_decision, a_memory, an_entry

pytestmark = pytest.mark.django_db

READERS = ("owner", "contributor", "viewer", "orchestrator", "stranger", "superuser", "anonymous")
EVERYBODY_IN = (200, 200, 200, 200, 404, 200, 302)
"""A superuser looks at everything and decides nothing; to a stranger the project does not exist."""
DECIDERS = (200, 403, 403, 403, 404, 403, 302)
DECIDED = (302, 403, 403, 403, 404, 403, 302)
WRITERS = (200, 200, 403, 403, 404, 403, 302)
WROTE = (302, 302, 403, 403, 404, 403, 302)

PAGES = {
    "/projects/lighthouse": EVERYBODY_IN,
    "/projects/lighthouse/inbox": EVERYBODY_IN,
    "/projects/lighthouse/inbox?status=merged": EVERYBODY_IN,
    "/projects/lighthouse/inbox?status=rejected": EVERYBODY_IN,
    "/projects/lighthouse/inbox/{entry}": EVERYBODY_IN,
    "/projects/lighthouse/inbox/{entry}/impact": DECIDERS,
    "/projects/lighthouse/legacy": EVERYBODY_IN,
    "/projects/lighthouse/legacy?kind=memory": EVERYBODY_IN,
    "/projects/lighthouse/memory": EVERYBODY_IN,
    "/projects/lighthouse/memory?view=requests": EVERYBODY_IN,
    "/projects/lighthouse/memory?view=retired": EVERYBODY_IN,
    "/projects/lighthouse/memory/{memory}": EVERYBODY_IN,
    "/projects/lighthouse/memory/{memory}/edit": WRITERS,
    "/projects/lighthouse/decisions": EVERYBODY_IN,
    "/projects/lighthouse/decisions/new": DECIDERS,
    "/projects/lighthouse/decisions/{decision}": EVERYBODY_IN,
    "/projects/lighthouse/decisions/{decision}/edit": DECIDERS,
    "/projects/lighthouse/decisions/{decision}/supersede": DECIDERS,
    "/": (200, 200, 200, 200, 200, 200, 302),
    "/account/password": (200, 200, 200, 200, 200, 200, 302),
    "/account/login": (302, 302, 302, 302, 302, 302, 200),
}

DECISION = {"agent_name": "Ana", "type": "scope", "title": "Two", "content": "Two of them.", "revision": "1"}
MEMORY = {"type": "pattern", "importance": "low", "content": "Changed.", "revision": "1"}
FORMS: dict[str, tuple[tuple[int, ...], dict[str, str]]] = {
    "/projects/lighthouse/inbox/{entry}/merge": (DECIDED, {"revision": "1"}),
    "/projects/lighthouse/inbox/{entry}/reject": (DECIDED, {"revision": "1", "reason": "No."}),
    "/projects/lighthouse/inbox/bulk": (DECIDED, {"item": "entry:{entry}:1", "do": "merge"}),
    "/projects/lighthouse/legacy/bulk": (DECIDED, {"item": "memory:{legacy}:1", "do": "approve"}),
    "/projects/lighthouse/memory/bulk": (DECIDED, {"item": "memory:{memory}:1", "do": "approve"}),
    "/projects/lighthouse/memory/{memory}/approve": (DECIDED, {"revision": "1"}),
    "/projects/lighthouse/memory/{memory}/retire": (DECIDED, {"revision": "1", "reason": "No."}),
    "/projects/lighthouse/memory/{memory}/edit": (WROTE, MEMORY),
    "/projects/lighthouse/decisions/new": (DECIDED, DECISION),
    "/projects/lighthouse/decisions/{imported}/approve": (DECIDED, {"revision": "1"}),
    "/projects/lighthouse/decisions/{decision}/archive": (DECIDED, {"revision": "1", "reason": "No."}),
    "/projects/lighthouse/decisions/{decision}/edit": (DECIDED, DECISION),
    "/projects/lighthouse/decisions/{decision}/supersede": (
        DECIDED,
        {"superseded_by": "{successor}", "revision": "1", "reason": "Newer."},
    ),
}


@pytest.fixture
def rows(team: Team) -> dict[str, int]:
    return {
        "entry": an_entry(team).pk,
        "memory": a_memory(team).pk,
        "decision": a_decision(team).pk,
        "successor": a_decision(team, "Two databases").pk,
        "legacy": MemoryFactory(project=team.project, **LEGACY).pk,
        "imported": DecisionFactory(project=team.project, **LEGACY).pk,
    }


def clients(browsers: Browsers) -> list[Client]:
    return [getattr(browsers, name) for name in READERS]


@pytest.mark.parametrize("address", PAGES)
def test_a_page_answers_each_reader_by_role(browsers: Browsers, rows: dict[str, int], address: str) -> None:
    found = tuple(client.get(address.format(**rows)).status_code for client in clients(browsers))
    assert found == PAGES[address]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("address", FORMS)
def test_a_form_answers_each_reader_by_role(
    browsers: Browsers, rows: dict[str, int], address: str, reader: str
) -> None:
    expected, data = FORMS[address]
    before = LedgerEvent.objects.count()
    response = getattr(browsers, reader).post(
        address.format(**rows), {name: value.format(**rows) for name, value in data.items()}
    )
    allowed = response.status_code == 302 and reader != "anonymous"
    assert response.status_code == expected[READERS.index(reader)]
    assert (LedgerEvent.objects.count() > before) is allowed


@pytest.mark.parametrize("address", FORMS)
def test_a_form_does_not_send_over_get(browsers: Browsers, rows: dict[str, int], address: str) -> None:
    status = browsers.owner.get(address.format(**rows)).status_code
    assert status == (200 if address.endswith(("/new", "/edit", "/supersede")) else 405)


@pytest.mark.parametrize("address", FORMS)
def test_a_form_without_its_token_is_refused(
    team: Team, browsers: Browsers, rows: dict[str, int], address: str
) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = browsers.owner.cookies
    assert strict.post(address.format(**rows), FORMS[address][1]).status_code == 403


@pytest.mark.parametrize("address", PAGES)
def test_reading_writes_nothing(team: Team, browsers: Browsers, rows: dict[str, int], address: str) -> None:
    def stored() -> tuple[Any, ...]:
        return Project.objects.values_list("epoch", "ledger_number").get(pk=team.project.pk)

    before = stored()
    browsers.owner.get(address.format(**rows))
    assert stored() == before


@pytest.mark.parametrize("address", [a for a in PAGES if "{" in a])
def test_a_row_that_is_not_there_reads_like_a_hidden_one(browsers: Browsers, address: str) -> None:
    missing = dict.fromkeys(("entry", "memory", "decision"), 99_999)
    absent = browsers.owner.get(address.format(**missing))
    hidden = browsers.stranger.get(address.format(**missing))
    assert (absent.status_code, hidden.status_code) == (404, 404)
    assert b"There is nothing here" in absent.content
    assert b"There is nothing here" in hidden.content


def test_a_project_is_found_by_its_uuid_too(team: Team, browsers: Browsers) -> None:
    assert browsers.viewer.get(f"/projects/{team.project.pk}/inbox").status_code == 200


def test_a_superuser_decides_only_with_a_grant(browsers: Browsers, rows: dict[str, int]) -> None:
    """SPEC 5: a superuser has no power to approve."""
    answers = [
        browsers.superuser.post(address.format(**rows), data).status_code
        for address, (_, data) in FORMS.items()
    ]
    assert answers == [403] * len(FORMS)


def test_a_refusal_names_its_code(browsers: Browsers, rows: dict[str, int]) -> None:
    response = browsers.viewer.post(f"/projects/lighthouse/inbox/{rows['entry']}/merge", {"revision": 1})
    assert b"<code>decider_required</code>" in response.content


# Every route


def routes(resolver: URLResolver, prefix: str = "") -> list[tuple[str, URLPattern]]:
    found = []
    for pattern in resolver.url_patterns:
        path = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            found += routes(pattern, path)
        else:
            found.append((path, pattern))
    return found


def test_every_page_carries_its_policy() -> None:
    pages = [
        (path, route) for path, route in routes(get_resolver()) if not path.startswith(("api/", "admin/"))
    ]
    bare = [path for path, route in pages if not hasattr(route.callback, "policy")]
    assert len(pages) > 40
    assert bare == []


def test_every_deciding_route_stands_in_the_tables(rows: dict[str, int]) -> None:
    known = {address.partition("?")[0].format(**rows) for address in (*PAGES, *FORMS)}
    mine = ("inbox", "legacy", "memory", "decisions")
    described = {
        path
        for path, route in routes(get_resolver())
        if path.startswith("projects/") and path.split("/")[2:3] and path.split("/")[2] in mine
    }
    reached = {get_resolver().resolve(address).route for address in known}
    assert described - reached == set()


def test_the_readers_are_all_there_are(browsers: Browsers) -> None:
    assert set(READERS) == set(asdict(browsers))
