"""The routes of SPEC 7, all under /api."""

from django.urls import path
from rest_framework.parsers import MultiPartParser
from rest_framework.renderers import JSONRenderer

from agentweaver.api import (
    contexts,
    converters,  # noqa: F401 - registers what the paths below are made of
    decisions,
    events,
    files,
    histories,
    inbox,
    members,
    memories,
    projects,
    runs,
    sessions,
)
from agentweaver.api.contexts import PlainText
from agentweaver.api.docs import docs, schema
from agentweaver.api.parsing import StrictJSONParser
from agentweaver.api.routing import resource

_P = "projects/<project:p>"
_AGENT = f"{_P}/agents/<str:name>"
_MEMORY = f"{_AGENT}/memory/<row:id>"
_ENTRY = f"{_P}/decisions/inbox/<row:id>"
_DECISION = f"{_P}/decisions/<row:id>"
_RUN = f"{_P}/runs/<run:run_id>"

# A block can be had as JSON or bare.
_BLOCK = (JSONRenderer, PlainText)
_BODY_OR_FORM = (StrictJSONParser, MultiPartParser)

urlpatterns = [
    path("schema", schema, name="api-schema"),
    path("docs", docs, name="api-docs"),
    path("projects", resource(GET=projects.list_projects, POST=projects.create_project)),
    path(_P, resource(GET=projects.get_project, PATCH=projects.update_project)),
    path(f"{_P}/members", resource(GET=members.list_members)),
    path(
        f"{_P}/members/<str:username>",
        resource(GET=members.get_member, PUT=members.put_member, DELETE=members.delete_member),
    ),
    path(f"{_P}/runs", resource(GET=runs.list_runs, POST=runs.register_run)),
    path(_RUN, resource(GET=runs.get_run)),
    path(f"{_RUN}/context", resource(POST=contexts.build_run_context)),
    path(f"{_RUN}/complete", resource(POST=runs.complete_run)),
    path(f"{_AGENT}/context", resource(renderers=_BLOCK, GET=contexts.preview_context)),
    path(f"{_AGENT}/context/explain", resource(GET=contexts.explain_context)),
    path(f"{_P}/context/decisions", resource(renderers=_BLOCK, GET=contexts.preview_decisions)),
    path(f"{_AGENT}/memory", resource(GET=memories.list_memories, POST=memories.record_memory)),
    path(_MEMORY, resource(GET=memories.get_memory, PATCH=memories.edit_memory)),
    path(f"{_MEMORY}/approve", resource(POST=memories.approve_memory)),
    path(f"{_MEMORY}/promote", resource(POST=memories.approve_memory.alias("promote_memory"))),
    path(f"{_MEMORY}/retire", resource(POST=memories.retire_memory)),
    path(f"{_MEMORY}/history", resource(GET=memories.memory_history)),
    path(f"{_P}/memory", resource(GET=memories.search_memories)),
    path(f"{_P}/memory/export", resource(POST=files.export_memory)),
    path(f"{_P}/memory/export.zip", resource(renderers=(files.Zip, JSONRenderer), GET=files.export_zip)),
    path(f"{_P}/memory/import", resource(parsers=_BODY_OR_FORM, POST=files.import_memory)),
    path(f"{_P}/memory/<row:id>/receipts", resource(GET=histories.memory_receipts)),
    path(f"{_P}/decisions/inbox", resource(GET=inbox.list_entries, POST=inbox.submit_entry)),
    path(_ENTRY, resource(GET=inbox.get_entry)),
    path(f"{_ENTRY}/merge", resource(POST=inbox.merge_entry)),
    path(f"{_ENTRY}/promote", resource(POST=inbox.merge_entry.alias("promote_entry"))),
    path(f"{_ENTRY}/reject", resource(POST=inbox.reject_entry)),
    path(f"{_P}/decisions", resource(GET=decisions.list_decisions, POST=decisions.create_decision)),
    path(_DECISION, resource(GET=decisions.get_decision, PATCH=decisions.edit_decision)),
    path(f"{_DECISION}/approve", resource(POST=decisions.approve_decision)),
    path(f"{_DECISION}/supersede", resource(POST=decisions.supersede_decision)),
    path(f"{_DECISION}/archive", resource(POST=decisions.archive_decision)),
    path(f"{_DECISION}/history", resource(GET=decisions.decision_history)),
    path(f"{_DECISION}/receipts", resource(GET=histories.decision_receipts)),
    path(f"{_P}/sessions", resource(GET=sessions.list_sessions, POST=sessions.start_session)),
    path(
        f"{_P}/sessions/current",
        resource(GET=sessions.get_current_session, PUT=sessions.put_current_session),
    ),
    path(
        f"{_P}/sessions/<str:session_id>", resource(GET=sessions.get_session, PATCH=sessions.update_session)
    ),
    path(f"{_P}/events", resource(GET=events.list_events)),
    path(f"{_P}/events/verify", resource(GET=events.verify_events)),
]
