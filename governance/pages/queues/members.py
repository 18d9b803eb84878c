"""Members: who has which role, directly and through groups (SPEC 5; SPEC 9, Members)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from governance.models import User
from governance.people.policies import Member, Role, members
from memory.models import Project

NAMED = 20
"""People of a group that are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A user or a group as the page shows it. An inactive user keeps the role and can do nothing with it."""

    member: Member
    is_active: bool
    people: Sequence[str]
    more: int

    @property
    def kind(self) -> str:
        return "group" if self.member.is_group else "user"


def member_rows(project: Project) -> list[MemberRow]:
    """Everybody with a grant of their own, users first. Four queries."""
    found = members(project)
    asleep = set(
        User.objects.filter(
            username__in=[m.name for m in found if not m.is_group], is_active=False
        ).values_list("username", flat=True)
    )
    people = _people([m.name for m in found if m.is_group])
    return [_row(member, member.name not in asleep, people.get(member.name, [])) for member in found]


def _row(member: Member, is_active: bool, people: list[str]) -> MemberRow:
    if not member.is_group:
        return MemberRow(member, is_active, (), 0)
    return MemberRow(member, True, people[:NAMED], max(len(people) - NAMED, 0))


def _people(groups: list[str]) -> dict[str, list[str]]:
    """The active members of each group, by name."""
    found: dict[str, list[str]] = {}
    pairs = User.objects.filter(groups__name__in=groups, is_active=True).values_list(
        "groups__name", "username"
    )
    for group, username in pairs.order_by("groups__name", "username"):
        found.setdefault(group, []).append(username)
    return found


ROLES = {
    Role.OWNER: "decides, manages members and policy, and may do everything the others may",
    Role.CONTRIBUTOR: "writes memory, entries and sessions; imports and exports",
    Role.VIEWER: "reads",
    Role.ORCHESTRATOR: "registers and finishes runs, builds contexts, exports; for a service account",
}
"""What a role may do, in words."""
