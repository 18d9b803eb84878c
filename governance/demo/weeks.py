"""The weeks after: partners, payments, a wrong policy, and today's runs."""

from governance.deciding.gate import Corrections
from governance.demo.long_texts import RUNBOOK
from governance.demo.stage import Step, text
from governance.demo.steps import (
    ApproveMemory,
    Archive,
    Decide,
    EditDecision,
    EditMemory,
    EndRun,
    Merge,
    NoteSession,
    Propose,
    Reject,
    Remember,
    RetireMemory,
    SetPolicy,
    StartRun,
    StartSession,
    Supersede,
    TellRun,
    full_disk,
)
from memory.compiling.compiler import Limits

PARTNERS: tuple[Step, ...] = (
    Decide(
        ago="22d 5h", by="tobias", label="partner-webhooks", agent="Keel", type="architectural",
        title="Booking partners get webhooks",
        content="We post each change of a free berth to the partner's endpoint within five seconds; polling stays for those who cannot receive.",
        rationale="Polling every five minutes sold the same berth twice on three Saturdays.",
        tags="partners",
    ),
    Supersede(
        ago="22d 5h", by="tobias", decision="partner-polling", successor="partner-webhooks",
        reason="Polling sold berths twice.",
    ),
    StartSession(
        ago="21d", by="ines", id="sprint-2-partners", focus="Partners hear of a free berth within five seconds",
        issues=("KAI-31 webhook delivery", "KAI-33 what a partner may see"),
    ),
    StartRun(
        ago="20d 6h", by="dispatch", run="kai-117", agent="Sounder",
        charter="You are Sounder. You find out what is not true yet. A test that cannot fail is worse than none.",
    ),
    TellRun(ago="20d 6h", by="dispatch", run="kai-117"),
    Remember(
        ago="20d 5h", by="kai-117", agent="Sounder", type="core_context", label="sounder-core",
        content="`recorded/` holds 200 real days of Grimsund as event lists. A planner change is judged by the diff of all 200 plans, not by invented cases.",
    ),
    Propose(
        ago="20d 4h", by="kai-117", agent="Sounder", slug="clock-in-tests", type="pattern",
        title="Pass the clock in, never freeze it",
        content="Functions that need the time take `now`. Frozen clocks hid a night that was billed twice when summer time ended.",
        tags="cross-team, tests",
    ),
    Propose(
        ago="20d 4h", by="kai-117", agent="Sounder", slug="flaky-harbour-map", type="update",
        title="The map test is not flaky any more",
        content="It waited for a font. Fonts are served by us now; 500 runs without a failure. The advice to retry it can go.",
    ),
    EndRun(ago="20d 3h", by="dispatch", run="kai-117", summary="Night billing tested over both changes of the clock."),
    Remember(
        ago="19d 4h", by="ines", agent="Keel", type="learning", importance="high", label="keel-webhook-order",
        content="Partners receive webhooks out of order whenever a retry overtakes a newer one. Send the log's line number along; the receiver keeps the highest it has seen per berth.",
        tags="partners",
    ),
    ApproveMemory(ago="18d 20h", by="tobias", memory="keel-webhook-order"),
    Remember(
        ago="18d 6h", by="ines", agent="Keel", type="learning", importance="low",
        content="`psql` on the sandbox needs `PGSSLMODE=require` since the certificate change.", label="keel-psql",
    ),
    Remember(
        ago="18d 5h", by="ines", agent="Keel", type="learning", importance="high", label="keel-cache",
        content="The plan of a whole day can be cached for ten minutes.",
    ),
    Propose(
        ago="17d 4h", by="tobias", agent="Keel", slug="integer-cents", type="architectural",
        title="Money is an integer number of cents with a currency",
        content="No floats, no decimals. `Money(cents: Long, currency: Currency)`; rounding happens once, when a night's price is computed, half up.",
        rationale="The nightly sum and the invoice differed by 1 cent in 2 % of the stays.",
        tags="money",
    ),
    Merge(ago="17d 2h", by="mara", entry="integer-cents"),
    Propose(
        ago="16d 8h", by="ines", agent="Gull", slug="weekly-newsletter", type="process",
        title="A newsletter to all harbours every Friday",
        content="Every Friday Gull writes what changed and sends it to all harbour masters.",
    ),
    Reject(
        ago="16d 2h", by="tobias", entry="weekly-newsletter",
        reason="Harbour masters asked for fewer mails, not more. A page they can look at is fine: propose that.",
    ),
    StartRun(ago="15d 5h", by="dispatch", run="kai-121", agent="Ballast"),
    TellRun(ago="15d 5h", by="dispatch", run="kai-121"),
    Propose(
        ago="15d 4h", by="kai-121", agent="Ballast", slug="move-to-arm-machines", type="technical",
        title="Move the sandbox to ARM machines",
        content="A third cheaper at the same speed in our replay; images build for both.",
    ),
    EndRun(ago="15d 3h", by="dispatch", run="kai-121", status="cancelled", summary="Stopped by Tobias: the release came first."),
    RetireMemory(
        ago="14d 20h", by="mara", memory="keel-cache",
        reason="Wrong since webhooks: a cached plan sold a berth that was taken four minutes before.",
    ),
)  # fmt: skip

