"""The first ten days of Kaimauer, a berth planner for small harbours: people, charters, the first decisions and a bad week."""

from pathlib import Path

from governance.deciding.gate import Corrections
from governance.demo.stage import Step, text
from governance.demo.steps import (
    ApproveDecision,
    ApproveMemory,
    Archive,
    Decide,
    EndRun,
    Import,
    Join,
    JoinAsGroup,
    Merge,
    NoteSession,
    Propose,
    Reject,
    Remember,
    RetireMemory,
    SetPolicy,
    StartRun,
    StartSession,
    TellRun,
)

PEOPLE: tuple[Step, ...] = (
    Join(ago="34d 6h", by="mara", user="tobias", role="owner"),
    Join(ago="34d 6h", by="mara", user="ines", role="contributor"),
    Join(ago="34d 6h", by="mara", user="yusuf", role="viewer"),
    Join(ago="34d 6h", by="mara", user="dispatch", role="orchestrator"),
    JoinAsGroup(ago="34d 6h", by="mara", group="harbour-board", role="viewer"),
    SetPolicy(ago="34d 5h", by="mara", policy={"max_items": 8, "max_tokens": 1800}),
)

FIRST_DECISIONS: tuple[Step, ...] = (
    Decide(
        ago="33d 4h", by="mara", label="berth-log", agent="Pilot", type="architectural",
        title="The berth log is the only truth about who lies where",
        content="Every arrival, shift and departure is one appended line in the berth log. Plans, invoices and the harbour map are computed from it; nothing else stores an occupancy.",
        rationale="Last season the map and the invoices disagreed 41 times, and nobody could say which one was right.",
        tags="berth-log, data",
    ),
    Decide(
        ago="33d 3h", by="mara", label="guest-berths", agent="Pilot", type="scope",
        title="Version 1 plans guest berths only",
        content="Permanent berths, dry storage and fuel are out until two harbours have run a whole season on guest berths.",
        rationale="Guest berths are where harbour masters lose money today.",
        tags="v1",
    ),
    Decide(
        ago="33d 2h", by="tobias", label="partner-polling", agent="Keel", type="architectural",
        title="Booking partners poll us over REST",
        content="Partners ask `GET /v1/berths?since=…` every five minutes. We push nothing.",
        rationale="Nobody has to run a public endpoint.",
        tags="partners",
    ),
    Decide(
        ago="32d 22h", by="mara", label="pilot-harbour", agent="Pilot", type="scope",
        title="One pilot harbour until the end of May",
        content="Only Grimsund gets real data. Every other harbour sees the sandbox.",
    ),
    Decide(
        ago="32d 20h", by="tobias", label="two-reviews", agent="Sounder", type="process",
        title="Two reviews for anything that touches money",
        content="One of the two reviewers has to be a person. Invoices, refunds and deposits count as money.",
    ),
    Decide(
        ago="32d 19h", by="tobias", label="tide-tables", agent="Ballast", type="technical",
        title="Tide tables are pinned per release",
        content="`tides/` is vendored at a fixed revision; an update is a change like any other.",
        rationale="An upstream correction once moved low water at Grimsund by 20 minutes in the middle of a test run.",
    ),
)  # fmt: skip

WORKSPACE = Path(__file__).parent / "workspace"

OLD_FILES: tuple[Step, ...] = (
    Import(ago="32d 12h", by="mara", folder=WORKSPACE),
    ApproveDecision(
        ago="32d 10h", by="mara", decision="Kotlin for the service", corrections=Corrections(type="architectural"),
    ),
    ApproveDecision(
        ago="32d 10h", by="mara", decision="Prices per metre and night",
        corrections=Corrections(type="scope", tags="money"),
    ),
    Archive(
        ago="32d 9h", by="tobias", decision="🚫 No fuel in version 1",
        reason="Said better by the scope of version 1.",
    ),
    ApproveMemory(
        ago="31d 5h", by="mara", memory="### 2025-10-28: Rafted boats leave in the wrong order",
        corrections=Corrections(importance="high", tags="berth-log"),
    ),
    RetireMemory(
        ago="31d 4h", by="tobias", memory="### 2025-11-21: Credentials in a backup",
        reason="The key it speaks of is dead, and nobody should be pointed at where keys once lay.",
    ),
)  # fmt: skip

