"""The schema of SPEC 3."""

from memory.models.decision import Decision, DecisionInboxEntry
from memory.models.event import LedgerEvent
from memory.models.imported import ImportedRecord
from memory.models.memory import AgentMemory
from memory.models.project import Agent, Project
from memory.models.receipt import ContextReceipt, ContextSnapshot, SnapshotRow
from memory.models.run import Run
from memory.models.session import SessionContext

__all__ = [
    "Agent",
    "AgentMemory",
    "ContextReceipt",
    "ContextSnapshot",
    "Decision",
    "DecisionInboxEntry",
    "ImportedRecord",
    "LedgerEvent",
    "Project",
    "Run",
    "SessionContext",
    "SnapshotRow",
]
