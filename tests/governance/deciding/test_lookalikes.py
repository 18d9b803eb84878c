"""Rows that say nearly the same are found, whatever is stored (SPEC 9, Inbox)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from governance.deciding import lookalikes
from governance.deciding.lookalikes import ALIKE, Lookalike, lookalikes_in_list, lookalikes_of
from memory.models import DecisionInboxEntry
from tests.conftest import NOW, Team
from tests.factories import DecisionFactory, EntryFactory

WORDS = st.frozensets(st.sampled_from([f"word{number}" for number in range(12)]), max_size=9)


@given(st.lists(WORDS, max_size=12), WORDS)
def test_looking_up_a_few_words_finds_all_that_share_enough(
    texts: list[frozenset[str]], words: frozenset[str]
) -> None:
    every = {place: lookalikes._share(text, words) for place, text in enumerate(texts)}
    expected = {place: share for place, share in every.items() if share >= ALIKE}
    assert dict(lookalikes._Index(texts).alike(words)) == expected


def found(team: Team, entry: DecisionInboxEntry) -> list[Lookalike]:
    in_list = lookalikes_in_list(team.project, [entry])[entry.pk]
    assert lookalikes_of(team.project, entry) == in_list
    return in_list


@pytest.mark.django_db
def test_titles_and_openings_are_compared_with_decisions_and_undecided_entries(team: Team) -> None:
    of = {"project": team.project, "content": "Nothing in common."}
    decision = DecisionFactory(**of, title="Retry webhooks with backoff")
    pending = EntryFactory(
        project=team.project, title="Other words", content="Send it again after 5 s, 30 s and 2 min."
    )
    rejected = EntryFactory(
        **of,
        title="Retry webhooks with a backoff",
        status="rejected",
        reviewed_by="owner",
        reviewed_at=NOW,
        reason="No.",
    )
    DecisionFactory(**of, title="Retry webhooks with backoff", status="archived")
    EntryFactory(**of, title="Tides repeat")
    entry = EntryFactory(
        project=team.project,
        title="retry WEBHOOKS with backoff!",
        content="Send it again after 5 s, 30 s and 2 min: now.",
    )
    assert found(team, entry) == [
        Lookalike("decision", decision.pk, decision.title, "active", 1.0),
        Lookalike("entry", rejected.pk, rejected.title, "rejected", 1.0),
        Lookalike("entry", pending.pk, pending.title, "pending", found(team, entry)[2].share),
    ]


@pytest.mark.django_db
def test_one_word_in_common_is_no_likeness(team: Team) -> None:
    EntryFactory(project=team.project, title="Tides", content="One.")
    entry = EntryFactory(project=team.project, title="Tides", content="Two.")
    assert found(team, entry) == []


@pytest.mark.django_db
def test_the_number_of_statements_follows_neither_rows_nor_entries(
    team: Team, django_assert_num_queries
) -> None:
    entries = [EntryFactory(project=team.project) for _ in range(3)]
    for some in (entries[:1], entries):
        with django_assert_num_queries(3):
            lookalikes_in_list(team.project, some)
    with django_assert_num_queries(0):
        lookalikes_in_list(team.project, [])


@pytest.mark.django_db
@pytest.mark.skipif(
    connection.vendor != "postgresql",
    reason="SQLite has no trigrams: one entry is compared with the newest rows",
)
def test_an_entry_alone_meets_old_decisions_too(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookalikes, "NEWEST_DECISIONS", 1)
    old = DecisionFactory(project=team.project, title="Retry webhooks with backoff")
    DecisionFactory(project=team.project, title="Tides repeat", created_at=NOW + timedelta(days=1))
    entry = EntryFactory(project=team.project, title="Retry webhooks with a backoff")
    assert lookalikes_in_list(team.project, [entry])[entry.pk] == []
    assert [like.id for like in lookalikes_of(team.project, entry)] == [old.pk]
