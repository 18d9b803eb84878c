"""Memory: what each agent remembers, and what asks to cross to others (SPEC 6 and 9)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from governance.deciding.memories import approve_memory, retire_memory
from memory.compiling.compiler import Limits
from memory.compiling.receipts import build_for_run
from memory.models import AgentMemory, Run
from memory.recording import edit_memory
from tests.conftest import NOW, Team, start_run
from tests.factories import APPROVED, LEGACY, RETIRED, AgentFactory, MemoryFactory
from tests.governance.pages.conftest import HTMX, Browsers, a_memory, statements

pytestmark = pytest.mark.django_db

MEMORY = "/projects/lighthouse/memory"
TYPED: dict[str, Any] = {
    "type": "learning",
    "importance": "medium",
    "content": "The build needs two cores.",
    "tags": "",
}


def send(client: Client, address: str, *, htmx: bool = False, **data: Any) -> Any:
    return client.post(f"{MEMORY}/{address}", data, headers=HTMX if htmx else {})


def shown(response: Any) -> list[int]:
    return [int(pk) for pk in re.findall(r'id="memory-(\d+)"', response.content.decode())]


def change_it(team: Team, memory: AgentMemory, content: str) -> None:
    edit_memory(
        project_id=team.project.pk, actor=team.contributor, memory_id=memory.pk, revision=memory.revision, content=content,
        now=NOW,
    )  # fmt: skip


# The list


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["ben's", "crossing", "legacy", "core", "plain"]),
        ("?view=requests", ["crossing"]),
        ("?view=retired", ["retired"]),
        ("?agent={ben}", ["ben's"]),
        ("?type=core_context", ["core"]),
        ("?importance=low", ["core"]),
        ("?trust=legacy", ["legacy"]),
        ("?trust=approved", ["ben's"]),
        ("?tags=moon,cross-team", ["crossing"]),
        ("?tags=cross", []),
        ("?q=PLA", ["plain"]),
    ],
)
def test_filters_narrow_the_list(team: Team, owner: Client, query: str, expected: list[str]) -> None:
    ben = AgentFactory(project=team.project, name="Ben", key="ben")
    of = {"project": team.project}
    MemoryFactory(**of, content="plain")
    MemoryFactory(**of, content="core", type="core_context", importance="low")
    MemoryFactory(**of, content="legacy", **LEGACY)
    MemoryFactory(**of, content="crossing", tags=["cross-team"])
    MemoryFactory(**of, content="ben's", agent=ben, **APPROVED)
    MemoryFactory(**of, content="retired", **RETIRED)
    contents = dict(AgentMemory.objects.values_list("pk", "content"))
    assert [contents[pk] for pk in shown(owner.get(MEMORY + query.format(ben=ben.pk)))] == expected


@pytest.mark.parametrize("query", ["?agent=x", "?type=song", "?view=lost", "?tags=" + "x" * 65])
def test_filters_that_cannot_be_say_so(team: Team, owner: Client, query: str) -> None:
    a_memory(team)
    response = owner.get(MEMORY + query)
    assert (response.status_code, shown(response)) == (200, [])
    assert b"These filters cannot be" in response.content


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("", b"Nobody remembers anything yet"),
        ("?view=requests", b"No memory asks to be shared"),
        ("?view=retired", b"Nothing was retired"),
        ("?q=nothing", b"Nothing matches"),
    ],
)
def test_an_empty_list_says_what_to_do_next(owner: Client, query: str, says: bytes) -> None:
    assert says in owner.get(MEMORY + query).content


def test_every_row_says_how_far_it_is_trusted_and_where_it_came_from(team: Team, owner: Client) -> None:
    run = start_run(team)
    MemoryFactory(
        project=team.project, source_kind="run", source_run_id=run.run_id, source_identity=f"run:{run.run_id}",
        **{**APPROVED, "approved_by": f"scribe:{run.run_id}"},
    )  # fmt: skip
    MemoryFactory(project=team.project, **LEGACY)
    a_memory(team)
    body = owner.get(MEMORY).content.decode()
    badges = re.findall(r'<span class="badge badge--\w+"[^>]*>([^<]+)</span>', body)
    for word in ("approved by scribe", "by a run", "legacy", "imported", "pending", "by contributor"):
        assert word in badges
    assert f'<a href="/projects/lighthouse/runs/{run.run_id}">' in body
    assert "import:.squad/decisions.md#L1" in body


@pytest.mark.parametrize("view", ["all", "requests", "retired"])
def test_the_number_of_statements_does_not_follow_the_rows(team: Team, owner: Client, view: str) -> None:
    given: dict[str, Any] = {
        "project": team.project,
        "tags": ["cross-team"],
        **(RETIRED if view == "retired" else {}),
    }
    MemoryFactory(**given)
    assert statements(owner, f"{MEMORY}?view={view}") == 8
    for number in range(2):
        run = start_run(team, f"Agent {number}")
        MemoryFactory(
            **given, source_kind="run", source_run_id=run.run_id, source_identity=f"run:{run.run_id}",
            agent=AgentFactory(project=team.project, name=f"B{number}"),
        )  # fmt: skip
    assert statements(owner, f"{MEMORY}?view={view}") == 8


# One memory


def test_a_memory_shows_its_past_and_who_was_told_it(team: Team, owner: Client) -> None:
    memory = a_memory(team)
    change_it(team, memory, "The build needs four cores.")
    approve_memory(project_id=team.project.pk, actor=team.owner, memory_id=memory.pk, revision=2, now=NOW)
    body = owner.get(f"{MEMORY}/{memory.pk}").content.decode()
    actions = re.findall(r"<strong>(memory\.\w+)</strong> by <strong>(\w+)</strong>", body)
    assert actions == [
        ("memory.approve", "owner"),
        ("memory.edit", "contributor"),
        ("memory.record", "contributor"),
    ]
    assert re.search(r'diff--removed">.*The build needs two cores.</span>', body)
    assert "No run has been told this row." in body


def test_a_page_of_one_memory_costs_the_same_however_long_its_past(team: Team, owner: Client) -> None:
    memory = a_memory(team)
    first = statements(owner, f"{MEMORY}/{memory.pk}")
    for number in range(2):
        memory.refresh_from_db()
        change_it(team, memory, f"Changed {number}.")
    assert statements(owner, f"{MEMORY}/{memory.pk}") == first


@pytest.mark.parametrize("htmx", [True, False])
def test_approving_with_corrections(team: Team, owner: Client, htmx: bool) -> None:
    memory = a_memory(team, tags=["old"])
    response = send(
        owner,
        f"{memory.pk}/approve",
        htmx=htmx,
        revision=1,
        type="pattern",
        importance="high",
        tags="",
        back=MEMORY,
    )
    memory.refresh_from_db()
    assert response.status_code == (200 if htmx else 302)
    assert (memory.trust_state, memory.approved_by, memory.type, memory.importance, memory.tags) == (
        "approved", "owner", "pattern", "high", [],
    )  # fmt: skip
    if htmx:
        assert f'<li class="entry entry--done" id="memory-{memory.pk}">' in response.content.decode()
        assert f"Approved memory {memory.pk}." in response.content.decode()


@pytest.mark.parametrize("htmx", [True, False])
@pytest.mark.parametrize("verb", ["approve", "retire"])
def test_a_text_that_changed_is_shown_again_with_what_changed(
    team: Team, owner: Client, verb: str, htmx: bool
) -> None:
    memory = a_memory(team)
    change_it(team, memory, "The build needs four cores.")
    response = send(owner, f"{memory.pk}/{verb}", htmx=htmx, revision=1, reason="It is not so.")
    body = response.content.decode()
    memory.refresh_from_db()
    assert (response.status_code, memory.trust_state, memory.is_retired) == (409, "pending", False)
    assert re.search(r'diff--added">.*The build needs four cores.</span>', body)
    assert "It is not so.</textarea>" in body
    assert 'name="revision" value="2"' in body


def test_retiring_names_the_runs_that_had_been_told_it(team: Team, owner: Client) -> None:
    memory = a_memory(team, type="core_context")
    run = start_run(team)
    build_for_run(Run.objects.select_related("agent", "project").get(pk=run.run_id), Limits(), NOW)
    response = send(owner, f"{memory.pk}/retire", htmx=True, revision=1, reason="Not any more.")
    said = f"Retired memory {memory.pk}. 1 run had been told it: Ana (run {str(run.run_id)[:8]})."
    assert said in response.content.decode()


def test_who_was_second_learns_who_was_first(team: Team, owner: Client) -> None:
    memory = a_memory(team)
    retire_memory(project_id=team.project.pk, actor=team.owner, memory_id=memory.pk, reason="Old.", now=NOW)
    response = send(owner, f"{memory.pk}/approve", htmx=True, revision=1)
    assert response.status_code == 409
    assert "Nothing was done: a retired memory cannot be approved." in response.content.decode()


# Editing


def test_an_edited_memory_waits_again(team: Team, browsers: Browsers) -> None:
    memory = a_memory(team)
    approve_memory(project_id=team.project.pk, actor=team.owner, memory_id=memory.pk, revision=1, now=NOW)
    response = send(browsers.contributor, f"{memory.pk}/edit", **(TYPED | {"content": "Four."}), revision=1)
    memory.refresh_from_db()
    assert (response.status_code, response["Location"]) == (302, f"{MEMORY}/{memory.pk}")
    assert (memory.content, memory.trust_state, memory.revision) == ("Four.", "pending", 2)


@pytest.mark.parametrize("content", ["one\r\ntwo\r\n\r\nthree ", "one\ntwo\n\nthree "])
def test_saving_an_untouched_form_changes_nothing(team: Team, owner: Client, content: str) -> None:
    """A browser sends line ends of its own; a text stored with others keeps them."""
    memory = a_memory(team, content=content)
    assert "three </textarea>" in owner.get(f"{MEMORY}/{memory.pk}/edit").content.decode()
    send(owner, f"{memory.pk}/edit", **(TYPED | {"content": "one\r\ntwo\r\n\r\nthree "}), revision=1)
    memory.refresh_from_db()
    assert (memory.content, memory.revision) == (content, 1)


def test_an_edit_of_a_text_that_changed_keeps_what_was_typed(team: Team, owner: Client) -> None:
    memory = a_memory(team)
    change_it(team, memory, "The build needs four cores.")
    response = send(owner, f"{memory.pk}/edit", **(TYPED | {"content": "Mine."}), revision=1)
    body = response.content.decode()
    assert response.status_code == 409
    assert "Mine.</textarea>" in body
    assert re.search(r'diff--added">.*The build needs four cores.</span>', body)
    assert send(owner, f"{memory.pk}/edit", **(TYPED | {"content": "Mine."}), revision=2).status_code == 302


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"content": " "}, "This may not be blank."),
        ({"content": "x" * 65_537}, "At most 65536 characters"),
        ({"content": "nul\0"}, "Null characters are not allowed."),
        ({"type": "song"}, "Select a valid choice."),
        ({"tags": "x" * 65}, "At most 64 characters"),
        ({"revision": "0"}, "greater than or equal to 1"),
    ],
)
def test_bad_input_is_shown_beside_the_field(
    team: Team, owner: Client, wrong: dict[str, Any], says: str
) -> None:
    memory = a_memory(team)
    response = send(owner, f"{memory.pk}/edit", **{**TYPED, "revision": "1", **wrong})
    assert response.status_code == 422
    assert says in response.content.decode()


# Many


def test_many_are_approved_and_filed_alike(team: Team, owner: Client) -> None:
    memories = [a_memory(team, f"No {n}.") for n in range(3)]
    change_it(team, memories[1], "Changed.")
    response = send(
        owner,
        "bulk",
        htmx=True,
        item=[f"memory:{m.pk}:1" for m in memories],
        do="approve",
        importance="high",
        tags="kept",
    )
    assert response.status_code == 409
    assert "2 approved; 1 was not, for the reason beside each." in response.content.decode()
    assert list(AgentMemory.objects.order_by("pk").values_list("trust_state", "importance")) == [
        ("approved", "high"), ("pending", "medium"), ("approved", "high"),
    ]  # fmt: skip


def test_many_are_retired_only_as_they_were_read(team: Team, owner: Client) -> None:
    kept, changed = a_memory(team), a_memory(team, "Other.")
    change_it(team, changed, "Changed.")
    response = send(
        owner,
        "bulk",
        htmx=True,
        item=[f"memory:{m.pk}:1" for m in (kept, changed)],
        do="refuse",
        reason="Old.",
    )
    assert response.status_code == 409
    assert "1 retired; 1 was not" in response.content.decode()
    assert [m.is_retired for m in AgentMemory.objects.order_by("pk")] == [True, False]


def test_what_was_typed_is_kept_when_nothing_was_done(team: Team, owner: Client) -> None:
    memory = a_memory(team)
    response = send(
        owner,
        "bulk",
        htmx=True,
        item=f"memory:{memory.pk}:1",
        do="refuse",
        tags="a, b",
        importance="high",
        type="pattern",
    )
    bar = response.content.decode().partition('id="bulk"')[2]
    assert response.status_code == 422
    assert 'name="tags" value="a, b"' in bar
    assert '<option value="high" selected>' in bar
    assert '<option value="pattern" selected>' in bar
    assert (
        f'value="memory:{memory.pk}:1" form="bulk" aria-label="Pick memory {memory.pk}" checked'
        in response.content.decode()
    )