PAYMENTS: tuple[Step, ...] = (
    StartSession(
        ago="13d", by="ines", id="sprint-3-deposits", focus="Deposits that can be refunded without a phone call",
        issues=("KAI-40 deposit rules", "KAI-44 refund to the card that paid"),
    ),
    Decide(
        ago="11d 6h", by="mara", label="partner-signed", agent="Keel", type="architectural",
        title="Webhooks to partners are signed and numbered",
        content=text("""
            Each delivery carries the log's line number and `X-Kaimauer-Signature`: HMAC-SHA-256 over the raw body with the partner's own key.
            A receiver ignores a number it has seen. Keys are changed twice a year, two are valid meanwhile.
        """),
        rationale="A partner's test page accepted a forged \"berth free\" from anyone who knew the address.",
        tags="partners, security",
    ),
    Supersede(
        ago="11d 6h", by="mara", decision="partner-webhooks", successor="partner-signed",
        reason="Unsigned webhooks could be forged.",
    ),
    Decide(
        ago="10d 5h", by="mara", label="offline-handheld", agent="Lantern", type="architectural",
        title="The handheld works without a network",
        content="Arrivals are written on the device first and sent when there is a network.",
        rationale="There is no reception behind the breakwater.",
        tags="handheld",
    ),
    EditDecision(
        ago="8d 3h", by="tobias", decision="offline-handheld",
        content="Arrivals and departures are written on the device first and sent when there is a network. When two devices claim one berth, the earlier device time wins and the other harbour master is told; nothing is dropped in silence.",
    ),
    Archive(ago="9d 3h", by="mara", decision="pilot-harbour", reason="The pilot is over: Grimsund and Hafnarvík both run on real data."),
    StartRun(
        ago="9d 8h", by="dispatch", run="kai-126", agent="Nour",
        charter="You are Nour. You make the product speak the harbour's languages, right to left as well as left to right.",
    ),
    TellRun(ago="9d 8h", by="dispatch", run="kai-126"),
    Remember(
        ago="9d 7h", by="kai-126", agent="Nour", type="core_context", label="nour-core",
        content="Languages: en, nb, is, de, ar, he. Boat names are never translated and keep their own direction: wrap them in `<bdi>`.",
    ),
    Propose(
        ago="9d 6h", by="kai-126", agent="Nour", slug="arabic-plurals", type="learning",
        title="Arabic needs six plural forms ⚓",
        content=text("""
            "3 berths free" cannot be put together from a number and a word. Arabic has six forms, and the noun changes with them:

            - 0: لا توجد أرصفة شاغرة
            - 1: رصيف واحد شاغر
            - 2: رصيفان شاغران
            - 3 to 10: ٣ أرصفة شاغرة
            - 11 to 99: ١١ رصيفًا شاغرًا
            - 100: ١٠٠ رصيف شاغر

            Hebrew is simpler (רציף אחד פנוי, שני רציפים פנויים, 3 רציפים פנויים). Use the message format's `plural`, never `if (n == 1)`.
        """),
        tags="cross-team, i18n",
    ),
    EndRun(ago="9d 5h", by="dispatch", run="kai-126", summary="Arabic and Hebrew through the whole arrival flow. 🌍"),
    Remember(
        ago="8d 7h", by="ines", agent="Ballast", type="core_context", label="ballast-core",
        content="Two machines in two towns, PostgreSQL with one replica, releases on Tuesdays before ten. No release on a day with a regatta.",
    ),
    ApproveMemory(ago="8d 2h", by="mara", memory="ballast-core"),
    ApproveMemory(
        ago="8d 2h", by="mara", memory="lantern-core", corrections=Corrections(tags="map"),
    ),
    EditMemory(
        ago="7d 20h", by="ines", memory="pilot-core",
        content="Harbour masters are on the quay with gloves on, often in rain. Whatever they need more than twice a day works with one thumb and without reading.",
    ),
)  # fmt: skip

