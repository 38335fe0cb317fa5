"""What share groups have done with records, at the share coordinator (KIP-932): brokers ask one another.

InitializeShareGroupState (83), ReadShareGroupState (84), WriteShareGroupState (85), DeleteShareGroupState
(86) and ReadShareGroupStateSummary (87). v1 of 85 and 87 has the number of completed deliveries (KIP-1226).
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.context import Context, Parts
from penstock.broker.groups.share_state.requests import answer_here
from penstock.broker.requests.repetition import merged

if TYPE_CHECKING:
    from penstock.broker.groups.share_state.service import ShareStateService


class Needs(Parts, Protocol):
    """The parts of a broker that these APIs work on."""

    @property
    def share_states(self) -> ShareStateService: ...


def initialize_share_group_state(request: Any, context: Context[Needs]) -> Any:
    """Begin the states of share partitions, or begin them anew."""
    return _answer(request, context)


def read_share_group_state(request: Any, context: Context[Needs]) -> Any:
    """Return the states of share partitions; leaders before the one that asks are fenced."""
    return _answer(request, context)


def write_share_group_state(request: Any, context: Context[Needs]) -> Any:
    """Add to the states of share partitions what has become of records."""
    return _answer(request, context)


def delete_share_group_state(request: Any, context: Context[Needs]) -> Any:
    """Delete the states of share partitions."""
    return _answer(request, context)


def read_share_group_state_summary(request: Any, context: Context[Needs]) -> Any:
    """Return epochs and start offsets of share partitions."""
    return _answer(request, context)


_topic_id, _partition = attrgetter("topic_id"), attrgetter("partition")


def _answer(request: Any, context: Context[Needs]) -> Any:
    request.topics = merged(request.topics, _topic_id, "partitions", _partition)
    return answer_here(context.node.share_states, request)
