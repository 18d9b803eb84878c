"""What somebody would write who needed nothing but the rows: one SQL statement through psycopg, and `json.dumps`.

It reads exactly the rows that a compile puts into its block, in their order and with the columns the block shows, and dumps them.
Its connection is psycopg's own with the default settings, which prepare the statement as ours is prepared. It does not count, cut,
guard, hash, name what is left out, or notice a change in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
from django.db import connection

from tests.benchmarks.world import Loaded

_SQL = """
(SELECT d.title, d.type, a.name, d.content, d.rationale, NULL, NULL
   FROM memory_decision d JOIN memory_agent a ON a.id = d.agent_id
  WHERE d.project_id = %(project)s AND d.status = 'active' AND d.trust_state = 'approved'
    AND d.type IN ('architectural', 'scope')
  ORDER BY d.created_at, d.id)
UNION ALL
(SELECT 'core', m.type, a.name, m.content, NULL, m.importance, m.trust_state
   FROM memory_agentmemory m JOIN memory_agent a ON a.id = m.agent_id
  WHERE m.agent_id = %(agent)s AND m.type = 'core_context' AND m.retired_at IS NULL
    AND m.trust_state IN ('pending', 'approved')
  ORDER BY m.created_at, m.id)
"""
_LEARNINGS_AND_SESSION = """
UNION ALL
(SELECT m.type, m.type, a.name, m.content, NULL, m.importance, m.trust_state
   FROM memory_agentmemory m JOIN memory_agent a ON a.id = m.agent_id
  WHERE m.project_id = %(project)s AND m.retired_at IS NULL AND m.type IN ('learning', 'pattern')
    AND m.importance = 'high' AND m.trust_state IN ('pending', 'approved')
    AND (m.agent_id = %(agent)s OR m.cross_team AND m.trust_state = 'approved'
         AND m.approved_by NOT LIKE 'scribe:%%')
  ORDER BY m.created_at DESC, m.id DESC)
UNION ALL
SELECT NULL, s.focus_area, NULL, s.summary, s.active_issues::text, NULL, NULL
  FROM memory_sessioncontext s WHERE s.project_id = %(project)s AND s.ended_at IS NULL
"""


def connect() -> psycopg.Connection[Any]:
    """psycopg's own connection to the benchmarks' database."""
    given = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    return psycopg.connect(autocommit=True, **{name: given[name] for name in names if name in given})


def by_hand(raw: psycopg.Connection[Any], loaded: Loaded, *, learnings: bool = True) -> Callable[[], str]:
    """Reads and dumps the eligible rows; without learnings and session, as a policy without room for them does."""
    text = _SQL + _LEARNINGS_AND_SESSION if learnings else _SQL
    values = {"project": loaded.project.pk, "agent": loaded.agent.pk}

    def read() -> str:
        return _dumped(raw.execute(text, values).fetchall())

    return read


def _dumped(rows: list[tuple[Any, ...]]) -> str:
    found: dict[str, Any] = {"decisions": [], "memory": [], "session": None}
    for title, kind, name, content, more, importance, trust in rows:
        if importance is not None:
            found["memory"].append(
                {"label": title, "type": kind, "agent_name": name, "importance": importance, "content": content,
                 "trust_state": trust}
            )  # fmt: skip
        elif title is not None:
            found["decisions"].append(
                {"title": title, "type": kind, "agent_name": name, "content": content, "rationale": more}
            )
        else:
            found["session"] = {"focus_area": kind, "active_issues": json.loads(more), "summary": content}
    return json.dumps(found)
