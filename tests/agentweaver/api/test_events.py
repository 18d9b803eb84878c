"""The ledger over HTTP: a reader can check the chain with nothing but the answers (SPEC 3 and 7)."""

from __future__ import annotations

import hashlib
import json

from django.db import connection

from memory.models import Decision
from tests.agentweaver.api.conftest import Caller
from tests.conftest import Team


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def test_the_chain_can_be_recomputed_from_the_answers(team: Team, owner: Caller) -> None:
    owner.post("agents/Ana/memory", {"type": "learning", "content": "Ünïcode \u2028 <b>"})
    owner.post("decisions", {"agent_name": "Ana", "type": "scope", "title": "T", "content": "C"})
    events = list(reversed(owner.get("events?page_size=100").json()["items"]))
    previous = "0" * 64
    for number, event in enumerate(events, start=1):
        at = event["at"].removesuffix("Z")
        body = {
            "project": str(team.project.pk), "number": number, "action": event["action"], "actor": event["actor"],
            "at": f"{at if '.' in at else at + '.000000'}+00:00", "target": event["target"],
            "before": canonical(event["before"]), "after": canonical(event["after"]), "state": event["state"],
            "reason": event["reason"], "prev_hash": previous,
        }  # fmt: skip
        assert event["number"] == number
        assert event["prev_hash"] == previous
        assert hashlib.sha256(canonical(body).encode()).hexdigest() == event["hash"]
        previous = event["hash"]
    assert owner.get("events/verify").json() == {
        "valid": True, "checked": len(events), "first_broken": None,
        "head": {"number": len(events), "hash": previous},
    }  # fmt: skip


def test_a_row_changed_behind_the_ledgers_back_is_named(owner: Caller) -> None:
    made = owner.post(
        "decisions", {"agent_name": "Ana", "type": "scope", "title": "T", "content": "C"}
    ).json()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {Decision._meta.db_table} SET content = 'X' WHERE id = %s", [made["id"]])
    told = owner.get("events/verify").json()
    assert told["valid"] is False
    broken = told["first_broken"]
    last = owner.get(f"events?target=decision:{made['id']}").json()["items"][0]
    assert (broken["number"], broken["target"]) == (last["number"], f"decision:{made['id']}")
    assert "does not read as" in broken["problem"]
