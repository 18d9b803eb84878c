"""Inbox files (SPEC 8; B30, B33, B54): one entry for each file, whatever shape it has."""

from datetime import UTC, datetime

import pytest

from memory.mirror.reading.records import EntryRecord
from tests.memory.mirror.files import reading

ANA = {"agents/ana/charter.md": "# Ana — Lead\n"}


def entry(text, name="ana-use-it.md"):
    report = reading({f"decisions/inbox/{name}": text, **ANA})
    (record,) = report.of(EntryRecord)
    return record


def test_an_h1_file_is_one_entry():
    record = entry(
        "# Decision: Use it\n\n**Author:** Ana (Lead)\n**Date:** 2026-02-19\n**Status:** Proposed\n\n## Context\n\n### 1. Deep\n\nText.\n\n## Rationale\n\nBecause.\n"
    )
    assert (record.title, record.agent, record.slug, record.type, record.line) == (
        "Use it",
        "Ana",
        "ana-use-it",
        "technical",
        1,
    )
    assert (record.date, record.created, record.status_text) == (
        "2026-02-19",
        datetime(2026, 2, 19, tzinfo=UTC),
        "Proposed",
    )
    assert record.rationale == "Because."
    assert record.content.startswith("**Author:** Ana (Lead)")
    assert record.content.endswith("Because.")


def test_an_h3_file_ready_to_paste_is_one_entry():
    record = entry("### 2026-02-19: Use it\n**By:** Bo\n**What:** A\n**Why:** B\n")
    assert (record.title, record.date, record.authors, record.rationale) == (
        "Use it",
        "2026-02-19",
        "Bo",
        "B",
    )


@pytest.mark.parametrize(
    ("name", "by", "agent"),
    [
        ("ana-x.md", None, "Ana"),
        ("ANA_x.md", None, "Ana"),
        ("ana-x.md", "Bo", "Ana"),
        ("eve-x.md", "Bo (Dev)", "Bo"),
        ("eve-x.md", "ana (Lead)", "Ana"),
        ("eve-x.md", None, "unknown"),
        ("copilot-directive-2026.md", None, "owner"),
        ("copilot-directive-2026.md", "Owner One (via Copilot)", "Owner One"),
    ],
)
def test_who_proposes(name, by, agent):
    label = f"**By:** {by}\n\n" if by else ""
    assert entry(f"# T\n\n{label}Text.\n", name).agent == agent


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("ana-use-it.md", "ana-use-it"),
        ("Ana Use_It (2).md", "ana-use-it-2"),
        ("copilot-directive-2026-02-19T10-00Z.md", "copilot-directive-2026-02-19t10-00z"),
    ],
)
def test_the_slug_is_the_name_of_the_file_in_kebab_case(name, slug):
    assert entry("# T\n\nText.\n", name).slug == slug


def test_names_that_leave_no_slug_or_a_long_one_get_one_of_their_own():
    report = reading(
        {f"decisions/inbox/{name}.md": f"# T\n\n{name}\n" for name in ("החלטה", "決定", "x" * 130, "x" * 131)}
    )
    slugs = [record.slug for record in report.of(EntryRecord)]
    assert len(set(slugs)) == 4
    assert all(len(slug) <= 120 for slug in slugs)
    assert sum(note.code == "slug_changed" for note in report.notes) == 4


def test_a_file_with_several_dated_records_gives_several_entries():
    text = "# Directives\n\n" + "".join(
        f"### 2026-02-{day}: Rule {day}\n**By:** Ana\n\nText {day}.\n\n" for day in (17, 18, 19)
    )
    report = reading({"decisions/inbox/ana-rules.md": text})
    assert [(r.line, r.title, r.slug, r.date) for r in report.of(EntryRecord)] == [
        (3, "Rule 17", "ana-rules", "2026-02-17"),
        (8, "Rule 18", "ana-rules-2", "2026-02-18"),
        (13, "Rule 19", "ana-rules-3", "2026-02-19"),
    ]


def test_a_signed_file_with_a_dated_log_in_it_is_one_entry():
    record = entry("# T\n\n**By:** Ana\n\n## 2026-01-01: Began\n\nText.\n\n## 2026-01-02: Ended\n\nText.\n")
    assert (record.title, record.content.count("## 2026")) == ("T", 2)


@pytest.mark.parametrize(
    "title",
    [
        "Governance: Rootkeeper",
        "A: b",
        "- dash",
        "yes",
        "2026-01-01",
        "#x",
        "a #b",
        "[a]",
        "{a: b}",
        "a --- b",
        "`code`",
        "*star*",
        "!tag",
        "%",
        "@ana",
        "null",
        "1_000",
        "'single",
    ],
)
def test_a_title_in_hand_made_front_matter_comes_back_as_written(title):
    """B30."""
    record = entry(f"---\nagent: ana\nslug: a-slug\ntype: process\ntitle: {title}\n---\n\nText: x.\n")
    assert (record.title, record.slug, record.type, record.content) == (
        title,
        "a-slug",
        "process",
        "Text: x.",
    )


