"""`identity/now.md` (SPEC 8; B12)."""

from datetime import UTC, datetime

import pytest

from memory.mirror.reading.records import SessionRecord
from tests.memory.mirror.files import reading


def session(text):
    return reading({"identity/now.md": text}).of(SessionRecord)[0]


def test_a_now_file_is_one_session():
    record = session(
        "---\nupdated_at: 2026-06-11T15:46:22-07:00\nfocus_area: A: b\nactive_issues: ['#1', two]\n---\n\n"
        "# What We're Focused On\n\nText.\n\n## Next\n\nMore.\n"
    )
    assert (record.focus_area, record.active_issues, record.content, record.created) == (
        "A: b",
        ("#1", "two"),
        "Text.\n\n## Next\n\nMore.",
        datetime(2026, 6, 11, 22, 46, 22, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("written", "issues"),
    [("[]", ()), ("", ()), ("[a, b]", ("a", "b")), ("\n  - a\n  - b", ("a", "b")), ("a, b", ("a", "b"))],
)
def test_active_issues_in_any_form(written, issues):
    assert session(f"---\nfocus_area: F\nactive_issues: {written}\n---\n\nText.\n").active_issues == issues


def test_without_front_matter_a_label_may_name_the_focus():
    record = session("# Now\n\n**Current focus:** packaging\n\nText.\n")
    assert (record.focus_area, record.created, record.content) == (
        "packaging",
        None,
        "**Current focus:** packaging\n\nText.",
    )


def test_values_that_no_row_holds_stay_in_the_summary():
    record = session("---\nfocus_area: F\nversion: v1\n---\n\nText.\n")
    assert record.content == "---\nfocus_area: F\nversion: v1\n---\n\nText."


def test_a_now_file_as_it_was_created_is_boilerplate():
    report = reading(
        {
            "identity/now.md": "---\nupdated_at: 2026-01-01\nfocus_area: Initial setup\nactive_issues: []\n---\n\n"
            "# What We're Focused On\n\nGetting started. Updated by coordinator at session start.\n"
        }
    )
    assert [(s.kind, s.reason) for s in report.skipped] == [("session", "boilerplate")]


def test_a_summary_longer_than_a_row_is_reported():
    report = reading({"identity/now.md": "# Now\n\n" + "x" * 89_000})
    assert [(s.kind, s.reason) for s in report.skipped] == [("session", "too_long")]
