"""/projects/{p}/sessions (SPEC 6 and 7): start, read, update, end. At most one is open."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from agentweaver.api.authentication import actor_of
from agentweaver.api.fields import Body, Flag, Issues, SessionId, Text, read
from agentweaver.api.pagination import page_of, paged
from agentweaver.api.routing import operation
from agentweaver.api.rows import SessionRow
from governance.people.policies import Action
from memory import sessions as verbs
from memory.errors import NotFound
from memory.models import Project, SessionContext
from memory.sessions import SessionFields
from memory.values import MAX_FOCUS, MAX_SESSION_ID, text_problem

_operation = partial(operation, tag="sessions")


class SessionBody(Body):
    focus_area = Text(MAX_FOCUS, required=False)
    active_issues = Issues(required=False)
    summary = Text(required=False)
    serialized_state = Text(required=False)


class NewSession(SessionBody):
    session_id = SessionId()


class SessionChange(SessionBody):
    end = Flag(required=False, help_text="End the session.")


class CurrentSession(SessionChange):
    session_id = SessionId(
        required=False, allow_null=True, help_text="A new session's id; one is made when absent."
    )


_FIELDS = ("focus_area", "active_issues", "summary", "serialized_state")


def shown(session: SessionContext) -> dict[str, Any]:
    return dict(SessionRow(session).data)


def _sessions(project: Project) -> QuerySet[SessionContext]:
    return SessionContext.objects.filter(project=project).order_by("-started_at", "-pk")


def _fields(given: dict[str, Any]) -> SessionFields:
    return SessionFields(**{name: given[name] for name in _FIELDS if name in given})


def _session_id(given: str) -> str:
    """An id from the path; one that cannot be stored is no session's. Raises NotFound."""
    if text_problem(given, MAX_SESSION_ID):
        raise NotFound
    return given.strip()


def _shown_or_missing(session: SessionContext | None) -> Response:
    if session is None:
        raise NotFound
    return Response(shown(session))


@_operation(Action.RECORD, body=NewSession, answers={201: SessionRow}, problem_codes=[409])
def start_session(request: Request, project: Project) -> Response:
    """Start a session; the open one is closed in the same step. An id that exists is a conflict and closes nothing."""
    given = read(NewSession, request)
    session = verbs.start_session(
        project_id=project.pk, actor=actor_of(request), session_id=given["session_id"], fields=_fields(given),
        now=timezone.now(),
    )  # fmt: skip
    return Response(shown(session), status=201)


@_operation(Action.READ, answers={200: page_of(SessionRow)})
def list_sessions(request: Request, project: Project) -> Response:
    """The project's sessions, newest first."""
    return paged(request, _sessions(project), shown)


@_operation(Action.READ, answers={200: SessionRow})
def get_session(request: Request, project: Project, session_id: str) -> Response:
    """One session by its id."""
    return _shown_or_missing(_sessions(project).filter(session_id=_session_id(session_id)).first())


@_operation(Action.RECORD, body=SessionChange, answers={200: SessionRow}, problem_codes=[409])
def update_session(request: Request, project: Project, session_id: str) -> Response:
    """Change a session that has not ended; `end` ends it."""
    given = read(SessionChange, request)
    session = verbs.update_session(
        project_id=project.pk, actor=actor_of(request), session_id=_session_id(session_id), fields=_fields(given),
        end=given.get("end", False), now=timezone.now(),
    )  # fmt: skip
    return Response(shown(session))


@_operation(Action.READ, answers={200: SessionRow})
def get_current_session(request: Request, project: Project) -> Response:
    """The open session; 404 when none is open."""
    return _shown_or_missing(_sessions(project).filter(ended_at__isnull=True).first())


@_operation(
    Action.RECORD,
    body=CurrentSession,
    answers={
        200: SessionRow,
        201: OpenApiResponse(SessionRow, description="None was open; one was started."),
    },
    problem_codes=[409],
)
def put_current_session(request: Request, project: Project) -> Response:
    """Change the open session, or start one when none is open. Fields that are left out stay as they are."""
    given = read(CurrentSession, request)
    session, is_new = verbs.update_current_session(
        project_id=project.pk, actor=actor_of(request), session_id=given.get("session_id"), fields=_fields(given),
        end=given.get("end", False), now=timezone.now(),
    )  # fmt: skip
    return Response(shown(session), status=201 if is_new else 200)
