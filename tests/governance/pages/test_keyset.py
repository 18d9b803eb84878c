"""Paging by place (SPEC 9 and 11)."""

from __future__ import annotations

import pytest

from governance.pages.queues import keyset
from governance.pages.queues.keyset import slice_of
from memory.models import DecisionInboxEntry
from tests.conftest import Team
from tests.factories import EntryFactory

pytestmark = pytest.mark.django_db


def test_a_page_counts_what_matches_up_to_a_bound(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyset, "COUNTED", 3)
    entries = DecisionInboxEntry.objects.filter(project=team.project)
    seen = []
    for _ in range(5):
        EntryFactory(project=team.project)
        page = slice_of(entries, size=2)
        seen.append((len(page.rows), page.total, page.has_uncounted))
    assert seen == [(1, 1, False), (2, 2, False), (2, 3, False), (2, 3, True), (2, 3, True)]
