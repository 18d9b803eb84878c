"""What a view of the REST framework may do when nobody said anything: nothing."""

from typing import Any

from rest_framework.permissions import BasePermission


class DenyByDefault(BasePermission):
    """Our routes are made by `routing.resource`, which asks the policy itself; any other view is closed."""

    def has_permission(self, request: Any, view: Any) -> bool:
        return False
