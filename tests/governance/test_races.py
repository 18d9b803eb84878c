"""Of any number of racing deciders exactly one wins; the others learn what the row is now (SPEC 6).

Threads with connections of their own on PostgreSQL, processes on SQLite. The short form runs with every test run; `make torture`
(AGENTWEAVER_TORTURE=1) repeats it, and both print who won how often.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import uuid4

import pytest

from tests.races.arena import LONG, RACE, Arena

pytestmark = RACE

ROUNDS = 200 if LONG else 6
WIDE = 8 if LONG else 4

Outcome = dict[str, Any]


def owners(count: int = WIDE) -> list[str]:
    return [f"owner-{number}" for number in range(count)]


def refused(outcomes: list[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if "refused" in outcome]


def only_winner(outcomes: list[Outcome]) -> Outcome:
    """The one outcome that was not refused."""
    [winner] = [outcome for outcome in outcomes if "ok" in outcome]
    return winner


def tell(title: str, counts: Counter[str]) -> None:
    told = ", ".join(f"{what} {number}" for what, number in sorted(counts.items()))
    print(f"\n{title}: {told}")


def settle(arena: Arena, project: str) -> None:
    """Whatever happened, the ledger fits."""
    found = arena.do("ledger", project=project)
    assert found["broken"] is None
    assert found["checked"] == found["number"]


@pytest.fixture
def project(arena: Arena) -> str:
    return found(arena)


def found(arena: Arena, count: int = WIDE) -> str:
    """A project of its own for every race: the database is shared by all tests of this module on SQLite."""
    return str(arena.do("found", owners=count, slug=f"arena-{uuid4()}"))


def entry_of(arena: Arena, project: str, turn: int) -> int:
    given = {"project": project, "who": "owner-0", "slug": f"entry-{turn}", "content": f"Text {turn}."}
    return int(arena.do("submit", **given)["id"])


def test_one_of_many_merges_wins(arena: Arena, project: str) -> None:
    counts: Counter[str] = Counter()
    for turn in range(ROUNDS):
        entry = entry_of(arena, project, turn)
        outcomes = arena.race(
            *(("merge", {"project": project, "who": who, "entry": entry}) for who in owners())
        )
        winner = owners()[outcomes.index(only_winner(outcomes))]
        for loser in refused(outcomes):
            assert (loser["refused"], loser["row"]["status"], loser["row"]["reviewed_by"]) == (
                "conflict",
                "merged",
                winner,
            )
        counts[winner] += 1
    assert len(arena.do("rows", project=project, kind="memory")) == ROUNDS
    settle(arena, project)
    tell("merge against merge, won by", counts)


def test_one_of_merge_and_reject_wins(arena: Arena, project: str) -> None:
    counts: Counter[str] = Counter()
    for turn in range(ROUNDS):
        entry = entry_of(arena, project, turn)
        names = ["merge" if number % 2 else "reject" for number in range(WIDE)]
        outcomes = arena.race(
            *(
                (name, {"project": project, "who": who, "entry": entry})
                for name, who in zip(names, owners(), strict=True)
            )
        )
        won = names[outcomes.index(only_winner(outcomes))]
        status = {"merge": "merged", "reject": "rejected"}[won]
        assert {loser["row"]["status"] for loser in refused(outcomes)} == {status}
        counts[won] += 1
    rows = arena.do("rows", project=project, kind="entry")
    assert Counter(row["status"] for row in rows) == {
        status: number for status, number in (("merged", counts["merge"]), ("rejected", counts["reject"])) if number
    }  # fmt: skip
    assert len(arena.do("rows", project=project, kind="memory")) == counts["merge"]
    settle(arena, project)
    tell("merge against reject, won by", counts)


def test_nothing_is_approved_that_was_not_read(arena: Arena, project: str) -> None:
    """An edit beside an approval: either the approval sees the old text and the edit withdraws it, or it is stale."""
    counts: Counter[str] = Counter()
    for turn in range(ROUNDS):
        memory = arena.do("remember", project=project, who="owner-0", content=f"Old {turn}.")
        approval, edit = arena.race(
            ("approve", {"project": project, "who": "owner-1", "memory": memory}),
            ("edit", {"project": project, "who": "owner-0", "memory": memory, "content": f"New {turn}."}),
        )
        assert edit["ok"] == {"revision": 2, "trust_state": "pending"}
        if "refused" in approval:
            assert (approval["refused"], approval["row"]["content"]) == ("stale", f"New {turn}.")
        counts["approval was stale" if "refused" in approval else "approval was first"] += 1
    rows = arena.do("rows", project=project, kind="memory")
    assert {(row["trust_state"], row["approved_by"]) for row in rows} == {("pending", "")}
    settle(arena, project)
    tell("approve against edit", counts)


def test_one_of_many_edits_of_one_revision_wins(arena: Arena, project: str) -> None:
    for turn in range(ROUNDS):
        memory = arena.do("remember", project=project, who="owner-0", content=f"Old {turn}.")
        edits = [
            {"project": project, "who": who, "memory": memory, "content": f"By {who}."} for who in owners()
        ]
        outcomes = arena.race(*(("edit", given) for given in edits))
        winner = edits[outcomes.index(only_winner(outcomes))]["content"]
        assert {(o["refused"], o["row"]["content"], o["row"]["revision"]) for o in refused(outcomes)} == {
            ("stale", winner, 2)
        }
    settle(arena, project)


def test_no_circle_of_decisions_closes(arena: Arena, project: str) -> None:
    counts: Counter[str] = Counter()
    for turn in range(ROUNDS):
        ring = [
            arena.do("decide", project=project, who="owner-0", title=f"{turn}-{number}")
            for number in range(WIDE)
        ]
        pairs = zip(ring, [*ring[1:], ring[0]], owners(), strict=True)
        outcomes = arena.race(
            *(
                ("supersede", {"project": project, "who": who, "decision": decision, "successor": successor})
                for decision, successor, who in pairs
            )
        )
        assert refused(outcomes), "every decision of a ring was superseded by the next"
        assert {outcome["refused"] for outcome in refused(outcomes)} == {"conflict"}
        assert {outcome["row"]["status"] for outcome in refused(outcomes)} == {"superseded"}
        counts[f"{len(refused(outcomes))} refused"] += 1
    decisions = {row["id"]: row for row in arena.do("rows", project=project, kind="decision")}
    assert all(ends_in_an_active_one(decisions, row) for row in decisions.values())
    settle(arena, project)
    tell(f"rings of {WIDE} decisions", counts)


def ends_in_an_active_one(decisions: dict[str, Outcome], row: Outcome) -> bool:
    for _ in decisions:
        if row["superseded_by_id"] is None:
            return bool(row["status"] == "active")
        row = decisions[str(row["superseded_by_id"])]
    return False


def test_at_most_one_session_is_open(arena: Arena, project: str) -> None:
    for turn in range(ROUNDS):
        starts = [{"project": project, "who": who, "session_id": f"{turn}-{who}"} for who in owners()]
        outcomes = arena.race(*(("open_session", given) for given in starts))
        assert not refused(outcomes)
        open_ones = [r for r in arena.do("rows", project=project, kind="session") if r["ended_at"] is None]
        assert len(open_ones) == 1
    assert len(arena.do("rows", project=project, kind="session")) == ROUNDS * WIDE
    settle(arena, project)


def test_one_of_two_sessions_with_one_id_is_started(arena: Arena, project: str) -> None:
    for turn in range(ROUNDS):
        given = {"project": project, "session_id": f"s-{turn}"}
        outcomes = arena.race(*(("open_session", {**given, "who": who}) for who in owners()))
        started = only_winner(outcomes)["ok"]
        assert {(o["refused"], o["row"]["id"]) for o in refused(outcomes)} == {("conflict", str(started))}
        [latest] = [r for r in arena.do("rows", project=project, kind="session") if r["ended_at"] is None]
        assert latest["session_id"] == f"s-{turn}"
    settle(arena, project)


def test_first_submissions_of_one_slug_all_succeed_and_lose_no_text(arena: Arena, project: str) -> None:
    for turn in range(ROUNDS):
        given = {"project": project, "slug": f"idea-{turn}"}
        outcomes = arena.race(
            *(("submit", {**given, "who": who, "content": f"By {who}.", "agent": who}) for who in owners())
        )
        assert not refused(outcomes)
        slugs = {outcome["ok"]["slug"] for outcome in outcomes}
        assert len(slugs) == WIDE
        assert f"idea-{turn}" in slugs
        assert all(outcome["ok"]["new"] for outcome in outcomes)
    rows = arena.do("rows", project=project, kind="entry")
    assert Counter(row["content"] for row in rows) == {f"By {who}.": ROUNDS for who in owners()}
    settle(arena, project)


def test_one_agents_first_submissions_of_one_slug_are_one_entry(arena: Arena, project: str) -> None:
    """The same agent and source: the later one updates in place, the text before it stays in the ledger."""
    for turn in range(ROUNDS):
        given = {"project": project, "slug": f"idea-{turn}", "who": "owner-0"}
        outcomes = arena.race(*(("submit", {**given, "content": f"Text {n}."}) for n in range(WIDE)))
        assert [outcome["ok"]["new"] for outcome in outcomes].count(True) == 1
    told = arena.do("actions", project=project)
    assert (told["entry.submit"], told["entry.update"]) == (ROUNDS, ROUNDS * (WIDE - 1))
    settle(arena, project)


def test_completions_at_once_end_a_run_once_and_get_one_report(arena: Arena, project: str) -> None:
    for turn in range(ROUNDS):
        run = arena.do("register", project=project, who="orchestrator")["run"]
        entry = {"project": project, "who": f"run:{run}", "slug": f"e-{turn}", "content": "x"}
        arena.do("submit", **entry)
        outcomes = arena.race(
            *(
                ("complete", {"project": project, "who": who, "run": run})
                for who in ("orchestrator", "owner-0")
            )
        )
        assert not refused(outcomes)
        assert outcomes[0]["ok"] == outcomes[1]["ok"] == arena.do("report", run=run)
        assert len(outcomes[0]["ok"]["promoted"]) == 1
    told = arena.do("actions", project=project)
    assert (told["run.finish"], told["memory.merge"], told["run.scribe"]) == (ROUNDS, ROUNDS, ROUNDS)
    settle(arena, project)


def test_of_two_endings_one_holds(arena: Arena, project: str) -> None:
    counts: Counter[str] = Counter()
    for _ in range(ROUNDS):
        run = arena.do("register", project=project, who="orchestrator")["run"]
        given = {"project": project, "who": "orchestrator", "run": run}
        outcomes = arena.race(*(("complete", {**given, "status": s}) for s in ("completed", "failed")))
        ended = only_winner(outcomes)["ok"]["status"]
        [loser] = refused(outcomes)
        assert (loser["refused"], loser["row"]["status"]) == ("conflict", ended)
        counts[ended] += 1
    settle(arena, project)
    tell("completed against failed, ended", counts)


def test_what_a_run_writes_while_it_is_completed_is_promoted_or_refused(arena: Arena, project: str) -> None:
    counts: Counter[str] = Counter()
    for turn in range(ROUNDS):
        run = arena.do("register", project=project, who="orchestrator")["run"]
        entry = {"project": project, "who": f"run:{run}", "slug": f"e-{turn}", "content": "x"}
        written, completed = arena.race(
            ("submit", entry), ("complete", {"project": project, "who": "orchestrator", "run": run})
        )
        promoted = [item["entry"] for item in completed["ok"]["promoted"]]
        if "ok" in written:
            assert promoted == [written["ok"]["id"]]
        else:
            assert (written["refused"], promoted) == ("run_ended", [])
        counts["promoted" if promoted else "refused"] += 1
    settle(arena, project)
    tell("submit against complete", counts)


def test_what_a_run_is_told_while_it_is_completed_stands_in_its_end_or_was_refused(
    arena: Arena, project: str
) -> None:
    counts: Counter[str] = Counter()
    for _ in range(ROUNDS):
        run = arena.do("register", project=project, who="orchestrator")["run"]
        given = {"project": project, "who": "orchestrator", "run": run}
        *asked, _completed = arena.race(("tell", {"run": run}), ("tell", {"run": run}), ("complete", given))
        told = [outcome["ok"] for outcome in asked if "ok" in outcome]
        assert [outcome["refused"] for outcome in refused(asked)] == ["conflict"] * (2 - len(told))
        assert arena.do("receipts", run=run) == sorted(told)
        counts["told" if told else "refused"] += len(told) or 1
    # The ledger verifies: every end wrote down exactly the receipts that are there.
    settle(arena, project)
    tell("context against complete", counts)


def test_registrations_of_one_external_id_are_one_run_with_one_credential(arena: Arena, project: str) -> None:
    for turn in range(ROUNDS):
        given = {"project": project, "who": "orchestrator", "external_id": f"turn-{turn}"}
        outcomes = arena.race(*(("register", given) for _ in range(WIDE)))
        assert not refused(outcomes)
        assert len({outcome["ok"]["run"] for outcome in outcomes}) == 1
        assert [outcome["ok"]["new"] for outcome in outcomes].count(True) == 1
        alive = [arena.do("works", token=outcome["ok"]["token"]) for outcome in outcomes]
        assert alive.count(True) == 1
    assert len(arena.do("rows", project=project, kind="run")) == ROUNDS
    settle(arena, project)


def test_owners_who_demote_each_other_leave_one(arena: Arena) -> None:
    """Each was an owner when asked; under the lock the later ones no longer are, or would be the last."""
    counts: Counter[str] = Counter()
    for _ in range(ROUNDS):
        project = found(arena)
        ring = zip(owners(), [*owners()[1:], owners()[0]], strict=True)
        outcomes = arena.race(
            *(("demote", {"project": project, "who": who, "username": whom}) for who, whom in ring)
        )
        left = arena.do("owners_of", project=project, candidates=owners())
        assert left
        assert {outcome["refused"] for outcome in refused(outcomes)} <= {"role_required", "last_owner"}
        assert len(left) == WIDE - (len(outcomes) - len(refused(outcomes)))
        counts[f"{len(left)} left"] += 1
        settle(arena, project)
    tell(f"rings of {WIDE} owners", counts)


def test_two_last_owners_cannot_both_leave(arena: Arena) -> None:
    for _ in range(ROUNDS):
        project = found(arena, 2)
        outcomes = arena.race(
            *(("demote", {"project": project, "who": who, "username": who}) for who in owners(2))
        )
        [loser] = refused(outcomes)
        assert loser["refused"] == "last_owner"
        assert len(arena.do("owners_of", project=project, candidates=owners(2))) == 1