FOUNDATIONS: tuple[Step, ...] = (
    StartSession(
        ago="32d", by="ines", id="sprint-1-berth-log", focus="Get the berth log right before anything is drawn on a map",
        issues=("KAI-12 log format", "KAI-15 import of last season's spreadsheet"),
    ),
    StartRun(
        ago="30d 6h", by="dispatch", run="kai-101", agent="Pilot", role="coordinator",
        charter="You are Pilot. You split work into runs, keep scope small, and write down what was decided and why.",
    ),
    TellRun(ago="30d 6h", by="dispatch", run="kai-101"),
    Propose(
        ago="30d 5h", by="kai-101", agent="Pilot", slug="times-in-utc", type="architectural",
        title="Store times in UTC, show them in the harbour's zone",
        content="The log stores UTC with seconds. Each harbour has one IANA zone; every screen and every invoice line is rendered in that zone.",
        rationale="Grimsund and Hafnarvík bill by calendar night, and a night is local.",
        tags="berth-log, time",
    ),
    StartRun(
        ago="30d 4h", by="dispatch", run="kai-102", agent="Keel", parent="kai-101",
        charter="You are Keel. You own the service: the berth log, the planner's rules and the partners' interface. Kotlin, PostgreSQL, no framework magic.",
    ),
    TellRun(ago="30d 4h", by="dispatch", run="kai-102"),
    Remember(
        ago="30d 3h", by="kai-102", agent="Keel", type="core_context", label="keel-core",
        content=text("""
            Service layout: `log/` (append and replay), `plan/` (pure functions, no I/O), `http/` (edges), `jobs/` (nightly invoices).
            `plan` never imports `log`: it gets a list of events and returns a plan. That is what makes it testable with 200 recorded days.
        """),
    ),
    Remember(
        ago="30d 2h", by="kai-102", agent="Keel", type="learning", importance="high", label="keel-overlap",
        content=text("""
            Two boats may share one berth when their combined length fits, so `berth_id` alone is no key for an overlap check. Compare metres:

            ```kotlin
            fun fits(berth: Berth, others: List<Stay>, boat: Boat): Boolean =
                others.sumOf { it.boat.lengthCm } + boat.lengthCm + 100 * others.size <= berth.lengthCm
            ```

            The 100 cm per neighbour is the fender rule of Grimsund, not physics: it belongs in the harbour's settings.
        """),
    ),
    EndRun(ago="30d 1h", by="dispatch", run="kai-102", summary="Log format with append and replay; 200 recorded days replay in 1.4 s."),
    EndRun(ago="30d", by="dispatch", run="kai-101", summary="Berth log split into four runs; times settled."),
    ApproveMemory(ago="29d 20h", by="mara", memory="keel-core"),
    Remember(
        ago="29d 8h", by="ines", agent="Pilot", type="core_context", label="pilot-core",
        content="Harbour masters are on the quay with gloves on. Whatever they need more than twice a day has to work with one thumb.",
    ),
    Remember(
        ago="29d 6h", by="ines", agent="Lantern", type="core_context", label="lantern-core",
        content="The map is SVG, one `<g>` per pontoon, drawn on the server. No map library: the largest harbour has 340 berths.",
    ),
)  # fmt: skip

BAD_WEEK: tuple[Step, ...] = (
    StartRun(
        ago="27d 5h", by="dispatch", run="kai-108", agent="Lantern",
        charter="You are Lantern. You draw the harbour and everything people touch. Accessible first, fast second, pretty third.",
    ),
    TellRun(ago="27d 5h", by="dispatch", run="kai-108"),
    Propose(
        ago="27d 4h", by="kai-108", agent="Lantern", slug="svg-hit-areas", type="learning",
        title="Berths narrower than 24 px need a hit area of their own",
        content="A berth of 2.2 m is 9 px wide on a phone. A transparent `<rect>` of at least 24 × 24 px on top takes the tap; the visible one stays true to scale.",
        rationale="Measured on three phones: 31 of 50 taps missed before, 2 after.",
    ),
    Propose(
        ago="27d 3h 30m", by="kai-108", agent="Lantern", slug="wasm-map", type="architectural",
        title="Draw the map in WebAssembly",
        content="Replace the server's SVG by a canvas drawn in WebAssembly.",
        rationale="It would be faster with thousands of berths.",
    ),
    EndRun(ago="27d 3h", by="dispatch", run="kai-108", summary="Harbour map with taps that hit; contrast checked in daylight."),
    Reject(
        ago="26d 20h", by="mara", entry="wasm-map",
        reason="No harbour has thousands of berths, and a canvas cannot be read by a screen reader. Come back with a harbour that needs it.",
    ),
    StartRun(
        ago="26d 3h", by="dispatch", run="kai-111", agent="Ballast",
        charter="You are Ballast. You own what everything stands on: releases, backups, machines. You prefer boring.",
    ),
    TellRun(ago="26d 3h", by="dispatch", run="kai-111"),
    Propose(
        ago="26d 2h", by="kai-111", agent="Ballast", slug="restore-every-monday", type="pattern",
        title="A backup counts once it was restored",
        content="Every Monday at 05:00 the newest backup is restored into an empty database and the berth log is replayed. The job fails when the replayed plan differs from the live one by a single berth.",
        rationale="Of the first five backups two could not be restored: the dump lacked the extension for ranges.",
        tags="cross-team, backups",
    ),
    EndRun(ago="26d 1h", by="dispatch", run="kai-111", summary="Backups are restored on a schedule; two old ones were found useless."),
    ApproveMemory(ago="25d 22h", by="tobias", memory="restore-every-monday"),
    StartRun(
        ago="25d 8h", by="dispatch", run="kai-113", agent="Keel",
    ),
    TellRun(ago="25d 8h", by="dispatch", run="kai-113"),
    Propose(
        ago="25d 7h", by="kai-113", agent="Keel", slug="spreadsheet-duplicates", type="learning",
        title="Last season's spreadsheet holds 312 arrivals twice",
        content=text("""
            The import stopped at line 4,108. Twice the same arrival, once typed on the quay and once in the office:

            | line | boat | berth | arrival | typed by |
            |---|---|---|---|---|
            | 4107 | SY Undine | B14 | 2 July, 18:40 | quay |
            | 4108 | S/Y UNDINE | B 14 | 2 July, 18:55 | office |

            312 such pairs. Name and berth have to be folded (case, spaces, `S/Y`) before lines are compared, and 30 minutes is a good window.
        """),
        rationale="Found by the run that failed on it.",
    ),
    EndRun(ago="25d 6h", by="dispatch", run="kai-113", status="failed", summary="Import of the spreadsheet stopped at line 4,108: duplicate arrival."),
    Merge(ago="25d 1h", by="tobias", entry="spreadsheet-duplicates"),
    NoteSession(
        ago="25d", by="ines", issues=("KAI-15 import of last season's spreadsheet",),
        summary="The log is settled and replays. The spreadsheet is dirtier than hoped: 312 arrivals were typed twice.",
    ),
)  # fmt: skip

STEPS = (*PEOPLE, *FIRST_DECISIONS, *OLD_FILES, *FOUNDATIONS, *BAD_WEEK)
