"""docs/ledger.md: an event can be checked with what that page says, by somebody who has nothing of this product."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from governance.models import User
from governance.people.credentials import issue_personal_token
from tests.conftest import NOW, Team
from tests.governance.pages.conftest import a_decision, a_memory, an_entry

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "ledger.md"


@pytest.mark.django_db
def test_the_documents_own_code_finds_every_hash(team: Team, time_machine: Any) -> None:
    time_machine.move_to(NOW)
    for make in (a_memory, a_decision, an_entry):
        make(team, "ünïcode" if make is not an_entry else "plain")
    [block] = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    given: dict[str, Any] = {}
    exec(compile(block, str(DOCUMENT), "exec"), given)
    token = issue_personal_token(User.objects.get(username="viewer"), now=NOW).token
    api = Client(headers={"Authorization": f"Bearer {token}"})
    events = api.get("/api/projects/lighthouse/events?page_size=100").json()["items"][::-1]
    assert [given["hash_of"](event, str(team.project.pk)) for event in events] == [e["hash"] for e in events]
    assert [event["prev_hash"] for event in events] == ["0" * 64, *(event["hash"] for event in events[:-1])]
    assert len(events) > 6
