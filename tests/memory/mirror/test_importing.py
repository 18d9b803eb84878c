"""Import (SPEC 8): everything comes in once, as legacy, and the report accounts for every piece."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from governance.deciding.decisions import approve_decision, edit_decision
from memory.agents import agent_named, set_charter
from memory.enums import TrustState
from memory.errors import Conflict, Invalid, NotFound
from memory.ledger.changes import change
from memory.ledger.verification import verify
from memory.mirror.importing import import_tree
from memory.mirror.marks import MarkedRecord, wrap
from memory.mirror.reading.import_report import ImportReport
from memory.mirror.reading.report import FileCount
from memory.mirror.reading.tree import read_folder
from memory.models import (
    Agent,
    AgentMemory,
    Decision,
    DecisionInboxEntry,
    ImportedRecord,
    LedgerEvent,
    Project,
    SessionContext,
)
from memory.recording import submit_entry
from memory.sessions import SessionFields, start_session
from tests.conftest import NOW, Team
from tests.memory.mirror.trees import CHARTER, INBOX, LEDGER, SQUAD, as_tree, corpus_trees, write_tree

pytestmark = pytest.mark.django_db


def taken_in(team: Team, files: Mapping[str, str | bytes] = SQUAD, **options: Any) -> ImportReport:
    return import_tree(
        project_id=team.project.pk, actor=team.owner, tree=as_tree(files), **{"now": NOW, **options}
    )


def reasons(report: ImportReport) -> dict[str, int]:
    return {
        reason: n
        for reason, n in report.skipped_by_reason.items()
        if reason not in ("preamble", "boilerplate")
    }


def ledger(*records: str) -> dict[str, str]:
    return {".squad/decisions.md": "# Decisions\n\n" + "\n".join(records)}


def test_every_kind_of_record_becomes_its_row(team: Team) -> None:
    report = taken_in(team)

    assert report.taken_by_kind == {"charter": 2, "decision": 3, "entry": 1, "memory": 3, "session": 1}
    assert report.not_selected == {"second_ledger": 1}
    assert report.found == report.taken + report.skipped
    assert list(
        Decision.objects.order_by("pk").values_list("title", "agent__name", "type", "trust_state", "status")
    ) == [
        ("Type safety, strict mode", "Bo", "technical", "legacy", "active"),
        ("One harbour first", "Ana", "technical", "legacy", "active"),
        ("Charts live in `charts/`", "Ana", "technical", "legacy", "active"),
    ]
    assert list(
        AgentMemory.objects.order_by("pk").values_list("type", "importance", "content", "trust_state")
    ) == [
        ("core_context", "medium", "Keel is in Go.", "legacy"),
        ("learning", "medium", "Ropes shrink when wet.", "legacy"),
        ("learning", "medium", "**Anchors:** check twice.", "legacy"),
    ]
    entry = DecisionInboxEntry.objects.get()
    assert (entry.slug, entry.title, entry.type, entry.status, entry.source_kind, entry.agent.name) == (
        "bo-tides", "Use tides from the almanac", "technical", "pending", "legacy", "Bo",
    )  # fmt: skip
    assert Agent.objects.get(key="ana").charter == CHARTER.strip("\n")


def test_a_status_of_approved_in_the_text_approves_nothing(team: Team) -> None:
    taken_in(team)
    assert set(Decision.objects.values_list("trust_state", "approved_by")) == {(TrustState.LEGACY, "")}
    assert set(AgentMemory.objects.values_list("trust_state", "approved_by")) == {(TrustState.LEGACY, "")}


def test_a_row_names_the_file_and_line_it_came_from(team: Team) -> None:
    taken_in(team)
    decision = Decision.objects.get(title="One harbour first")
    line = LEDGER.split("\n").index("### 2026-03-07T18:59:00Z: One harbour first (Ana)") + 1
    assert (decision.source_kind, decision.source_identity, decision.source_run_id) == (
        "legacy", f"import:.squad/decisions.md#L{line}", None,
    )  # fmt: skip


def test_dates_of_the_source_are_kept_beside_the_row_and_an_unknown_one_stays_unknown(team: Team) -> None:
    taken_in(team)
    dated = dict(ImportedRecord.objects.exclude(decision=None).values_list("decision__title", "dated_at"))
    assert dated == {
        "One harbour first": datetime(2026, 3, 7, 18, 59, tzinfo=UTC),
        "Type safety, strict mode": None,
        "Charts live in `charts/`": datetime(2026, 3, 9, tzinfo=UTC),
    }
    assert set(Decision.objects.values_list("created_at", flat=True)) == {NOW}


def test_importing_twice_adds_nothing(team: Team) -> None:
    taken_in(team)
    events = LedgerEvent.objects.count()

    again = taken_in(team, now=NOW + timedelta(days=1))

    assert again.taken == 0
    assert reasons(again) == {"already_imported": 8, "already_known": 2, "source_not_selected": 1}
    assert LedgerEvent.objects.count() == events


def test_a_text_that_was_approved_and_edited_does_not_come_back(team: Team) -> None:
    taken_in(team)
    decision = Decision.objects.get(title="One harbour first")
    approve_decision(
        project_id=team.project.pk, actor=team.owner, decision_id=decision.pk, revision=1, now=NOW
    )
    edit_decision(
        project_id=team.project.pk, actor=team.owner, decision_id=decision.pk, revision=1, title="Two", content="Other.",
        now=NOW,
    )  # fmt: skip
    assert taken_in(team).taken == 0


def test_a_changed_text_comes_as_a_new_legacy_row_that_points_at_the_old_one(team: Team) -> None:
    taken_in(team)
    old = Decision.objects.get(title="Type safety, strict mode")
    approve_decision(project_id=team.project.pk, actor=team.owner, decision_id=old.pk, revision=1, now=NOW)

    report = taken_in(
        team, {**SQUAD, ".squad/decisions.md": LEDGER.replace("Guessing is slow", "Types help")}
    )

    (taken,) = report.taken_items
    assert taken.id is not None
    new = Decision.objects.get(pk=taken.id)
    assert (new.trust_state, "Types help" in new.content) == ("legacy", True)
    assert ImportedRecord.objects.get(decision=new).replaces == ImportedRecord.objects.get(decision=old)
    assert taken.replaces == old.source_identity.removeprefix("import:")
    old.refresh_from_db()
    assert (old.trust_state, "Guessing is slow" in old.content) == ("approved", True)


def test_a_slug_taken_by_another_text_gives_the_next_free_slug(team: Team) -> None:
    submit_entry(
        project_id=team.project.pk, actor=team.owner, agent_name="Bo", slug="bo-tides", type="scope", title="Mine",
        content="Another text.", now=NOW,
    )  # fmt: skip
    report = taken_in(team)
    assert [item.slug for item in report.taken_items if item.kind == "entry"] == ["bo-tides--bo"]
    assert set(DecisionInboxEntry.objects.values_list("slug", "title")) == {
        ("bo-tides", "Mine"),
        ("bo-tides--bo", "Use tides from the almanac"),
    }
    changed = taken_in(team, {**SQUAD, ".squad/decisions/inbox/bo-tides.md": INBOX + "\nAnd the moon.\n"})
    assert [item.slug for item in changed.taken_items] == ["bo-tides--bo--2"]


def test_an_entry_of_the_same_slug_and_text_is_known(team: Team) -> None:
    taken_in(team)
    row = DecisionInboxEntry.objects.get()
    ImportedRecord.objects.filter(entry=row).delete()
    assert [item.reason for item in taken_in(team).skipped_items if item.kind == "entry"] == ["already_known"]


def test_a_charter_never_replaces_another_one(team: Team) -> None:
    with change(team.project.pk, team.orchestrator, NOW) as opened:
        set_charter(opened, agent_named(opened, "ANA"), "Given by the orchestrator.")
    report = taken_in(team)
    assert Agent.objects.get(key="ana").charter == "Given by the orchestrator."
    assert report.skipped_by_reason["charter_exists"] == 1
    assert report.taken_by_kind["charter"] == 1


def test_charters_stay_out_when_the_caller_may_not_decide(team: Team) -> None:
    report = taken_in(team, charters=False)
    assert set(Agent.objects.values_list("charter", flat=True)) == {""}
    assert report.skipped_by_reason["decider_required"] == 2


def test_an_imported_session_is_over_and_leaves_the_open_one_alone(team: Team) -> None:
    start_session(
        project_id=team.project.pk, actor=team.owner, session_id="spring", fields=SessionFields(focus_area="Sails"),
        now=NOW - timedelta(days=300),
    )  # fmt: skip
    taken_in(team)
    imported = SessionContext.objects.exclude(session_id="spring").get()
    written = datetime(2026, 4, 2, 8, 0, tzinfo=UTC)
    assert (imported.started_at, imported.ended_at) == (written, written)
    assert (imported.focus_area, imported.active_issues) == ("The harbour wall", ["#12", "#14"])
    assert SessionContext.objects.get(ended_at=None).session_id == "spring"


def test_without_an_open_session_an_import_opens_none(team: Team) -> None:
    taken_in(team)
    assert not SessionContext.objects.filter(ended_at=None).exists()


def test_a_dry_run_reports_the_same_and_writes_nothing(team: Team) -> None:
    events = LedgerEvent.objects.count()
    dry = taken_in(team, dry_run=True)
    assert (LedgerEvent.objects.count(), Agent.objects.count(), ImportedRecord.objects.count()) == (
        events,
        0,
        0,
    )

    wet = taken_in(team)

    assert dry == replace(
        wet, dry_run=True, taken_items=tuple(replace(item, id=None) for item in wet.taken_items)
    )


def test_an_import_writes_nothing_when_it_would_not_write_what_was_shown(team: Team) -> None:
    shown = taken_in(team, dry_run=True).fingerprint
    far = {**SQUAD, ".squad/agents/Ana/history.md": f"{SQUAD['.squad/agents/Ana/history.md']}{'x' * 500}"}
    events = LedgerEvent.objects.count()
    others: list[dict[str, Any]] = [{"files": far}, {"sources": {"ledger"}}, {"charters": False}]
    for other in others:
        with pytest.raises(Conflict, match="has changed since it was shown"):
            taken_in(team, expected=shown, **other)
    assert (LedgerEvent.objects.count(), ImportedRecord.objects.count()) == (events, 0)

    assert taken_in(team, expected=shown).fingerprint == shown
    with pytest.raises(Conflict):
        taken_in(team, expected=shown)


def test_other_sources_come_in_when_they_are_named(team: Team) -> None:
    report = taken_in(team, sources={"second_ledger"})
    assert report.taken_by_kind == {"decision": 1}
    assert report.not_selected == {"ledger": 3, "inbox": 1, "agents": 5, "session": 1}


def test_an_unknown_source_is_bad_input(team: Team) -> None:
    with pytest.raises(Invalid, match="no such source: attic"):
        taken_in(team, sources={"attic"})


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_unknown_project_is_not_found(team: Team, dry_run: bool) -> None:
    with pytest.raises(NotFound):
        import_tree(project_id=Project().pk, actor=team.owner, tree=as_tree(SQUAD), dry_run=dry_run, now=NOW)


def test_a_failure_in_the_middle_leaves_nothing(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("memory.mirror.importing._note", fail)
    events = LedgerEvent.objects.count()
    with pytest.raises(OSError, match="disk full"):
        taken_in(team)
    assert (Decision.objects.count(), Agent.objects.count(), ImportedRecord.objects.count()) == (0, 0, 0)
    assert LedgerEvent.objects.count() == events


def test_the_ledger_still_verifies_and_says_what_came_in(team: Team) -> None:
    report = taken_in(team)
    team.project.refresh_from_db()
    assert verify(team.project).valid
    event = LedgerEvent.objects.get(action="project.import")
    assert '"taken":{"charter":2,"decision":3,"entry":1,"memory":3,"session":1}' in event.after
    assert LedgerEvent.objects.filter(action__endswith=".import", state__gt="").count() == report.taken - 2


def test_equal_texts_are_counted_and_near_repeats_flagged(team: Team) -> None:
    """B08: the exact repeat is skipped, the near one comes in and the reviewer is told; nothing is merged."""
    same = "### 2026-02-01: Versioning {}olicy\n**By:** Ana\n\n{}.\n"
    report = taken_in(
        team, ledger(same.format("P", "Tag it"), same.format("P", "Tag it"), same.format("p", "Tag it"), same.format("p", "Or not"))
    )  # fmt: skip
    assert report.taken_by_kind == {"decision": 3}
    assert reasons(report) == {"duplicate": 1}
    assert [note.code for note in report.notes] == ["nearly_the_same", "nearly_the_same"]


def test_tags_that_do_not_fit_are_dropped_with_a_note_and_the_row_stays(team: Team) -> None:
    """B54, the same on both databases."""
    tags = ", ".join(["ok", "x" * 300, *(f"t{n}" for n in range(200))])
    front = f"---\nagent: Ana\nslug: tagged\ntype: learning\ntitle: T\ntags: [{tags}]\n---\nText.\n"
    report = taken_in(team, {".squad/decisions/inbox/tagged.md": front})
    entry = DecisionInboxEntry.objects.get()
    assert entry.tags == ["ok", *(f"t{n}" for n in range(19))]
    assert [note.code for note in report.notes] == ["tags_dropped"]


@pytest.mark.parametrize("prefix", ["", "\ufeff"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_windows_files_give_the_same_row(team: Team, prefix: str, ends: str) -> None:
    """B33."""
    taken_in(team, {".squad/decisions/inbox/bo-tides.md": (prefix + INBOX).replace("\n", ends)})
    entry = DecisionInboxEntry.objects.get()
    assert (entry.title, "\r" in entry.content, entry.content.split("\n")[-1]) == (
        "Use tides from the almanac", False, "The almanac is right, the app is not.",
    )  # fmt: skip


def test_marks_with_values_no_row_can_hold_skip_that_record_alone(team: Team) -> None:
    good = wrap(MarkedRecord("decision", 1, "Good.", data={"agent": "Ana", "title": "Good"}))
    bad = wrap(
        MarkedRecord("decision", 2, "Bad.", rationale="x" * 70_000, data={"agent": "Ana", "title": "Bad"})
    )
    report = taken_in(team, {".squad/decisions.md": good + bad})
    assert list(Decision.objects.values_list("title", flat=True)) == ["Good"]
    assert reasons(report)["invalid"] == 1


def test_progress_is_told_of_every_file_and_record(team: Team) -> None:
    told: list[tuple[str, int, int]] = []
    taken_in(team, progress=lambda *step: told.append(step))
    assert told[0] == ("reading", 1, 8)
    assert told[-1] == ("writing", 10, 10)


def test_an_unreadable_file_is_reported_and_the_rest_comes_in(team: Team) -> None:
    report = taken_in(team, {**SQUAD, ".squad/agents/Ana/history.md": os.urandom(5_000_000)})
    assert [(item.path, item.reason) for item in report.unread if item.reason == "too_large"] == [
        (".squad/agents/Ana/history.md", "too_large")
    ]
    assert report.taken_by_kind == {"charter": 2, "decision": 3, "entry": 1, "session": 1}


def test_a_report_that_does_not_add_up_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="found 2"):
        ImportReport(False, ".squad", (), (), (FileCount("a.md", "ledger", 2, 0, 0),), (), (), {})


@pytest.mark.parametrize("tree", corpus_trees(), ids=lambda tree: tree.name)
def test_a_real_tree_comes_in_once_and_adds_up(team: Team, tree: Any) -> None:
    sources = {"ledger", "inbox", "agents", "session", "second_ledger", "archives", "backups"}
    given: dict[str, Any] = {
        "project_id": team.project.pk,
        "actor": team.owner,
        "sources": sources,
        "now": NOW,
    }

    first = import_tree(tree=read_folder(tree), **given)
    second = import_tree(tree=read_folder(tree), **given)

    assert first.found == first.taken + first.skipped == second.found
    assert first.taken > 0
    assert second.taken == 0
    rows = Decision.objects.count() + AgentMemory.objects.count() + DecisionInboxEntry.objects.count()
    charters = Agent.objects.exclude(charter="").count()
    assert rows + charters + SessionContext.objects.count() == first.taken
    team.project.refresh_from_db()
    assert verify(team.project).valid


def test_a_folder_is_read_like_a_zip(team: Team, tmp_path: Any) -> None:
    folder = write_tree(tmp_path, SQUAD)
    given: dict[str, Any] = {"project_id": team.project.pk, "actor": team.owner, "dry_run": True, "now": NOW}
    assert import_tree(tree=read_folder(folder), **given) == taken_in(team, dry_run=True)
