"""One walk through the API as its users take it: propose, decide, register, build, complete, prove."""

from __future__ import annotations

from collections.abc import Callable

from tests.agentweaver.api.conftest import Caller
from tests.conftest import Team


def test_a_proposal_reaches_a_run_only_after_a_person_decided(
    team: Team, owner: Caller, orchestrator: Caller, as_person: Callable[[str], Caller]
) -> None:
    registered = orchestrator.post(
        "runs", {"agent_name": "Ana", "external_id": "job-1", "charter": "Careful."}
    )
    assert registered.status_code == 201
    run = registered.json()
    worker = Caller(owner.base, run["token"])

    entry = worker.post(
        "decisions/inbox",
        {"agent_name": "ana ", "slug": "use-wal", "type": "architectural", "content": "Use WAL."},
    )
    assert (entry.status_code, entry.json()["status"]) == (201, "pending")
    before = orchestrator.post(f"runs/{run['id']}/context").json()
    assert (before["charter"], before["context"], before["compile_error"]) == ("Careful.", None, None)

    merged = owner.post(f"decisions/inbox/{entry.json()['id']}/merge", {"revision": 1})
    assert merged.status_code == 200, merged.content
    decision = merged.json()["decision_row"]
    assert (decision["approved_by"], decision["source_identity"]) == ("owner", f"run:{run['id']}")

    told = orchestrator.post(f"runs/{run['id']}/context").json()
    assert "Use WAL." in told["context"]
    receipts = owner.get(f"decisions/{decision['id']}/receipts").json()
    assert [row["run_id"] for row in receipts["items"]] == [run["id"]]

    report = orchestrator.post(f"runs/{run['id']}/complete", {"status": "completed", "summary": "Done."})
    assert (report.status_code, report.json()["status"]) == (200, "completed")
    assert worker.get("decisions").json()["code"] == "run_ended"
    assert owner.get("events/verify").json()["valid"] is True
