"""Requests of brokers to the share coordinator, which stores the state of share partitions (KIP-932).

InitializeShareGroupState (83), ReadShareGroupState (84), WriteShareGroupState (85), DeleteShareGroupState
(86) and ReadShareGroupStateSummary (87). v1 of 85 and 87 has the number of completed deliveries (KIP-1226).
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from penstock.broker.context import Context
from penstock.broker.groups.share_state.requests import answer_here
from penstock.broker.requests.repetition import merged

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def initialize_share_group_state(request: Any, context: Context[ServingNode]) -> Any:
    """Create the states of share partitions, or reset them."""
    return _answer(request, context)


def read_share_group_state(request: Any, context: Context[ServingNode]) -> Any:
    """Return the states of share partitions; from then on, refuse leaders with older leader epochs."""
    return _answer(request, context)


def write_share_group_state(request: Any, context: Context[ServingNode]) -> Any:
    """Merge delivery states of records into the stored states of share partitions."""
    return _answer(request, context)


def delete_share_group_state(request: Any, context: Context[ServingNode]) -> Any:
    """Delete the states of share partitions."""
    return _answer(request, context)


def read_share_group_state_summary(request: Any, context: Context[ServingNode]) -> Any:
    """Return the epochs and start offsets of share partitions."""
    return _answer(request, context)


_topic_id, _partition = attrgetter("topic_id"), attrgetter("partition")


def _answer(request: Any, context: Context[ServingNode]) -> Any:
    request.topics = merged(request.topics, _topic_id, "partitions", _partition)
    return answer_here(context.node.share_states, request)
