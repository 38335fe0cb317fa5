"""Error messages for a group that does not exist, or that has another type than the request requires."""

from __future__ import annotations


def not_found(group_id: str) -> str:
    """Return the error message for a group that does not exist."""
    return f"Group {group_id} not found."


def not_of_type(group_id: str, group_type: str) -> str:
    """Return the error message for a group of another type than `group_type`, such as "share"."""
    return f"Group {group_id} is not a {group_type} group."
