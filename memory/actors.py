"""Who acts, and how an actor is written on a row (SPEC 3, Provenance).

An actor is what the server resolved from a credential, never what a body claims. Identities cannot be forged by naming:
user names hold no colon (a database constraint), so `run:…`, `scribe:…` and `import:…` belong to the product alone.
"""

from dataclasses import dataclass
from uuid import UUID

from memory.enums import RunRole, SourceKind

SCRIBE_PREFIX = "scribe:"


@dataclass(frozen=True, slots=True)
class Provenance:
    """The three source fields of a row."""

    kind: SourceKind
    identity: str
    run_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Human:
    """A signed-in person or a service account, by user name."""

    username: str

    @property
    def identity(self) -> str:
        return self.username

    @property
    def provenance(self) -> Provenance:
        return Provenance(SourceKind.HUMAN, self.username)


@dataclass(frozen=True, slots=True)
class VerifiedRun:
    """A run that proved itself with its credential in this very request."""

    run_id: UUID
    project_id: UUID
    agent_id: int
    agent_name: str
    role: RunRole

    @property
    def identity(self) -> str:
        return f"run:{self.run_id}"

    @property
    def provenance(self) -> Provenance:
        return Provenance(SourceKind.RUN, self.identity, self.run_id)

    @property
    def is_coordinator(self) -> bool:
        return self.role == RunRole.COORDINATOR


@dataclass(frozen=True, slots=True)
class Scribe:
    """The automatic step after a completed run. It may promote that run's own findings, and nothing else (SPEC 6)."""

    run_id: UUID

    @property
    def identity(self) -> str:
        return f"{SCRIBE_PREFIX}{self.run_id}"


@dataclass(frozen=True, slots=True)
class Finalisation:
    """A completed coordinator run's own proposals being promoted: written as the run that made them (SPEC 6)."""

    run_id: UUID

    @property
    def identity(self) -> str:
        return f"run:{self.run_id}"


@dataclass(frozen=True, slots=True)
class Shell:
    """Whoever runs `manage.py` on the server: the operating system's user, not a person of the product.

    The space and the brackets keep it apart from every user name, so a command can neither pose as a person nor a person as a
    command. It holds no grant: commands do what they do because whoever can run them can reach the database anyway.
    """

    login: str

    @property
    def identity(self) -> str:
        return f"command ({self.login})"


Actor = Human | VerifiedRun
"""Someone who can ask for something. The scribe and the finalisation are no one's caller."""

Author = Human | VerifiedRun | Scribe | Finalisation | Shell
"""Whoever can stand on a ledger event."""


def imported_from(path: str, line: int) -> Provenance:
    """Provenance of a row read from a file: `import:{path}#L{line}`, always legacy."""
    return Provenance(SourceKind.LEGACY, f"import:{path}#L{line}")
