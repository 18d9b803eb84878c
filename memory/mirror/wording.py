"""The words teams put in headings: which are parts of a record, which are furniture of the file (SPEC 8).

Found by looking at many real ledgers. A heading that is not listed is judged by its level and by what stands under it.
"""

import re

from memory.mirror.dates import DatedHeading, split_date
from memory.mirror.names import Names
from memory.values import MAX_TITLE

_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_NUMBER = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?|[IVX]+\.|[a-z]\))\s+", re.IGNORECASE)
_TRIM = re.compile(r"^[\W_]+|[\W_]+$")
_BRACKETS = re.compile(r"\s*\([^()]*\)\s*$")

_LONGEST = 200
"""Characters of a heading that are looked at for its words."""

_PARTS = frozenset(
    """
    action items, actions, alternatives, appendix, approach, architecture, artifact, artifacts, assessment, background,
    benefits, caveats, change, changes, choice, conclusion, confirmation, consequences, considerations, constraints, context,
    coordination, cons, current state, decision, decisions, decision made, deferred, deliverables, dependencies, description,
    design, details, directive, discussion, enforcement, evidence, example, examples, executive summary, fallout, finding,
    findings, fix, follow-up, follow-ups, followup, future, future work, goal, goals, how, impact, impacts, implementation,
    implications, insight, insights, investigation, key decisions, key findings, key insight, learning, learnings, limitations,
    measurement, mechanics, mitigation, motivation, next, next step, next steps, notable finding, notes, open issues, options,
    outcome, outcomes, overview, patterns, plan, prevention, principle, principles, priority ordering, problem,
    problem statement, pros, proposal, purpose, question, questions, rationale, reason, reasoning, reasons, recommendation,
    recommendations, recommended actions, reference, references, rejected, related, requirements, resolution, result, results,
    review, risk, risks, rollback, root cause, root cause analysis, root causes, rule, rules, scope, scope boundary, sign-off,
    solution, specification, status, strategy, summary, symptom, symptoms, task, team impact, team implications, team notes,
    test, test coverage, test results, testing, testing strategy, tests, tl;dr, trade-offs, tradeoffs, triage decisions,
    usage, validation, verdict, verification, what, what changed, what was done, when, where, who, why, why it matters, why not,
    why this matters, workaround
    """.replace("\n", " ").replace("    ", "").split(", ")
)  # fmt: skip
_PARTS_START = re.compile(
    r"(?:alternatives? (?:considered|rejected)|options? considered|files? (?:changed|created|modified|referenced|examined|added)"
    r"|open questions?|proposed (?:fix|change)|next steps?|related |what changed|what (?:was|we|is|this)|why (?:this|it|we|not)|"
    r"how (?:this|it|we)|key (?:design|technical|architectural|files?|decisions?|patterns?)|implementation (?:details|notes|plan|points)"
    r"|test(?:s|ing)? (?:results?|status|coverage|plan|strategy)|current workaround|future (?:fix|work|enhancements?)"
    r"|action items|risks? |migration |acceptance criteria|success criteria|definition of done|affected )"
)
_CONTAINER = re.compile(
    r"(?:(?:active|archived?|team|squad|project|recent|merged|current|past|older|key|all|the|new|superseded|architecture|"
    r"architectural) )*(?:inbox )?decisions?(?: (?:archive|log|ledger|records?|index|history|inbox|register|journal))*"
)
_PLURAL = re.compile(r"decisions|log|ledger|archive|register|journal")
_FURNITURE = frozenset(
    (
        "governance",
        "archive",
        "decision archive",
        "how to use this file",
        "how to use",
        "format",
        "decision format",
        "entry format",
        "table of contents",
        "contents",
        "legend",
    )
)
_DECISION = re.compile(r"^decision\s*(?:[:—–]|\s-\s)\s*(?=\S)", re.IGNORECASE)
_HEAD_WORD = re.compile(
    r"(?:(?:architecture |process |scope |design )?decision|(?:user |owner )?directives?|adr)\b[^\w\s]*[\s:—–-]"
    r"|(?:D|DEC|ADR|DR|RFC)-?\d+\b|decision \d+\b",
    re.IGNORECASE,
)


def bare(text: str) -> str:
    """A heading in lower case without numbering, signs around it and what stands in brackets at its end."""
    trimmed = _TRIM.sub("", _BRACKETS.sub("", text[:_LONGEST]))
    return _TRIM.sub("", _NUMBER.sub("", trimmed)).lower()


def is_part(text: str) -> bool:
    """The heading is a usual part of a record: Context, Decision, Why, Files changed ..."""
    word = bare(text)
    return word in _PARTS or bool(_PARTS_START.match(word + " "))


def is_container(text: str) -> bool:
    """The heading announces records: `Active Decisions`, `Squad Decisions Archive`. `Decision` alone is a part."""
    word = bare(re.split(r"\s[—–|-]\s", text, maxsplit=1)[0])
    return bool(_CONTAINER.fullmatch(word) and _PLURAL.search(word))


def is_furniture(text: str) -> bool:
    """The heading is boilerplate, text and all: `Governance`."""
    return bare(text) in _FURNITURE


def announces_record(text: str) -> bool:
    """The heading says of itself that it is a decision: `Decision: ...`, `ADR-004 ...`, `User directive ...`."""
    return bool(_HEAD_WORD.match(text))


def one_line(text: str) -> str:
    """White space and control characters become single spaces: a title, a name or a focus holds none."""
    return _SPACE.sub(" ", text).strip()


def record_title(text: str, names: Names) -> tuple[str, DatedHeading, str | None]:
    """The title of a record's heading: without its date, the word `Decision:` and an author in brackets; and what was taken off."""
    dated = split_date(one_line(text))
    title, author = names.split_author(dated.title)
    title = _DECISION.sub("", title).strip()
    return title or one_line(text), dated, author or _aside_author(dated, names)


def _aside_author(dated: DatedHeading, names: Names) -> str | None:
    """`(Ana, 2026-04-29)`: beside a date in brackets stands an author, unless it is no name at all."""
    plausible = re.fullmatch(r"(?:[A-Z][\w'-]*(?: |$)){1,3}", dated.aside)
    return dated.aside if dated.aside and (plausible or names.is_author(dated.aside)) else None


def cut_title(title: str) -> str:
    """At most 300 characters, an ellipsis where it was cut."""
    return title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1].rstrip() + "…"
