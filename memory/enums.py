"""The closed lists of the product (SPEC 3, 4, 6). Values are the words of the API; the database checks them."""

from django.db.models import IntegerChoices, TextChoices


class SourceKind(TextChoices):
    """Who a row came from."""

    HUMAN = "human"
    RUN = "run"
    LEGACY = "legacy"


class TrustState(TextChoices):
    """How far a row may be believed."""

    PENDING = "pending"
    APPROVED = "approved"
    LEGACY = "legacy"


class MemoryType(TextChoices):
    CORE_CONTEXT = "core_context"
    LEARNING = "learning"
    PATTERN = "pattern"
    UPDATE = "update"


class Importance(TextChoices):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class DecisionType(TextChoices):
    ARCHITECTURAL = "architectural"
    SCOPE = "scope"
    PROCESS = "process"
    TECHNICAL = "technical"


class DecisionStatus(TextChoices):
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


class EntryType(TextChoices):
    """What an inbox entry proposes: the first four become decisions, the last three memories."""

    ARCHITECTURAL = "architectural"
    SCOPE = "scope"
    PROCESS = "process"
    TECHNICAL = "technical"
    PATTERN = "pattern"
    LEARNING = "learning"
    UPDATE = "update"

    @property
    def becomes_decision(self) -> bool:
        return self.value in DecisionType.values


class EntryStatus(TextChoices):
    PENDING = "pending"
    MERGED = "merged"
    REJECTED = "rejected"


class RunRole(TextChoices):
    WORKER = "worker"
    COORDINATOR = "coordinator"


class RunStatus(TextChoices):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Overflow(TextChoices):
    """What a compile does when layers 1 and 2 alone exceed the budget (SPEC 4)."""

    INCLUDE = "include"
    FAIL = "fail"


class TrustPolicy(TextChoices):
    """`strict` takes approved rows only into layers 2 and 3 (SPEC 4)."""

    STANDARD = "standard"
    STRICT = "strict"


class Layer(IntegerChoices):
    """The four layers of a compiled context, highest priority first (SPEC 4)."""

    DECISIONS = 1, "decisions"
    CORE = 2, "core context"
    LEARNINGS = 3, "learnings"
    SESSION = 4, "session"


class OmitReason(TextChoices):
    """Why a row is not in a compiled context: one code a row (SPEC 4)."""

    RETIRED = "retired", "retired"
    NOT_ACTIVE = "not_active", "superseded, archived or ended"
    LEGACY = "legacy", "imported and not yet approved"
    TYPE_NOT_COMPILED = "type_not_compiled", "this type is never compiled"
    OTHER_AGENT = "other_agent", "belongs to another agent"
    LOW_IMPORTANCE = "low_importance", "importance is not high"
    NOT_APPROVED = "not_approved", "waiting for approval"
    DECISIONS_ONLY = "decisions_only", "only decisions are compiled here"
    ITEM_LIMIT = "item_limit", "the item limit is reached"
    TOKEN_BUDGET = "token_budget", "does not fit the token budget"
