"""Taking a run's credential away before the run ends (SPEC 5): an owner's decision, so the ledger tells it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from governance.models import RunCredential
from governance.people import policies
from governance.people.credentials import revoke_run_credential
from governance.people.policies import Action
from memory.actors import Actor, Human
from memory.errors import NotFound
from memory.ledger.changes import Change, change
from memory.models import Run


def revoke_credential(*, project_id: UUID, actor: Actor, run_id: UUID, now: datetime) -> RunCredential:
    """Make the credential of a run useless at once; revoking twice writes no second event.

    Registering the run again gives it a new one. Raises NotFound (no such run, or it has none), Refused.
    """
    with change(project_id, actor, now) as opened:
        policies.require(actor, Action.MANAGE, opened.project)
        return _revoke(opened, run_id)


def revoke_as_superuser(*, project_id: UUID, actor: Human, run_id: UUID, now: datetime) -> RunCredential:
    """The same by a superuser, in any project: a leaked credential cannot wait for an owner. Raises NotFound."""
    with change(project_id, actor, now) as opened:
        policies.require_superuser(actor)
        return _revoke(opened, run_id)


def _revoke(opened: Change, run_id: UUID) -> RunCredential:
    run = Run.objects.filter(project=opened.project, pk=run_id).first()
    if run is None:
        raise NotFound
    already = RunCredential.objects.filter(run=run, revoked_at__isnull=False).exists()
    credential = revoke_run_credential(run, opened.now)
    if not already:
        opened.note("run.revoke_credential", f"run:{run.pk}", {"credential": credential.prefix}, None)
    return credential
