"""Ledgers (SPEC 8; B02, B04, B08): which heading is a record, and what a record says of itself."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from memory.mirror.reading.records import DecisionRecord
from memory.mirror.reading.report import TreeReading
from tests.memory.mirror.files import ledger, reading

BY = "**By:** Ana\n\nText.\n\n"


@dataclass(frozen=True)
class Row:
    line: int
    title: str
    date: str | None = None
    authors: str | None = "Ana"


def rows(report: TreeReading) -> list[Row]:
    return [Row(r.line, r.title, r.date, r.authors) for r in report.of(DecisionRecord)]


def only(report: TreeReading):
    (record,) = report.of(DecisionRecord)
    return record


def loose(report: TreeReading) -> list[tuple[int, str, str]]:
    return [(item.line, item.words, item.reason) for item in report.skipped]


def test_dated_headings_are_records_and_furniture_is_not():
    report = ledger(
        "# Squad Decisions\n\n## Active Decisions\n\n### 2026-03-13: One\n**By:** Ana\n\nText.\n\n"
        "## Governance\n\n- All changes need consensus\n\n### 2026-03-14: Two\n**By:** Ana\n\nText.\n"
    )
    assert rows(report) == [Row(5, "One", "2026-03-13"), Row(14, "Two", "2026-03-14")]
    assert loose(report) == [(12, "- All changes need consensus", "boilerplate")]


def test_a_pasted_inbox_file_is_one_record_with_its_parts():
    """B02: the parts of a pasted file stand at a higher level than the record."""
    report = ledger(
        "### 2026-08-18: Before\n**By:** Ana\n\nText.\n\n"
        "### 2026-08-19: Title\n\n## Context\n\nBecause.\n\n## Decision\n\nSo.\n\n## Consequences\n\nThen.\n\n"
        "### 2026-08-20: After\n**By:** Ana\n\nText.\n"
    )
    assert [row.title for row in rows(report)] == ["Before", "Title", "After"]
    content = report.of(DecisionRecord)[1].content
    assert content == "## Context\n\nBecause.\n\n## Decision\n\nSo.\n\n## Consequences\n\nThen."


def test_parts_with_unusual_names_of_a_pasted_file_stay_with_it():
    report = ledger(
        "### 2026-08-19: Title\n**By:** Ana\n\n## The shape of it\n\nText.\n\n### Files touched by this\n\nText.\n\n"
        "## How it went\n\nText.\n\n### 2026-08-20: After\n**By:** Ana\n\nText.\n"
    )
    assert [row.title for row in rows(report)] == ["Title", "After"]


def test_a_record_without_a_date_between_dated_ones_has_no_date():
    """B04: not today, and not the date of a neighbour."""
    report = ledger(
        "### 2026-01-01: First\n**By:** Ana\n\nText.\n\n### Type safety, strict mode\n\nText.\n\n"
        "### 2026-01-03: Third\n**By:** Ana\n\nText.\n"
    )
    assert [(r.title, r.date, r.created) for r in report.of(DecisionRecord)] == [
        ("First", "2026-01-01", datetime(2026, 1, 1, tzinfo=UTC)),
        ("Type safety, strict mode", None, None),
        ("Third", "2026-01-03", datetime(2026, 1, 3, tzinfo=UTC)),
    ]


def test_in_a_file_with_rules_above_records_a_heading_without_one_is_a_part():
    record = "---\n\n## 2026-01-0{0} — Title {0}\n**By:** Ana\n\nText.\n\n"
    text = "# Decisions\n\n" + "".join(record.format(n) for n in range(1, 5))
    report = ledger(text + "## State of things\n\nText.\n\n---\n\n## Undated but parted\n\nText.\n")
    assert [row.title for row in rows(report)] == [*(f"Title {n}" for n in range(1, 5)), "Undated but parted"]
    assert "## State of things" in report.of(DecisionRecord)[3].content


def test_a_repeat_is_skipped_and_a_near_repeat_is_flagged():
    """B08: nothing is merged without a person."""
    report = ledger(
        "".join(
            f"### 2026-03-29: {title}\n**By:** Ana\n\n{text}\n\n"
            for title, text in [
                ("Versioning Policy", "Semver."),
                ("Versioning Policy", "Semver."),
                ("Versioning policy", "Semver."),
                ("Versioning policy", "Calver."),
            ]
        )
    )
    assert [(r.line, r.title, r.near) for r in report.of(DecisionRecord)] == [
        (1, "Versioning Policy", ""),
        (11, "Versioning policy", ".squad/decisions.md#L1"),
        (16, "Versioning policy", ".squad/decisions.md#L1"),
    ]
    assert [(s.line, s.reason, s.detail) for s in report.skipped] == [
        (6, "duplicate", ".squad/decisions.md#L1")
    ]


def test_records_under_a_bare_date_take_it_as_their_group():
    report = ledger(
        "# Decisions\n\n## 2026-07-16\n\n### One (Ana)\n\nText.\n\n### Two\n\nText.\n\n## 2026-07-15\n\n### Three\n\nText.\n"
    )
    assert [(r.title, r.date, r.group_date, r.created) for r in report.of(DecisionRecord)] == [
        ("One (Ana)", None, "2026-07-16", datetime(2026, 7, 16, tzinfo=UTC)),
        ("Two", None, "2026-07-16", datetime(2026, 7, 16, tzinfo=UTC)),
        ("Three", None, "2026-07-15", datetime(2026, 7, 15, tzinfo=UTC)),
    ]


def test_topics_group_the_records_below_them():
    report = ledger(f"# Decisions\n\n## Build\n\n### One\n{BY}## Release\n\n### Two\n{BY}")
    assert rows(report) == [Row(5, "One"), Row(12, "Two")]


def test_h2_records_keep_their_h3_parts():
    report = ledger(
        "## 2026-03-04 — One\n**Author:** Ana\n\n### Phase 3\n\nText.\n\n### Odd words here\n\nText.\n\n## 2026-03-05 — Two\n**Author:** Ana\n\nText.\n"
    )
    assert rows(report) == [Row(1, "One", "2026-03-04"), Row(12, "Two", "2026-03-05")]


def test_an_h1_record_pasted_behind_h3_records_is_found():
    report = ledger(
        f"# Decisions\n\n### 2026-01-01: One\n{BY}# Decision: Two\n\n**By:** Ana\n\n## Context\n\nText.\n\n## Odd part\n\nText.\n"
    )
    assert [row.title for row in rows(report)] == ["One", "Two"]


def test_a_file_that_begins_inside_a_record_keeps_it():
    report = ledger(
        f"**Date:** 2026-06-24\n**Author:** Ana\n\n## Context\n\nText.\n\n# Decision: Next\n\n**Date:** 2026-06-25\n{BY}"
    )
    assert rows(report) == [
        Row(1, "Untitled (decisions.md, line 1)", "2026-06-24"),
        Row(8, "Next", "2026-06-25"),
    ]
    assert report.of(DecisionRecord)[0].content.endswith("## Context\n\nText.")


def test_without_any_mark_the_uppermost_headings_with_text_are_records():
    report = ledger(
        "# Decisions\n\nIntro.\n\n## Naming\n\nText.\n\n### Detail\n\nText.\n\n## Style\n\nText.\n"
    )
    assert rows(report) == [Row(5, "Naming", authors=None), Row(13, "Style", authors=None)]
    assert loose(report) == [(3, "Intro.", "preamble")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "# Decisions\n",
        "# Squad Decisions\n\n## Active Decisions\n\n## Governance\n",
        "---\n---\n",
    ],
)
def test_an_empty_ledger_holds_nothing(text):
    report = ledger(text)
    assert (report.found, report.records) == (0, ())


def test_boilerplate_in_any_script_is_reported_and_gives_no_record():
    report = ledger("# החלטות\n\nעדיין אין החלטות.\n")
    assert (report.of(DecisionRecord), [item.reason for item in report.skipped]) == ((), ["preamble"])


@pytest.mark.parametrize(
    ("inner", "note"),
    [
        ("```\n### 2026-01-02: Not one\n**By:** Eve\n```\n", "in a fence"),
        ("````\n```\n### 2026-01-02: Not one\n```\n````\n", "in a longer fence"),
        ("~~~md\n### 2026-01-02: Not one\n~~~\n", "in tildes"),
        ("<!-- Each entry starts with\n### 2026-01-02: Not one\n-->\n", "in a comment"),
        ("> ### 2026-01-02: Not one\n", "in a quote"),
        ("- item\n\n  ### 2026-01-02: Not one\n", "in a list"),
        ("    ### 2026-01-02: Not one\n", "indented"),
        ("#### 2026 figures\n", "no date"),
        ("Not a heading\n---\n", "a rule under text"),
        ("| a | b |\n|---|---|\n| **Status** | x |\n", "a table"),
        ("<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> main\n", "conflict markers"),
    ],
)
def test_what_looks_like_a_heading_and_is_none_stays_in_the_text(inner, note):
    report = ledger(
        f"### 2026-01-01: One\n**By:** Ana\n\n{inner}\n### 2026-01-03: Three\n**By:** Ana\n\nText.\n"
    )
    assert [row.title for row in rows(report)] == ["One", "Three"], note
    assert inner.strip().split("\n")[0].strip() in report.of(DecisionRecord)[0].content


def test_conflict_markers_are_noted_with_their_lines():
    report = ledger("### 2026-01-01: One\n**By:** Ana\n\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n")
    assert [(n.line, n.code, n.detail) for n in report.notes] == [
        (4, "conflict_markers", "3 in line 4, 6, 8")
    ]


@pytest.mark.parametrize(
    ("heading", "title", "date", "moment"),
    [
        ("### 2026-05-11T17:13:13+03:00: Title", "Title", "2026-05-11T17:13:13+03:00", (5, 11, 14, 13, 13)),
        ("### 2026-03-13: Title", "Title", "2026-03-13", (3, 13)),
        ("## 2026-03-04 — Title", "Title", "2026-03-04", (3, 4)),
        ("## 2026-03-07T18:59Z — Title: more", "Title: more", "2026-03-07T18:59Z", (3, 7, 18, 59)),
        ("### 2026-06-30T00-22-27Z: Title", "Title", "2026-06-30T00-22-27Z", (6, 30, 0, 22, 27)),
        ("### 2026-03-07 07:51 UTC: Title", "Title", "2026-03-07 07:51 UTC", (3, 7, 7, 51)),
        ("### 2026-05-11T17:13 PT: Title", "Title", "2026-05-11T17:13 PT", (5, 11)),
        ("### Title (2026-04-29)", "Title", "2026-04-29", (4, 29)),
        ("### Title (Ana, 2026-04-29)", "Title", "2026-04-29", (4, 29)),
        ("### Title — 2026-04-29", "Title", "2026-04-29", (4, 29)),
        ("### **2026-04-29**: Title", "Title", "2026-04-29", (4, 29)),
        ("### Decision: Title", "Title", None, None),
        ("### 2026-04-29: Decision — Title", "Title", "2026-04-29", (4, 29)),
        ("### D-001: Title", "D-001: Title", None, None),
        ("### 4. Title", "4. Title", None, None),
        ("### `code` in **Title** ###", "`code` in **Title**", None, None),
        ("### 2026-13-45: Title", "2026-13-45: Title", None, None),
        ("### Title (low, unfixed)", "Title (low, unfixed)", None, None),
    ],
)
def test_title_and_date_of_a_heading(heading, title, date, moment):
    record = only(ledger(f"{heading}\n**By:** Ana\n\nText.\n"))
    assert (record.title, record.date, record.heading_raw) == (title, date, heading)
    assert record.created == (datetime(2026, *moment).replace(tzinfo=UTC) if moment else None)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("labels", "authors", "agent", "date", "status"),
    [
        ("**By:** Ana  \n**Date:** 2026-02-19  \n**Status:** Done  ", "Ana", "Ana", "2026-02-19", "Done"),
        ("**By**: Ana (Lead)\n**Status**: ✅ **DONE**", "Ana (Lead)", "Ana", None, "✅ **DONE**"),
        ("- **Author:** Ana\n- **Status:** x", "Ana", "Ana", None, "x"),
        ("> **Author:** Ana", "Ana", "Ana", None, None),
        (
            "**Author:** Roy | **Date:** 2026-03-04 | **Status:** Complete",
            "Roy",
            "Roy",
            "2026-03-04",
            "Complete",
        ),
        ("**Authors:** Roy (Core), Gaff (Host)\n", "Roy (Core), Gaff (Host)", "Roy", None, None),
        ("**By:** Owner One (via Copilot)", "Owner One (via Copilot)", "Owner One", None, None),
        ("**By:** @ana & Bo", "@ana & Bo", "ana", None, None),
        ("| **Author** | Ana |\n| Status | Open |", "Ana", "Ana", None, "Open"),
        ("By: Ana\nStatus: Open", "Ana", "Ana", None, "Open"),
        ("**Date:** February 19, 2026\n**By:** Ana", "Ana", "Ana", "February 19, 2026", None),
        ("**Date:** 2026\n**By:** Ana", "Ana", "Ana", "2026", None),
        ("**作者：** Ana\n**By：** Bo", "Bo", "Bo", None, None),
        ("**By:** " + "x" * 200, "x" * 200, "unknown", None, None),
        ("**By:** a/b", "a/b", "a", None, None),
        ("**What:** A **By:** Eve in the text\n**Why:** So", None, "unknown", None, None),
    ],
)
def test_labels(labels, authors, agent, date, status):
    record = only(ledger(f"### 2026-01-01: T\n{labels}\n\nText.\n".replace("### 2026-01-01: T", "### T")))
    assert (record.authors, record.agent, record.date, record.status_text) == (authors, agent, date, status)


def test_a_status_at_the_end_of_the_text_is_found_and_trusts_nothing():
    record = only(ledger("### T (Ana)\n**By:** Ana\n\nText.\n\n- **Status:** APPROVED by everybody\n"))
    assert record.status_text == "APPROVED by everybody"


def test_a_label_that_names_the_same_day_says_the_hour():
    record = only(
        ledger("## 2026-06-27: T\n\n**Date:** 2026-06-27T23:12:47-07:00\n**Author:** Ana\n\nText.\n")
    )
    assert (record.date, record.created) == ("2026-06-27", datetime(2026, 6, 28, 6, 12, 47, tzinfo=UTC))


def test_an_author_in_brackets_is_one_only_when_the_tree_knows_the_name():
    files = {"agents/ana/charter.md": "# ANA — Lead\n"}
    report = ledger(
        "## 2026-07-16\n\n### One (ana)\n\nText.\n\n### Two (Coordinator)\n\nText.\n\n### Three (Eve)\n\nText.\n",
        **files,
    )
    assert [(r.title, r.authors, r.agent) for r in report.of(DecisionRecord)] == [
        ("One", "ana", "ANA"),
        ("Two", "Coordinator", "Coordinator"),
        ("Three (Eve)", None, "unknown"),
    ]


@pytest.mark.parametrize(
    ("text", "rationale"),
    [
        ("**What:** A\n**Why:** Because.\nAnd more.\n\nNot this.", "Because.\nAnd more."),
        ("**Rationale:**\n\n1. one\n2. two\n\n**Impact:** x", "1. one\n2. two"),
        ("Text.\n\n#### Rationale\n\nBecause.\n\n#### Impact\n\nx", "Because."),
        ("Text.", ""),
    ],
)
def test_a_rationale_is_copied_and_the_text_keeps_it(text, rationale):
    record = only(ledger(f"### 2026-01-01: T\n**By:** Ana\n\n{text}\n"))
    assert (record.rationale, record.rationale_apart) == (rationale, False)
    assert record.content == f"**By:** Ana\n\n{text}"


def test_only_types_of_ours_are_taken_from_a_type_label():
    text = "### 2026-01-0{0}: T{0}\n**By:** Ana\n**Type:** {1}\n\nText.\n\n"
    report = ledger(text.format(1, "Architectural") + text.format(2, "Bugfix"))
    assert [record.type for record in report.of(DecisionRecord)] == ["architectural", ""]


def test_what_the_product_this_one_learned_from_writes_is_read():
    report = ledger(
        "\ufeff# Decisions\n\n## Use it\n\n**Type:** scope | **By:** Ana | **Status:** active\n\nText.\n\n"
        "> **Rationale:** Because.\n\n---\n\n## Other\n\n**Type:** process | **By:** Bo | **Status:** active\n\nMore.\n\n---\n"
    )
    assert [(r.title, r.type, r.agent, r.status_text, r.rationale) for r in report.of(DecisionRecord)] == [
        ("Use it", "scope", "Ana", "active", "> **Rationale:** Because.".removeprefix("> **Rationale:** ")),
        ("Other", "process", "Bo", "active", ""),
    ]


def test_a_long_title_is_cut_and_the_text_has_it_whole():
    heading = "### 2026-01-01: " + "long " * 100
    report = ledger(f"{heading}\n**By:** Ana\n\nText.\n")
    record = only(report)
    assert record.title == ("long " * 60).strip() + "…"
    assert record.content.startswith(heading.rstrip() + "\n\n**By:** Ana")
    assert [note.code for note in report.notes] == ["title_cut"]


def test_a_text_longer_than_a_row_is_skipped_and_not_cut():
    report = ledger("### 2026-01-01: T\n**By:** Ana\n\n" + "x" * 65_536 + "\n")
    assert [(s.kind, s.line, s.reason) for s in report.skipped] == [("decision", 1, "too_long")]


def test_a_dated_heading_without_text_is_a_decision_and_an_undated_one_is_not():
    report = ledger(
        "### 2026-01-01: Use it\n\n### 2026-01-02: Other\n**By:** Ana\n\nText.\n\n### Contents line\n"
    )
    assert [(r.title, r.content) for r in report.of(DecisionRecord)] == [
        ("Use it", "2026-01-01: Use it"),
        ("Other", "**By:** Ana\n\nText."),
    ]
    assert loose(report) == [(8, "Contents line", "empty")]


def test_the_same_file_with_any_line_end_and_bom_gives_the_same_rows():
    """B33."""
    text = "# Decisions\n\n### 2026-01-01: Títle\n**By:** Ana\n**Status:** Done\n\nOne.\nTwo.\n\n### Next (Ana)\n**Author:** Bo\n\nText.\n"
    versions = {
        (bom, end): ledger(bom + text.encode().replace(b"\n", end)).records
        for bom in (b"", b"\xef\xbb\xbf")
        for end in (b"\n", b"\r\n", b"\r", b"\r\r\n")
    }
    first = versions[b"", b"\n"]
    assert all(records == first for records in versions.values())
    assert "\r" not in repr(first)


def test_two_joined_files_with_a_bom_between_them_are_both_read():
    report = ledger(
        "### 2026-01-01: One\n**By:** Ana\n\nText.\n\n\ufeff### 2026-01-02: Two\n**By:** Ana\n\nText.\n"
    )
    assert [row.title for row in rows(report)] == ["One", "Two"]
    assert [(note.line, note.code) for note in report.notes] == [(6, "bom_removed")]


def test_the_place_of_a_record_outlives_a_change_of_its_text_and_of_the_root():
    one, two = (only(ledger(f"### 2026-01-01: T\n**By:** Ana\n\n{text}\n")) for text in ("One.", "Two."))
    assert (one.place == two.place, one.digest == two.digest) == (True, False)


def test_the_second_of_the_same_heading_has_a_place_of_its_own():
    report = ledger(
        "".join(f"### 2026-01-01: User directive\n**By:** Ana\n\n{text}\n\n" for text in ("One.", "Two."))
    )
    assert len({record.place for record in report.records}) == 2


def test_the_second_ledger_archives_and_backups_are_counted_and_left_out_unless_chosen():
    record = "### 2026-01-0{0}: T{0}\n**By:** Ana\n\nText {0}.\n"
    files = {
        "decisions.md": record.format(1),
        "decisions/decisions.md": record.format(2) + "\n" + record.format(3),
        "decisions-archive.md": record.format(4),
        "decisions/archive/2025.md": record.format(5),
        "decisions.original.md": record.format(6),
        "decisions/007-single.md": "# Decision: Single\n\n**By:** Ana\n\nText.\n",
    }
    report = reading(files)
    assert [r.title for r in report.of(DecisionRecord)] == ["T1"]
    assert report.not_selected == {"second_ledger": 3, "archives": 2, "backups": 1}
    assert {item.reason for item in report.skipped} == {"source_not_selected"}
    chosen = reading(files, ("ledger", "second_ledger", "archives", "backups"))
    assert sorted(r.title for r in chosen.of(DecisionRecord)) == [
        "Single",
        "T1",
        "T2",
        "T3",
        "T4",
        "T5",
        "T6",
    ]


def test_a_repeat_in_an_archive_points_at_the_ledger():
    record = "### 2026-01-01: T\n**By:** Ana\n\nText.\n"
    report = reading({"decisions.md": record, "decisions-archive.md": record}, ("ledger", "archives"))
    assert [(s.path, s.detail) for s in report.skipped] == [
        (".squad/decisions-archive.md", ".squad/decisions.md#L1")
    ]
