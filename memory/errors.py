"""What can go wrong in the domain, each with the code of SPEC 5. The edges turn them into HTTP answers or messages."""

from collections.abc import Mapping, Sequence
from typing import Any


class DomainError(Exception):
    """Something the product refuses to do. `code` is the contract's word for it, `detail` is for people."""

    code = "invalid"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Invalid(DomainError):
    """Bad input (400): `errors` maps each field to what is wrong with it."""

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        super().__init__("; ".join(f"{field}: {' '.join(texts)}" for field, texts in errors.items()))
        self.errors = {field: list(texts) for field, texts in errors.items()}


class NotFound(DomainError):
    """The row does not exist, or may not be known to exist (404): both read alike."""

    code = "not_found"

    def __init__(self, detail: str = "Not found.") -> None:
        super().__init__(detail)


class Refused(DomainError):
    """The caller is known and lacks the right (403): `agent_mismatch`, `decider_required` or `role_required`."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class CredentialRefused(DomainError):
    """The credential proves nothing (401): `not_authenticated`, `invalid_credential` or `run_ended`."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class Conflict(DomainError):
    """Someone else was first, or the state does not allow it (409). `row` is the row as it is now."""

    code = "conflict"

    def __init__(self, detail: str, row: Any = None, *, code: str = "conflict") -> None:
        super().__init__(detail)
        self.row = row
        self.code = code


class Stale(Conflict):
    """The text changed since it was read (409). `row` is the row as it is now."""

    def __init__(self, row: Any) -> None:
        super().__init__("The text changed since it was read.", row, code="stale")


class OverBudget(DomainError):
    """Layers 1 and 2 exceed the budget and the policy says `fail` (422). Both figures are characters (SPEC 4)."""

    code = "mandatory_context_exceeds_budget"

    def __init__(self, *, budget: int, required: int) -> None:
        super().__init__(f"Mandatory context needs {required} characters, the budget is {budget}.")
        self.budget = budget
        self.required = required


class ExportFailed(DomainError):
    """The files could not be written (SPEC 8, Export): the old ones are whole. The same call may work later."""

    code = "export_failed"
