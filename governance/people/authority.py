"""Who may do what, as a table to read (SPEC 5): every kind of caller against everything that can be asked of a project.

Nothing is decided here: each cell is the answer of `policies` (or of the verb, where the verb itself refuses). `manage.py authority`
prints it, docs/authority.md shows it, and the tests hold it against what real callers get.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from governance.people import policies
from governance.people.policies import ROLE_ACTIONS, RUN_ACTIONS, SUPERUSER_ACTIONS, Action, Role
from memory.actors import VerifiedRun
from memory.enums import RunRole
from memory.errors import CredentialRefused, DomainError, NotFound, Refused
from memory.recording import require_own_agent

YES = "yes"
NOTHING = "–"
_STATUS: dict[type[DomainError], int] = {CredentialRefused: 401, Refused: 403, NotFound: 404}


class Caller(StrEnum):
    """Everybody who may knock, in the words of the table."""

    OWNER = "owner"
    CONTRIBUTOR = "contributor"
    VIEWER = "viewer"
    ORCHESTRATOR = "orchestrator"
    STRANGER = "stranger"
    SUPERUSER = "superuser without a role"
    WORKER = "worker run"
    COORDINATOR = "coordinator run"
    ELSEWHERE = "run of another project"
    ENDED = "coordinator whose run ended"
    REVOKED = "revoked token"
    EXPIRED = "expired token"
    ANONYMOUS = "nobody"


class Of(StrEnum):
    """Whose row or run is meant, where that matters."""

    ANYONE = ""
    OWN = "own"
    ANOTHER = "another's"


@dataclass(frozen=True, slots=True)
class Ask:
    """Something that can be asked of a project: the action that allows it, in the words of SPEC 5."""

    words: str
    action: Action
    of: Of = Of.ANYONE


BUILD_OWN = Ask("build its own run's context", Action.RUN_RUNS, Of.OWN)

ASKS = (
    Ask("read anything in the project", Action.READ),
    Ask("record memory, submit an entry, update the session", Action.RECORD, Of.OWN),
    Ask("the same in the name of another agent", Action.RECORD, Of.ANOTHER),
    Ask("export", Action.EXPORT),
    Ask("import", Action.IMPORT),
    Ask(
        "merge or reject an entry; create, approve, edit, supersede, archive a decision; approve, retire a memory; refuse a legacy row",
        Action.DECIDE,
    ),
    Ask("register or finish a run, build any run's context", Action.RUN_RUNS, Of.ANOTHER),
    BUILD_OWN,
    Ask("change members, policy, name", Action.MANAGE),
)

_PEOPLE = {
    Caller.OWNER: ROLE_ACTIONS[Role.OWNER],
    Caller.CONTRIBUTOR: ROLE_ACTIONS[Role.CONTRIBUTOR],
    Caller.VIEWER: ROLE_ACTIONS[Role.VIEWER],
    Caller.ORCHESTRATOR: ROLE_ACTIONS[Role.ORCHESTRATOR],
    Caller.STRANGER: frozenset[Action](),
    Caller.SUPERUSER: SUPERUSER_ACTIONS,
}
_RUNS = {Caller.WORKER: RunRole.WORKER, Caller.COORDINATOR: RunRole.COORDINATOR}
_CREDENTIALS = {
    Caller.ENDED: "run_ended",
    Caller.REVOKED: "invalid_credential",
    Caller.EXPIRED: "invalid_credential",
    Caller.ANONYMOUS: "not_authenticated",
}
"""Refused before anything is asked: the credential proves nobody."""


def answer(caller: Caller, ask: Ask) -> str:
    """`yes`, the refusal as its status and code, or a dash where nothing is asked: a person has no run of its own."""
    if ask == BUILD_OWN and caller in _PEOPLE:
        return NOTHING
    try:
        _require(caller, ask)
    except DomainError as refused:
        return f"{_STATUS[type(refused)]} {refused.code}"
    return YES


def _require(caller: Caller, ask: Ask) -> None:
    if caller in _CREDENTIALS:
        raise CredentialRefused(_CREDENTIALS[caller], "")
    if caller == Caller.ELSEWHERE:
        policies.check(frozenset(), ask.action)
    if caller in _RUNS:
        _require_of_run(_RUNS[caller], ask)
    else:
        policies.check(_PEOPLE[caller], ask.action)


def _require_of_run(role: RunRole, ask: Ask) -> None:
    if ask == BUILD_OWN:
        return
    policies.check(RUN_ACTIONS[role], ask.action)
    if ask.of == Of.ANOTHER:
        own = VerifiedRun(UUID(int=0), UUID(int=0), 0, "Ana", role)
        require_own_agent(own, "Bo")


def table() -> dict[Ask, dict[Caller, str]]:
    """Every ask with every caller's answer."""
    return {ask: {caller: answer(caller, ask) for caller in Caller} for ask in ASKS}


def rows_of_markdown() -> Iterator[str]:
    """The table as Markdown: one block of callers who prove who they are, one of those who do not."""
    proven = [caller for caller in Caller if caller not in _CREDENTIALS]
    yield f"| action | {' | '.join(proven)} |"
    yield f"|---|{'---|' * len(proven)}"
    for ask in ASKS:
        yield f"| {ask.words} | {' | '.join(answer(caller, ask) for caller in proven)} |"
    yield ""
    yield "Whoever proves nothing is refused before anything is asked:"
    yield ""
    yield "| caller | answer |"
    yield "|---|---|"
    for caller in _CREDENTIALS:
        yield f"| {caller} | {answer(caller, ASKS[0])} |"
