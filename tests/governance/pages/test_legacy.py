"""The legacy workbench: imported rows by file and agent, singly and together, with how far it is (SPEC 6 and 9)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from memory.models import AgentMemory, Decision, ImportedRecord
from tests.conftest import Team
from tests.factories import APPROVED, LEGACY, DecisionFactory, MemoryFactory, agent_of
from tests.governance.pages.conftest import HTMX, Browsers, statements

pytestmark = pytest.mark.django_db

LEGACY_PAGE = "/projects/lighthouse/legacy"
HISTORY = ".squad/agents/Ana/history.md"


def from_file(row: AgentMemory | Decision, path: str, line: int = 1) -> Any:
    """The row as one that was read from a file."""
    kind = "memory" if isinstance(row, AgentMemory) else "decision"
    ImportedRecord.objects.create(
        project=row.project, digest=f"{row.pk:064}"[:64] if kind == "memory" else f"d{row.pk:063}", path=path, line=line,
        place=f"{path}#{row.pk}", **{kind: row},
    )  # fmt: skip
    return row


def send(client: Client, htmx: bool = False, **data: Any) -> Any:
    return client.post(f"{LEGACY_PAGE}/bulk", data, headers=HTMX if htmx else {})


@pytest.fixture
def imported(team: Team) -> dict[str, Any]:
    """Two files, two agents: what waits and what is done."""
    project = team.project
    ben = agent_of(project, "Ben")
    done = {**LEGACY, **APPROVED}
    return {
        "memories": [from_file(MemoryFactory(project=project, content=f"No {n}.", **LEGACY), HISTORY, n) for n in (1, 2)],
        "done": from_file(MemoryFactory(project=project, content="Done.", **done), HISTORY, 3),
        "decision": from_file(DecisionFactory(project=project, agent=ben, type="technical", **LEGACY), ".squad/decisions.md"),
    }  # fmt: skip


def table_of(response: Any) -> list[tuple[str, ...]]:
    rows = re.findall(r"<tr>(.*?)</tr>", response.content.decode().partition("<tbody>")[2], re.DOTALL)
    return [
        tuple(
            re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)
        )
        for row in rows
    ]


def test_groups_by_file_and_agent_show_how_far_they_are(imported: dict[str, Any], owner: Client) -> None:
    response = owner.get(LEGACY_PAGE)
    assert table_of(response) == [
        (HISTORY, "memory", "Ana", "2", "1 of 3"),
        (".squad/decisions.md", "decision", "Ben", "1", "0 of 1"),
    ]
    assert '<progress id="all-done" max="4" value="1"></progress>' in response.content.decode()
    assert "3 of 4 wait" in response.content.decode()


def test_a_group_shows_its_rows_and_leads_to_the_next(imported: dict[str, Any], owner: Client) -> None:
    address = re.search(r'href="(\?kind=memory[^"]+)"', owner.get(LEGACY_PAGE).content.decode())
    assert address is not None
    body = owner.get(LEGACY_PAGE + address[1].replace("&amp;", "&")).content.decode()
    assert re.findall(r'id="memory-(\d+)"', body) == [str(row.pk) for row in imported["memories"]]
    assert "Next: .squad/decisions.md, Ben" in body


def test_rows_of_no_file_are_a_group_of_their_own(
    team: Team, owner: Client, imported: dict[str, Any]
) -> None:
    row = MemoryFactory(project=team.project, **LEGACY)
    body = owner.get(f"{LEGACY_PAGE}?kind=memory&path=&agent={row.agent_id}").content.decode()
    assert re.findall(r'id="memory-(\d+)"', body) == [str(row.pk)]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("?kind=song", b"There is no such group"),
        ("?kind=memory&agent=x", b"There is no such group"),
        ("?kind=memory&path=no-such-file", b"This group is done"),
        ("?kind=memory&q=no-such-word", b"Nothing matches"),
    ],
)
def test_a_group_that_is_empty_says_what_to_do_next(
    imported: dict[str, Any], owner: Client, query: str, says: bytes
) -> None:
    assert says in owner.get(LEGACY_PAGE + query).content


def test_where_nothing_was_imported_it_says_how(owner: Client) -> None:
    assert b"Nothing was imported" in owner.get(LEGACY_PAGE).content


def test_many_are_given_a_type_and_approved(imported: dict[str, Any], owner: Client) -> None:
    rows = imported["memories"]
    response = send(
        owner, htmx=True, item=[f"memory:{row.pk}:1" for row in rows], do="approve", type="pattern", importance="high",
        tags="tides", back=f"{LEGACY_PAGE}?kind=memory",
    )  # fmt: skip
    body = response.content.decode()
    assert response.status_code == 200
    assert "2 approved." in body
    assert "1 of 4 wait" in body
    assert re.search(r'id="count-legacy" hx-swap-oob="true">1<', body)
    for row in rows:
        row.refresh_from_db()
        assert (row.trust_state, row.approved_by, row.type, row.importance, row.tags, row.source_kind) == (
            "approved", "owner", "pattern", "high", ["tides"], "legacy",
        )  # fmt: skip


def test_of_fifty_imported_rows_three_that_changed_stay(team: Team, owner: Client) -> None:
    rows = [MemoryFactory(project=team.project, content=f"No {n}.", **LEGACY) for n in range(50)]
    changed = [rows[n].pk for n in (0, 17, 49)]
    AgentMemory.objects.filter(pk__in=changed).update(revision=2, content="Changed.")
    response = send(
        owner,
        htmx=True,
        item=[f"memory:{row.pk}:1" for row in rows],
        do="approve",
        back=f"{LEGACY_PAGE}?kind=memory",
    )
    body = response.content.decode()
    assert response.status_code == 409
    assert "47 approved; 3 were not, for the reason beside each." in body
    assert body.count("The text changed since you read it, so nothing was done.") == 3
    assert (
        list(AgentMemory.objects.filter(trust_state="legacy").order_by("pk").values_list("pk", flat=True))
        == changed
    )


def test_decisions_and_memories_are_refused_together(imported: dict[str, Any], owner: Client) -> None:
    items = [f"memory:{imported['memories'][0].pk}:1", f"decision:{imported['decision'].pk}:1"]
    response = send(owner, item=items, do="refuse", reason="Out of date.")
    assert response.status_code == 302
    imported["memories"][0].refresh_from_db()
    imported["decision"].refresh_from_db()
    assert imported["memories"][0].retire_reason == "Out of date."
    assert imported["decision"].status == "archived"


def test_a_type_that_cannot_be_leaves_every_row_as_it_is(imported: dict[str, Any], owner: Client) -> None:
    response = send(
        owner, item=[f"decision:{imported['decision'].pk}:1"], do="approve", type="learning",
        back=f"{LEGACY_PAGE}?kind=decision",
    )  # fmt: skip
    assert response.status_code == 409
    assert "0 approved; 1 was not" in response.content.decode()
    assert Decision.objects.get().trust_state == "legacy"


def test_an_entry_is_no_imported_row(imported: dict[str, Any], owner: Client) -> None:
    response = send(owner, item=["entry:1:1"], do="approve")
    assert response.status_code == 409
    assert "0 approved; 1 was not" in response.content.decode()


def test_a_reader_who_may_not_decide_gets_no_forms(imported: dict[str, Any], browsers: Browsers) -> None:
    for client in (browsers.viewer, browsers.superuser):
        body = client.get(f"{LEGACY_PAGE}?kind=memory").content.decode()
        assert 'id="bulk"' not in body
        assert 'name="item"' not in body


def test_the_number_of_statements_does_not_follow_the_rows(team: Team, owner: Client) -> None:
    from_file(MemoryFactory(project=team.project, **LEGACY), "a.md")
    from_file(DecisionFactory(project=team.project, **LEGACY), "a.md")
    addresses = (LEGACY_PAGE, f"{LEGACY_PAGE}?kind=memory", f"{LEGACY_PAGE}?kind=decision")
    first = [statements(owner, address) for address in addresses]
    for number in range(2):
        ben = agent_of(team.project, f"Ben {number}")
        from_file(MemoryFactory(project=team.project, agent=ben, **LEGACY), f"{number}.md")
        from_file(DecisionFactory(project=team.project, agent=ben, **LEGACY), f"{number}.md")
    assert [statements(owner, address) for address in addresses] == first == [7, 9, 9]