def test_quoted_titles_are_yaml():
    assert (
        entry('---\nagent: ana\nslug: s\ntype: scope\ntitle: "a \\"b\\": c"\n---\nText.\n').title
        == 'a "b": c'
    )


def test_the_four_keys_make_an_entry_whose_rationale_stands_apart():
    record = entry(
        "---\nagent: Bo\nslug: bo-use-it\ntype: learning\ntitle: T\nimportance: low\ntags: [A, cross-team, a]\n---\n\n"
        "# Heading of the text\n\n---\n\nText.\n\n**Rationale:** Because.\n"
    )
    assert (record.agent, record.type, record.importance, record.tags) == (
        "Bo",
        "learning",
        "low",
        ("a", "cross-team"),
    )
    assert record.content == "# Heading of the text\n\n---\n\nText."
    assert (record.rationale, record.rationale_apart) == ("Because.", True)


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_same_file_with_any_line_end_and_bom_gives_the_same_row(bom, end):
    """B33."""
    text = b"---\nagent: ana\nslug: a\ntype: scope\ntitle: T\n---\n\nOne.\nTwo.\n\n**Rationale:** R\n"
    record = entry(bom + text.replace(b"\n", end))
    assert (record.title, record.content, record.rationale, record.slug) == ("T", "One.\nTwo.", "R", "a")
    assert record == entry(text)


def test_front_matter_of_a_blog_stays_in_the_text():
    matter = 'post_title: "Coverage Audit"\nauthor1: "Gimli (Tester)"\npost_date: "2026-02-23"\ntags: ["x"]\nsummary: "S"'
    record = entry(f"---\n{matter}\n---\n\n## Coverage Audit — February 23, 2026\n\nText.\n")
    assert (record.title, record.agent, record.date) == ("Coverage Audit", "Gimli", "February 23, 2026")
    assert record.content.startswith(f"---\n{matter}\n---\n\n")
    assert record.content.endswith("Text.")


@pytest.mark.parametrize(
    "text",
    [
        "---\n\n# T\n\nText.\n\n---\n\nMore.\n",
        "---\n# T\n\nText.\n",
        "---\nno mapping here\n---\n\n# T\n\nText.\n",
    ],
)
def test_a_rule_line_at_the_start_is_no_front_matter(text):
    assert "Text." in entry(text).content


@pytest.mark.parametrize(
    "matter",
    [
        "a: [",
        "a: &x [*x]",
        "[" * 2000,
        "- a\nb: c\n: d",
        "date: 2026-13-45",
        "x: !!python/object:os.system ls",
        "? [a]\n: b",
    ],
)
def test_broken_yaml_loses_nothing(matter):
    record = entry(f"---\n{matter}\ntitle: T\n---\n\nText.\n")
    assert "Text." in record.content


def test_a_file_without_a_heading_takes_its_slug_as_title():
    assert entry("Just text.\n").title == "ana-use-it"


def test_a_heading_alone_is_an_entry_of_its_own_words():
    assert entry("# Use it\n").content == "Use it"


@pytest.mark.parametrize("text", ["", "\n\n", "<!-- nothing -->\n"])
def test_an_empty_file_is_reported(text):
    report = reading({"decisions/inbox/ana-x.md": text})
    assert [(s.kind, s.reason) for s in report.skipped] == [("entry", "empty")]


def test_tags_that_do_not_fit_are_dropped_with_a_note_and_the_row_is_kept():
    """B54."""
    tags = ", ".join(["x" * 300, *(f"t{number}" for number in range(200))])
    report = reading(
        {
            "decisions/inbox/ana-x.md": f"---\nagent: ana\nslug: s\ntype: scope\ntitle: T\ntags: {tags}\n---\nText.\n"
        }
    )
    (record,) = report.of(EntryRecord)
    assert len(record.tags) == 20
    assert [(note.code, note.detail) for note in report.notes] == [("tags_dropped", "181 of 201")]


def test_files_in_folders_below_the_inbox_are_archives():
    report = reading(
        {"decisions/inbox/processed/ana-x.md": "# T\n\nText.\n", "decisions/inbox/README.md": "x"}
    )
    assert report.not_selected == {"archives": 1}
    assert [(item.path, item.reason) for item in report.unread] == [
        (".squad/decisions/inbox/README.md", "not_memory")
    ]
