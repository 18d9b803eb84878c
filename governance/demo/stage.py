"""Where the demo's steps are played: how its data says times and texts, and what was made so far."""

from __future__ import annotations

import re
import textwrap
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from governance.people import policies
from governance.people.policies import Action
from memory.actors import Actor, Human
from memory.models import AgentMemory, Decision, Project, Run

_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


def span(text: str) -> timedelta:
    """`"12d 4h"` as a length of time."""
    parts = re.findall(r"(\d+)([dhm])", text)
    return timedelta(**{_UNITS[unit]: int(number) for number, unit in parts})


def text(block: str) -> str:
    """A text written with the indentation of the code around it."""
    return textwrap.dedent(block).strip()


@dataclass
class Stage:
    """Where the steps are played: the project and what was made so far, by label."""

    project_id: UUID
    runs: dict[str, UUID] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)
    decisions: dict[str, int] = field(default_factory=dict)
    memories: dict[str, int] = field(default_factory=dict)

    @property
    def project(self) -> Project:
        return Project.objects.get(pk=self.project_id)

    def run(self, label: str) -> Run:
        return Run.objects.select_related("agent", "project").get(pk=self.runs[label])

    def actor(self, by: str) -> Actor:
        return self.run(by).as_actor() if by in self.runs else Human(by)

    def allowed(self, by: str, action: Action) -> Actor:
        """The actor, once the permission module has said yes: what every edge asks before it calls a verb of `memory`."""
        actor = self.actor(by)
        policies.require(actor, action, self.project)
        return actor

    def keep(self, label: str, row: AgentMemory | Decision) -> None:
        rows = self.decisions if isinstance(row, Decision) else self.memories
        rows[label] = row.pk


@dataclass(frozen=True, kw_only=True)
class Step(ABC):
    ago: str
    by: str

    @abstractmethod
    def play(self, stage: Stage, now: datetime) -> None:
        """Do it, at the time `now`."""
