"""Drafts of consumer groups: a copy of a group's state with changes that are not stored yet."""

from __future__ import annotations

from typing import TypeAlias

from penstock.broker.coordination import draft
from penstock.broker.groups.consumer.state import GroupState

Draft: TypeAlias = draft.Draft[GroupState]
"""A consumer group as one request or timer would change it, before the change is stored."""
