"""Agents' folders (SPEC 8): charters and histories."""

from datetime import UTC, datetime

from memory.mirror.reading.records import CharterRecord, MemoryRecord
from tests.memory.mirror.files import reading


def history(text, **further):
    return reading({"agents/ana/history.md": text, **further})


def memories(report):
    return [(r.line, r.type, r.content) for r in report.of(MemoryRecord)]


def test_bullets_and_paragraphs_under_learnings_are_learnings():
    report = history(
        "# Ana — History\n\n## Learnings\n\n<!-- Append learnings below -->\n\n- One\n- **Two:** more\n  and more\n  - nested\n\nA paragraph.\n\n* Three\n"
    )
    assert memories(report) == [
        (7, "learning", "One"),
        (8, "learning", "**Two:** more\nand more\n- nested"),
        (12, "learning", "A paragraph."),
        (14, "learning", "Three"),
    ]
    assert [(s.line, s.reason) for s in report.skipped] == [(5, "comment")]
    assert {r.importance for r in report.of(MemoryRecord)} == {"medium"}


def test_a_part_with_prose_is_one_learning_and_a_part_of_bullets_one_for_each():
    report = history(
        "## Learnings\n\n### 2026-03-04: With prose\n\nText:\n- a\n- b\n\n#### Deeper\n\nMore.\n\n### Only bullets\n- c\n- d\n\n#### Under it\n- e\n"
    )
    assert memories(report) == [
        (3, "learning", "### 2026-03-04: With prose\n\nText:\n- a\n- b\n\n#### Deeper\n\nMore."),
        (14, "learning", "### Only bullets\n\nc"),
        (15, "learning", "### Only bullets\n\nd"),
        (18, "learning", "### Only bullets\n#### Under it\n\ne"),
    ]
    assert report.of(MemoryRecord)[0].created == datetime(2026, 3, 4, tzinfo=UTC)


def test_a_list_stays_with_the_paragraph_that_leads_into_it():
    report = history(
        "## Learnings\n\n**Tried two ways:**\n\n- a\n  - nested\n\n- b\n\nThen:\n\n1. x\n2. y\n\n```\ncode\n```\n"
    )
    assert [content for _, _, content in memories(report)] == [
        "**Tried two ways:**\n\n- a\n  - nested\n\n- b",
        "Then:\n\n1. x\n2. y\n\n```\ncode\n```",
    ]


def test_context_is_one_core_context_for_each_section():
    report = history(
        "# Project Context\n\n- **Owner:** O\n\n## Core Context\n\nAna tests.\n\n### My domain\n\nTests.\n\n## Learnings\n"
    )
    assert memories(report) == [
        (2, "core_context", "- **Owner:** O"),
        (6, "core_context", "Ana tests.\n\n### My domain\n\nTests."),
    ]


def test_dated_sections_and_pushpins_are_updates():
    report = history(
        "# Ana\n\n📌 **Team update (2026-03-26T06:41:00Z):** decided by Bo\n\n## 2026-03-27: Shipped\n\nText.\n\n## Learnings\n\n- Real\n\n📌 Team update: x\n"
    )
    assert memories(report) == [
        (3, "update", "📌 **Team update (2026-03-26T06:41:00Z):** decided by Bo"),
        (5, "update", "## 2026-03-27: Shipped\n\nText."),
        (11, "learning", "Real"),
        (13, "update", "📌 Team update: x"),
    ]
    assert [r.created for r in report.of(MemoryRecord)] == [
        datetime(2026, 3, 26, 6, 41, tzinfo=UTC),
        datetime(2026, 3, 27, tzinfo=UTC),
        None,
        None,
    ]


def test_other_sections_are_learnings_and_nothing_is_lost():
    report = history("# Ana\n\n> A motto\n\nPlain words.\n\n## Knowledge of the system\n\nText.\n")
    assert memories(report) == [
        (5, "learning", "Plain words."),
        (7, "learning", "## Knowledge of the system\n\nText."),
    ]
    assert [(s.line, s.words, s.reason) for s in report.skipped] == [(3, "> A motto", "preamble")]


