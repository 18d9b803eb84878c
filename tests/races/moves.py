"""What contenders do, by name and with JSON arguments, so that it runs alike in a thread and in another process.

A move returns JSON. A refusal of the product is an outcome like any other; anything else that goes wrong is `failed` and no test
lets that pass.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any
from uuid import UUID

from django.contrib.contenttypes.models import ContentType
from django.db import connection, connections
from django.utils import timezone

from governance.deciding.decisions import create_decision, supersede_decision
from governance.deciding.entries import merge_entry, reject_entry
from governance.deciding.gate import Corrections
from governance.deciding.memories import approve_memory
from governance.deciding.projects import create_project
from governance.deciding.scribe import complete_run
from governance.models import ScribeReport, User
from governance.people.credentials import issue_personal_token, issue_run_credential
from governance.people.credentials import verify as verify_token
from governance.people.policies import Role, grant, put_grant, roles_of
from memory.actors import Actor, Human
from memory.compiling.compiler import Limits
from memory.compiling.receipts import build_for_run
from memory.errors import Conflict, CredentialRefused, DomainError
from memory.ledger.changes import KINDS, change, state_of
from memory.ledger.history import revisions
from memory.ledger.verification import verify
from memory.models import (
    AgentMemory,
    ContextReceipt,
    Decision,
    DecisionInboxEntry,
    LedgerEvent,
    Project,
    Run,
    SessionContext,
)
from memory.models.project import NO_HASH
from memory.recording import edit_memory, record_memory, submit_entry
from memory.runs import register_run
from memory.sessions import SessionFields, start_session, update_current_session

MOVES: dict[str, Callable[..., Any]] = {}
Ack = Callable[[Any], None]


def move(function: Callable[..., Any]) -> Callable[..., Any]:
    MOVES[function.__name__] = function
    return function


def play(name: str, arguments: dict[str, Any], ack: Ack) -> dict[str, Any]:
    """The outcome of a move: `ok`, `refused` with the row as it is now, or `failed`."""
    more = {"ack": ack} if name.startswith("hammer") else {}
    try:
        return {"ok": MOVES[name](**arguments, **more)}
    except DomainError as refused:
        return {"refused": refused.code, "detail": refused.detail, "row": row_of(refused)}
    except Exception as failure:  # noqa: BLE001 - the test fails with it, whatever it is
        return {"failed": f"{type(failure).__name__}: {failure}"}


def row_of(refused: DomainError) -> dict[str, Any] | None:
    row = refused.row if isinstance(refused, Conflict) else None
    return {"kind": KINDS[type(row)], "id": str(row.pk), **state_of(row)} if row is not None else None


def actor(who: str) -> Actor:
    """A user name, or `run:{id}`."""
    if who.startswith("run:"):
        return Run.objects.select_related("agent").get(pk=who.removeprefix("run:")).as_actor()
    return Human(who)


def common(project: str, who: str) -> dict[str, Any]:
    return {"project_id": UUID(project), "actor": actor(who), "now": timezone.now()}


# Beforehand and afterwards


@move
def found(owners: int = 2, slug: str = "arena") -> str:
    """A project with owners `owner-0` … and an orchestrator."""
    ContentType.objects.clear_cache()  # the tables may have been emptied since this process last looked
    names = [f"owner-{number}" for number in range(owners)]
    for name in (*names, "orchestrator"):
        if not User.objects.filter(username=name).exists():
            User.objects.create_user(name)
    project = create_project(actor=Human(names[0]), name=slug, slug=slug, now=timezone.now())
    with change(project.pk, Human(names[0]), timezone.now()) as opened:
        for name in names[1:]:
            put_grant(opened, name, Role.OWNER)
        put_grant(opened, "orchestrator", Role.ORCHESTRATOR)
    return str(project.pk)


@move
def ledger(project: str) -> dict[str, Any]:
    """Whether everything still fits, and how much there is."""
    result = verify(Project.objects.get(pk=project))
    broken = result.first_broken
    return {
        "valid": result.valid, "checked": result.checked,
        "broken": None if broken is None else f"{broken.number} {broken.target}: {broken.problem}",
        "number": result.head.number,
    }  # fmt: skip


@move
def rows(project: str, kind: str) -> list[dict[str, Any]]:
    model: Any = {name: model for model, name in KINDS.items()}[kind]
    return [
        {"id": str(row.pk), **state_of(row)}
        for row in model.objects.filter(project=UUID(project)).order_by("pk")
    ]


@move
def actions(project: str) -> dict[str, int]:
    """How often each action stands in the ledger."""
    return dict(Counter(LedgerEvent.objects.filter(project=UUID(project)).values_list("action", flat=True)))


@move
def owners_of(project: str, candidates: list[str]) -> list[str]:
    return [name for name in candidates if Role.OWNER in roles_of(name, UUID(project))]


@move
def works(token: str) -> bool:
    try:
        verify_token(token, timezone.now())
    except CredentialRefused:
        return False
    return True


@move
def token(who: str) -> str:
    """A personal token."""
    return issue_personal_token(User.objects.get(username=who), now=timezone.now()).token


# What races


@move
def submit(
    project: str, who: str, slug: str, content: str, agent: str = "Ana", type: str = "learning"
) -> dict[str, Any]:
    entry, is_new = submit_entry(
        **common(project, who), agent_name=agent, slug=slug, type=type, content=content
    )
    return {"id": entry.pk, "slug": entry.slug, "new": is_new, "content": entry.content}


@move
def merge(project: str, who: str, entry: int, becomes: str | None = None) -> dict[str, Any]:
    row = merge_entry(
        **common(project, who), entry_id=entry, revision=1, corrections=Corrections(type=becomes)
    )
    return {"kind": KINDS[type(row)], "id": row.pk}


@move
def reject(project: str, who: str, entry: int) -> dict[str, Any]:
    return {"id": reject_entry(**common(project, who), entry_id=entry, reason=f"{who} says no.").pk}


@move
def remember(project: str, who: str, content: str, agent: str = "Ana") -> int:
    return record_memory(**common(project, who), agent_name=agent, type="learning", content=content).pk


@move
def approve(project: str, who: str, memory: int, revision: int = 1) -> dict[str, Any]:
    row = approve_memory(**common(project, who), memory_id=memory, revision=revision)
    return {"revision": row.revision, "trust_state": row.trust_state}


@move
def edit(project: str, who: str, memory: int, content: str, revision: int = 1) -> dict[str, Any]:
    row = edit_memory(**common(project, who), memory_id=memory, revision=revision, content=content)
    return {"revision": row.revision, "trust_state": row.trust_state}


@move
def decide(project: str, who: str, title: str) -> int:
    return create_decision(
        **common(project, who), agent_name="Ana", type="scope", title=title, content=title
    ).pk


@move
def supersede(project: str, who: str, decision: int, successor: int) -> int:
    return supersede_decision(
        **common(project, who), decision_id=decision, superseded_by=successor, reason="Round and round."
    ).pk


@move
def open_session(project: str, who: str, session_id: str) -> int:
    return start_session(**common(project, who), session_id=session_id).pk


@move
def register(project: str, who: str, external_id: str | None = None, agent: str = "Ana") -> dict[str, Any]:
    given = common(project, who)
    with change(given["project_id"], given["actor"], given["now"]) as opened:
        run, is_new = register_run(opened, agent_name=agent, external_id=external_id)
        token = issue_run_credential(run, given["now"]).token
    return {"run": str(run.pk), "new": is_new, "token": token}


@move
def complete(project: str, who: str, run: str, status: str = "completed") -> dict[str, Any]:
    report = complete_run(**common(project, who), run_id=UUID(run), status=status, summary=who)
    return report.as_json()


@move
def tell(run: str) -> int:
    """What an orchestrator's request for the context of a run does: the receipt's id."""
    found = Run.objects.select_related("agent", "project").get(pk=UUID(run))
    return int(build_for_run(found, Limits(), timezone.now()).receipt.pk)


@move
def receipts(run: str) -> list[int]:
    return list(ContextReceipt.objects.filter(run=UUID(run)).order_by("pk").values_list("pk", flat=True))


@move
def report(run: str) -> dict[str, Any]:
    return ScribeReport.objects.select_related("run").get(run=UUID(run)).as_json()


@move
def demote(project: str, who: str, username: str) -> str:
    return grant(**common(project, who), username=username, role="viewer").role


# A process that dies at a chosen place


@move
def killed_after(statements: int, then: str, arguments: dict[str, Any]) -> bool:
    """Make a move in a process that kills itself after so many SQL statements; whether it got that far."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        os._exit(_doomed(statements, then, arguments))
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise RuntimeError(f"{then} was refused or failed")
    return os.WIFSIGNALED(status)