WRONG_POLICY: tuple[Step, ...] = (
    SetPolicy(ago="6d 5h", by="tobias", policy={"max_tokens": 300, "on_overflow": "fail"}),
    StartRun(ago="6d 4h", by="dispatch", run="kai-131", agent="Keel"),
    TellRun(ago="6d 4h", by="dispatch", run="kai-131"),
    SetPolicy(ago="6d 3h", by="mara", policy={"max_tokens": 1800, "on_overflow": "include"}),
    TellRun(ago="6d 3h", by="dispatch", run="kai-131"),
    Propose(
        ago="6d 2h", by="kai-131", agent="Keel", slug="refund-window", type="learning",
        title="Card refunds are refused after 180 days",
        content="The provider answers `refund_window_closed` 180 days after the payment. Deposits for next summer are paid up to 300 days ahead: those refunds need a bank transfer.",
        rationale="Found in the provider's sandbox; their documentation says 365.",
    ),
    Propose(
        ago="6d 1h", by="kai-131", agent="Keel", slug="deposit-as-log-line", type="architectural",
        title="A deposit is a line of the berth log",
        content="Deposit paid, kept and refunded become log lines with the stay's id. The invoice job reads them like any other line.",
        rationale="Deposits kept in a table of their own were already out of step with the log twice this week.",
        tags="money, berth-log",
    ),
    EndRun(ago="6d", by="dispatch", run="kai-131", summary="Refund flow against the provider's sandbox; late refunds need a transfer."),
    Remember(
        ago="5d 6h", by="ines", agent="Keel", type="pattern", importance="high", label="keel-idempotent",
        content="Every call to the payment provider carries an idempotency key made of stay id and log line. A retry is then free; without it the sandbox charged 3 of 1,000 cards twice.",
    ),
    Remember(
        ago="5d 5h", by="ines", agent="Keel", type="learning", importance="high", label="keel-dst",
        content="A night is 23 or 25 hours long twice a year. Count calendar dates in the harbour's zone, never hours divided by 24.",
    ),
    Remember(
        ago="5d 4h", by="ines", agent="Keel", type="learning", importance="high", label="keel-locks", tags="cross-team",
        content="`SELECT … FOR UPDATE` on the berth, then on the stay, always in this order. The other order deadlocked on the first busy Saturday.",
    ),
    Remember(
        ago="5d 3h", by="ines", agent="Keel", type="learning", importance="high", label="keel-length",
        content="Boat lengths come in feet from two partners although their documentation says metres. Anything above 60 is feet.",
    ),
    Remember(
        ago="5d 2h", by="ines", agent="Keel", type="update", importance="high", label="keel-update",
        content="The replay of 200 days takes 0.9 s now, not 1.4 s: ranges are compared in the database.",
    ),
)  # fmt: skip

