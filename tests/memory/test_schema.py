"""The database keeps the rules itself: append-only tables, one project per row (SPEC 3)."""

import pytest
from django.db import IntegrityError, connection, transaction

from memory.models import LedgerEvent, Project
from memory.recording import record_memory
from tests.conftest import NOW, Team

pytestmark = pytest.mark.django_db


def refused(sql: str, *params: object) -> None:
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)


def test_a_ledger_event_can_be_neither_changed_nor_deleted(team: Team) -> None:
    assert LedgerEvent.objects.exists()
    refused("UPDATE memory_ledgerevent SET reason = %s", "forged")
    refused("DELETE FROM memory_ledgerevent")


def test_a_memory_cannot_name_an_agent_of_another_project(team: Team) -> None:
    memory = record_memory(
        project_id=team.project.pk, actor=team.owner, agent_name="Ana", type="learning", content="x", now=NOW
    )
    other = Project.objects.create(name="Other", slug="other", created_at=NOW)
    refused("UPDATE memory_agentmemory SET project_id = %s WHERE id = %s",
            other.pk.hex if connection.vendor == "sqlite" else other.pk, memory.pk)  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_the_triggers_are_back_after_a_flush(team: Team) -> None:
    refused("DELETE FROM memory_ledgerevent")
