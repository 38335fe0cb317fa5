"""Drafts of consumer groups."""

from __future__ import annotations

from typing import TypeAlias

from penstock.broker.groups import draft
from penstock.broker.groups.consumer.state import GroupState

Draft: TypeAlias = draft.Draft[GroupState]
"""What one request or timer would make of a consumer group, before it is stored."""