def _doomed(statements: int, then: str, arguments: dict[str, Any]) -> int:
    seen = count(1)

    def die(execute: Any, *given: Any) -> Any:
        result = execute(*given)
        if next(seen) == statements:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    with connection.execute_wrapper(die):
        return 0 if "ok" in play(then, arguments, lambda done: None) else 1


# Many writes of every kind, each acknowledged as soon as it is durable


@move
def hammer(project: str, who: str, writes: int, seed: int, ack: Ack) -> dict[str, int]:
    """`writes` random writes and decisions. Losing a race is counted, not an error."""
    chance = random.Random(seed)
    lost: Counter[str] = Counter()
    for number in range(writes):
        write = chance.choices(WRITES, weights=[3, 3, 3, 2, 2, 1])[0]
        try:
            done = write(project, who, f"{who}-{seed}-{number}", chance)
        except (Conflict, LookupError):
            lost[write.__name__] += 1
            continue
        ack([write.__name__, *done])
    return dict(lost)


@move
def hammer_for_ever(project: str, who: str, seed: int, ack: Ack) -> None:
    """Write until killed."""
    for number in range(1_000_000):
        hammer(project, who, 20, seed * 1_000_003 + number, ack)


def _record(project: str, who: str, name: str, chance: random.Random) -> list[Any]:
    return [remember(project, who, name, agent=chance.choice(AGENTS)), name]


