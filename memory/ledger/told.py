"""What a run was told, in one digest (SPEC 3, ContextReceipt).

Telling happens before every turn, so a receipt takes no project lock and is no event. The run's end is one: it writes this digest
of all its receipts into the ledger, and from then on none can be changed, removed or added unnoticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memory.ledger.changes import state_of
from memory.models import ContextReceipt, Run
from memory.models.event import digest
from memory.models.project import NO_HASH

ACTION = "run.told"


@dataclass(frozen=True, slots=True)
class Proof:
    """How many receipts, and a digest chained over them from the first to the last."""

    receipts: int = 0
    sha256: str = NO_HASH

    def then(self, receipt_id: int, columns: str, sha256: str | None, rows_sha256: str | None) -> Proof:
        """The proof with one receipt more: its id, the digest of its columns, and both digests of its snapshot."""
        return Proof(self.receipts + 1, digest([self.sha256, receipt_id, columns, sha256, rows_sha256]))

    def as_json(self) -> dict[str, Any]:
        return {"receipts": self.receipts, "sha256": self.sha256}


def proof_of(run: Run) -> Proof:
    """The proof of everything a run was told until now. One query."""
    receipts = ContextReceipt.objects.filter(run=run).select_related("snapshot").defer("snapshot__block")
    proof = Proof()
    for receipt in receipts.order_by("pk"):
        shown = receipt.snapshot
        digests = (shown.sha256, shown.rows_sha256) if shown is not None else (None, None)
        proof = proof.then(receipt.pk, digest(state_of(receipt)), *digests)
    return proof