def test_a_new_history_holds_no_learning():
    report = history(
        "# Project Context\n\n## Core Context\n\nAgent Ana initialized and ready for work.\n\n## Learnings\n\nInitial setup complete.\n"
    )
    assert memories(report) == []
    assert [s.reason for s in report.skipped] == ["boilerplate", "boilerplate"]


def test_headings_and_bullets_in_fences_are_no_learnings():
    report = history("## Learnings\n\n- One\n\n```\n- not\n## Not\n```\n\n- Two\n")
    assert memories(report) == [(3, "learning", "One\n\n```\n- not\n## Not\n```"), (10, "learning", "Two")]


def test_typed_headings_as_the_product_this_one_learned_from_writes_them():
    report = history(
        "# History\n\n## Learnings\n\n### [update] 2026-03-04\n\nText.\n\n### [learning] 2026-03-05\n\nMore.\n"
    )
    assert [(r.type, r.created) for r in report.of(MemoryRecord)] == [
        ("update", datetime(2026, 3, 4, tzinfo=UTC)),
        ("learning", datetime(2026, 3, 5, tzinfo=UTC)),
    ]


def test_a_repeat_in_one_history_is_skipped_and_the_same_words_of_another_agent_are_not():
    text = "## Learnings\n\n- Same\n"
    report = history(text + "\n" + text, **{"agents/bo/history.md": text})
    assert [(r.agent, r.line) for r in report.of(MemoryRecord)] == [("ana", 3), ("bo", 3)]
    assert [(s.line, s.reason, s.detail) for s in report.skipped] == [
        (7, "duplicate", ".squad/agents/ana/history.md#L3")
    ]


def test_a_charter_names_the_agent_as_it_spells_it():
    report = reading(
        {
            "agents/ana-maria/charter.md": "# Ana-Maria — Tester\n\nTests.\n",
            "agents/ana-maria/history.md": "## Learnings\n- One\n",
            "agents/Rai/charter.md": "Charter without a heading\n",
            "agents/eecom/charter.md": "# The EECOM charter\n",
        }
    )
    assert [(r.kind, r.agent) for r in report.records] == [
        ("charter", "Rai"),
        ("charter", "Ana-Maria"),
        ("memory", "Ana-Maria"),
        ("charter", "EECOM"),
    ]
    assert report.of(CharterRecord)[1].content == "# Ana-Maria — Tester\n\nTests."


def test_archived_histories_and_former_agents_are_archives():
    files = {
        "agents/ana/history-archive.md": "## Learnings\n- Old\n",
        "agents/ana/history.original.md": "## Learnings\n- Copy\n",
        "agents/_alumni/bo/charter.md": "# Bo\n",
        "agents/_alumni/bo/history.md": "## Learnings\n- Gone\n",
        "agents/ana/notes.md": "x",
        "agents/_shared/charter.md": "x",
    }
    report = reading(files)
    assert (report.records, report.not_selected) == ((), {"archives": 3, "backups": 1})
    assert [item.reason for item in report.unread] == ["not_memory", "not_memory"]
    chosen = reading(files, ("archives",))
    assert [(r.kind, r.agent) for r in chosen.records] == [
        ("charter", "Bo"),
        ("memory", "Bo"),
        ("memory", "ana"),
    ]


def test_scaffolding_and_logs_give_no_agents_and_no_memories():
    files = dict.fromkeys(
        [
            "templates/history.md",
            "history.md",
            "charter.md",
            "roster.md",
            "log/x.md",
            "team.md",
            "identity/wisdom.md",
            "casting/registry.json",
        ],
        "## Learnings\n- No\n",
    )
    report = reading({"decisions.md": "", **files})
    assert (report.found, {item.path.removeprefix(".squad/"): item.reason for item in report.unread}) == (
        0,
        {
            "casting/registry.json": "not_markdown",
            "charter.md": "not_memory",
            "history.md": "not_memory",
            "identity/wisdom.md": "not_memory",
            "log/x.md": "log",
            "roster.md": "not_memory",
            "team.md": "not_memory",
            "templates/history.md": "template",
        },
    )
