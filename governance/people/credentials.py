"""Credentials: make, verify, revoke (SPEC 5). 256 random bits each, stored as a digest, shown once.

The prefixes `awr_` (run) and `awp_` (personal) let secret scanners find a leaked token.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from django.conf import settings
from django.db import OperationalError
from django.db.models import QuerySet
from django.utils.crypto import constant_time_compare

from governance.models import Credential, PersonalToken, RunCredential, User
from memory.actors import Human, VerifiedRun
from memory.errors import CredentialRefused, Invalid, NotFound
from memory.models import Run
from memory.values import clean_title

logger = logging.getLogger(__name__)

RUN_PREFIX = "awr_"
PERSONAL_PREFIX = "awp_"
_SHOWN = 10
_BYTES = 32
_USE_NOTED_EVERY = timedelta(minutes=1)

K = TypeVar("K", bound=Credential)


@dataclass(frozen=True, slots=True)
class Issued(Generic[K]):
    """A new credential with its token, which is never shown again."""

    credential: K
    token: str


def digest_of(token: str) -> str:
    """What is stored of a token. 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def _new(prefix: str) -> tuple[str, dict[str, str]]:
    token = prefix + secrets.token_urlsafe(_BYTES)
    return token, {"digest": digest_of(token), "prefix": token[:_SHOWN]}


def issue_run_credential(run: Run, now: datetime) -> Issued[RunCredential]:
    """The run's one credential; an earlier one is replaced and dead from now on."""
    token, stored = _new(RUN_PREFIX)
    expires_at = now + timedelta(hours=settings.RUN_CREDENTIAL_HOURS)
    fresh = {**stored, "created_at": now, "expires_at": expires_at, "revoked_at": None, "last_used_at": None}
    credential, _ = RunCredential.objects.update_or_create(run=run, defaults=fresh)
    return Issued(credential, token)


def issue_personal_token(
    user: User, *, name: str = "", days: int | None = None, now: datetime
) -> Issued[PersonalToken]:
    """A new token of a person or service account; `days` until it expires, None for never. Raises Invalid."""
    try:
        label = clean_title(name, 100, required=False)
    except ValueError as problem:
        raise Invalid({"name": [str(problem)]}) from problem
    if days is not None and not 1 <= days <= 3650:
        raise Invalid({"days": ["Between 1 and 3650."]})
    token, stored = _new(PERSONAL_PREFIX)
    expires_at = now + timedelta(days=days) if days is not None else None
    credential = PersonalToken.objects.create(
        user=user, name=label, created_at=now, expires_at=expires_at, **stored
    )
    return Issued(credential, token)


def verify(token: str, now: datetime) -> Human | VerifiedRun:
    """Who the bearer of a token is. Raises CredentialRefused `invalid_credential` or `run_ended` (SPEC 5). One query."""
    if not token.isascii():
        raise _refused()
    digest = digest_of(token)
    if token.startswith(RUN_PREFIX):
        return _verified_run(_found(RunCredential.objects.select_related("run__agent"), digest), now)
    if token.startswith(PERSONAL_PREFIX):
        return _verified_human(_found(PersonalToken.objects.select_related("user"), digest), now)
    raise _refused()


def _found(credentials: QuerySet[K], digest: str) -> K:
    credential = credentials.filter(digest=digest).first()
    # The index found it by equality already; comparing again in constant time costs nothing and says what is meant.
    if credential is None or not constant_time_compare(credential.digest, digest):
        raise _refused()
    return credential


def _verified_run(credential: RunCredential, now: datetime) -> VerifiedRun:
    if not credential.run.is_running:
        raise CredentialRefused("run_ended", "The run of this credential has ended.")
    _require_alive(credential, now)
    _note_use(RunCredential.objects.filter(pk=credential.pk), credential, now)
    return credential.run.as_actor()


def _verified_human(credential: PersonalToken, now: datetime) -> Human:
    _require_alive(credential, now)
    if not credential.user.is_active:
        raise _refused()
    _note_use(PersonalToken.objects.filter(pk=credential.pk), credential, now)
    return Human(credential.user.username)


def _require_alive(credential: Credential, now: datetime) -> None:
    expired = credential.expires_at is not None and credential.expires_at <= now
    if expired or credential.revoked_at is not None:
        raise _refused()


def _refused() -> CredentialRefused:
    return CredentialRefused("invalid_credential", "This credential is unknown, expired or revoked.")


def _note_use(stored: QuerySet[K], credential: K, now: datetime) -> None:
    """Keep the time of last use, at most once a minute: reading must not become writing. A busy database may miss one."""
    if credential.last_used_at is not None and now - credential.last_used_at < _USE_NOTED_EVERY:
        return
    try:
        stored.update(last_used_at=now)
    except OperationalError as busy:
        logger.warning("The last use of credential %s could not be noted: %s", credential.prefix, busy)


def revoke_personal_token(user: User, token_id: int, now: datetime) -> PersonalToken:
    """Make one of the user's own tokens useless at once. Raises NotFound; revoking twice changes nothing."""
    token = PersonalToken.objects.filter(user=user, pk=token_id).first()
    if token is None:
        raise NotFound
    return _revoke(token, now)


def revoke_run_credential(run: Run, now: datetime) -> RunCredential:
    """Make a run's credential useless at once. Raises NotFound when the run has none."""
    credential = RunCredential.objects.filter(run=run).first()
    if credential is None:
        raise NotFound
    return _revoke(credential, now)


def _revoke(credential: K, now: datetime) -> K:
    if credential.revoked_at is None:
        credential.revoked_at = now
        credential.save(update_fields=["revoked_at"])
    return credential
