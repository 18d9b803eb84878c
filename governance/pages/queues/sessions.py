"""Sessions: what a project works on now, and what it worked on before (SPEC 9, Session)."""

from __future__ import annotations

from django.db.models import QuerySet

from memory.errors import NotFound
from memory.models import Project, SessionContext

PAGE_SIZE = 20


def open_session_of(project: Project) -> SessionContext | None:
    """The open session; None when there is none. One query."""
    return sessions_of(project).filter(ended_at__isnull=True).first()


def past_sessions(project: Project) -> QuerySet[SessionContext]:
    """The sessions that ended, newest first."""
    past = sessions_of(project).filter(ended_at__isnull=False)
    return past.defer("serialized_state").order_by("-started_at", "-pk")


def session_of(project: Project, session_pk: int) -> SessionContext:
    """One session of the project; raises NotFound. One query."""
    session = sessions_of(project).filter(pk=session_pk).first()
    if session is None:
        raise NotFound
    return session


def sessions_of(project: Project) -> QuerySet[SessionContext]:
    """Sessions with everything a page shows."""
    return SessionContext.objects.filter(project=project).select_related("source_run")