def _submit(project: str, who: str, name: str, chance: random.Random) -> list[Any]:
    kind = chance.choice(["learning", "pattern", "scope", "technical"])
    entry = submit(project, who, name.lower(), name, agent=chance.choice(AGENTS), type=kind)
    return [entry["id"], name]


def _decide(project: str, who: str, name: str, chance: random.Random) -> list[Any]:
    pending = list(
        DecisionInboxEntry.objects.pending().filter(project=UUID(project)).values_list("pk", flat=True)[:30]
    )
    entry = chance.choice(pending)
    if chance.random() < 0.7:
        merge(project, who, entry)
        return [entry, "merged", who]
    reject(project, who, entry)
    return [entry, "rejected", who]


def _approve(project: str, who: str, name: str, chance: random.Random) -> list[Any]:
    pending = AgentMemory.objects.filter(project=UUID(project), trust_state="pending").order_by("-pk")
    memory, revision = chance.choice(list(pending.values_list("pk", "revision")[:30]))
    approve(project, who, memory, revision)
    return [memory, revision]


def _edit(project: str, who: str, name: str, chance: random.Random) -> list[Any]:
    known = AgentMemory.objects.filter(project=UUID(project)).order_by("-pk")
    memory, revision = chance.choice(list(known.values_list("pk", "revision")[:30]))
    edit(project, who, memory, name, revision)
    return [memory, revision + 1, name]


def _session(project: str, who: str, name: str, chance: random.Random) -> list[Any]:
    session, _ = update_current_session(**common(project, who), fields=SessionFields(summary=name))
    return [session.pk, session.revision, name]


WRITES = (_record, _submit, _decide, _approve, _edit, _session)
AGENTS = ("Ana", "Bo", "Cy")


@move
def missing(project: str, acks: list[list[Any]]) -> list[str]:
    """What was acknowledged and is not in the ledger: read from the events, which keep every revision that ever was."""
    told = _told(project)
    return [str(ack) for ack in acks if not _is_told(told, ack)]


def _told(project: str) -> set[tuple[Any, ...]]:
    here = Project.objects.get(pk=project)
    names = (
        LedgerEvent.objects.filter(project=UUID(project))
        .exclude(state="")
        .values_list("target", flat=True)
        .distinct()
    )
    told: set[tuple[Any, ...]] = set()
    for name in names:
        for step in revisions(here, name):
            values = step.values
            text = values.get("content") or values.get("summary")
            told.add((name, step.revision, text, values.get("status"), values.get("reviewed_by")))
            told.add((name, step.revision, values.get("trust_state")))
    return told


def _is_told(told: set[tuple[Any, ...]], ack: list[Any]) -> bool:
    kind, row, *rest = ack
    if kind == "_record":
        return (f"memory:{row}", 1, rest[0], None, None) in told
    if kind == "_submit":
        return (f"entry:{row}", 1, rest[0], "pending", "") in told
    if kind == "_decide":
        return any(key[0] == f"entry:{row}" and key[3:] == tuple(rest) for key in told if len(key) == 5)
    if kind == "_approve":
        return (f"memory:{row}", rest[0], "approved") in told
    name = "memory" if kind == "_edit" else "session"
    return (f"{name}:{row}", rest[0], rest[1], None, None) in told


@move
def half_done(project: str) -> list[str]:
    """Rows that stand without the other half of their change."""
    here = Project.objects.get(pk=project)
    problems = []
    if (here.ledger_number, here.ledger_hash == NO_HASH) == (0, False):
        problems.append("head")
    merged = DecisionInboxEntry.objects.filter(project=UUID(project), status="merged")
    problems += [f"entry {e.pk}" for e in merged if e.memory_id is None and e.decision_id is None]
    approved = AgentMemory.objects.filter(project=UUID(project), trust_state="approved")
    events = set(
        LedgerEvent.objects.filter(
            project=UUID(project), action__in=["memory.merge", "memory.approve"]
        ).values_list("target", flat=True)
    )
    problems += [f"memory {m}" for m in approved.values_list("pk", flat=True) if f"memory:{m}" not in events]
    decided = Decision.objects.filter(project=UUID(project)).count()
    if decided != LedgerEvent.objects.filter(project=UUID(project), action="decision.merge").count():
        problems.append("decisions")
    if SessionContext.objects.filter(project=UUID(project), ended_at__isnull=True).count() > 1:
        problems.append("sessions")
    return problems


@move
def verify_for(project: str, seconds: float) -> list[bool]:
    """Verify again and again beside the writers."""
    until = time.monotonic() + seconds
    found_valid: list[bool] = []
    while time.monotonic() < until or not found_valid:
        found_valid.append(verify(Project.objects.get(pk=project)).valid)
    return found_valid