RECENT: tuple[Step, ...] = (
    StartRun(ago="3d 7h", by="dispatch", run="kai-135", agent="Lantern"),
    TellRun(ago="3d 7h", by="dispatch", run="kai-135"),
    Propose(
        ago="3d 6h", by="kai-135", agent="Lantern", slug="focus-after-save", type="pattern",
        title="After saving, focus goes to the next boat",
        content="On the arrivals list the focus moves to the next row after a save, and a live region says what was saved. Without that a screen-reader user starts again at the top, forty times an evening.",
        tags="cross-team, accessibility",
    ),
    Propose(
        ago="3d 6h", by="kai-135", agent="Lantern", slug="colour-is-not-enough", type="learning",
        title="Free and taken need more than colour",
        content="Taken berths are hatched, free ones are plain; the colours stay. Two of the nine harbour masters cannot tell our green from our red.",
    ),
    TellRun(ago="3d 5h 30m", by="dispatch", run="kai-135", limits=Limits(max_items=2)),
    EndRun(ago="3d 5h", by="dispatch", run="kai-135", summary="Arrivals by keyboard alone; hatching on the map."),
    ApproveMemory(ago="2d 20h", by="mara", memory="arabic-plurals", corrections=Corrections(importance="high")),
    Remember(
        ago="2d 6h", by="tobias", agent="Sounder", type="learning", importance="high", label="sounder-sql", tags="cross-team",
        content="A test that asserts the number of SQL statements found more faults in the planner than all timing tests together. Three rows and thirty rows must cost the same number.",
    ),
    Remember(
        ago="2d 5h", by="tobias", agent="Lantern", type="learning", importance="medium", label="lantern-print",
        content="Harbour offices print the map on A3 in black and white every morning. `@media print` matters.",
    ),
    Remember(ago="1d 20h", by="ines", agent="Ballast", type="core_context", label="ballast-runbook", content=RUNBOOK),
    StartRun(
        ago="1d 6h", by="dispatch", run="kai-138", agent="Gull",
        charter="You are Gull. You write so that a harbour master understands it standing up.",
    ),
    TellRun(ago="1d 6h", by="dispatch", run="kai-138"),
    Propose(
        ago="1d 5h", by="kai-138", agent="Gull", slug="one-page-per-task", type="pattern",
        title="One page per task, one picture per page",
        content="Each help page answers one question of a harbour master and fits on one sheet. The title is the question.",
    ),
    EndRun(ago="1d 4h", by="dispatch", run="kai-138", summary="Help pages for arrival, shift and departure.", exporter=full_disk),
    NoteSession(
        ago="20h", by="ines", issues=("KAI-40 deposit rules", "KAI-44 refund to the card that paid", "KAI-47 late refunds by transfer"),
    ),
    StartRun(ago="2h", by="dispatch", run="kai-140", agent="Pilot", role="coordinator"),
    TellRun(ago="2h", by="dispatch", run="kai-140"),
    Merge(ago="1h 50m", by="kai-140", entry="logs-for-ninety-days"),
    StartRun(ago="1h 45m", by="dispatch", run="kai-141", agent="Keel", parent="kai-140"),
    TellRun(ago="1h 45m", by="dispatch", run="kai-141"),
    StartRun(ago="1h 40m", by="dispatch", run="kai-142", agent="Sounder", parent="kai-140"),
    TellRun(ago="1h 40m", by="dispatch", run="kai-142"),
    StartRun(ago="1h", by="dispatch", run="kai-143", agent="Ballast"),
    TellRun(ago="55m", by="dispatch", run="kai-143"),
)  # fmt: skip

STEPS = (*PARTNERS, *PAYMENTS, *WRONG_POLICY, *RECENT)
