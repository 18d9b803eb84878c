"""A second, small project under the strict policy: nothing eligible yet, so its runs are told nothing but their charter."""

from governance.demo.stage import Step
from governance.demo.steps import (
    EndRun,
    Join,
    NoteSession,
    Propose,
    Remember,
    StartRun,
    StartSession,
    TellRun,
)

STEPS: tuple[Step, ...] = (
    Join(ago="12d", by="mara", user="tobias", role="contributor"),
    Join(ago="12d", by="mara", user="dispatch", role="orchestrator"),
    StartSession(ago="11d", by="tobias", id="handbook-outline", focus="Outline of the harbour master's handbook"),
    StartRun(
        ago="11d", by="dispatch", run="hb-1", agent="Gull",
        charter="You are Gull. You write the handbook for harbour masters.",
    ),
    NoteSession(ago="10d 23h", by="tobias", summary="Outline with nine chapters agreed.", end=True),
    TellRun(ago="10d 22h", by="dispatch", run="hb-1"),
    Remember(
        ago="10d 21h", by="hb-1", agent="Gull", type="core_context",
        content="The handbook is printed once a year, in A5, and hangs on a string in the office.",
    ),
    Propose(
        ago="10d 20h", by="hb-1", agent="Gull", slug="nine-chapters", type="scope",
        title="Nine chapters, none longer than six pages",
        content="Arrivals, shifts, departures, deposits, invoices, weather, power, people, when it breaks.",
    ),
    EndRun(ago="10d 20h", by="dispatch", run="hb-1", summary="Outline written."),
)  # fmt: skip
