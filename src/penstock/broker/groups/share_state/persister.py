"""The interface of the share coordinator for other parts of a broker: requests that are answered later.

A single broker answers before the call returns. In a cluster, another node may be the coordinator, and the
response waits until the in-sync replicas have the records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError

if TYPE_CHECKING:
    from penstock.broker.groups.share_state.service import ShareStateService
    from penstock.protocol.messages.read_share_group_state_request import ReadShareGroupStateRequest
    from penstock.protocol.messages.write_share_group_state_request import WriteShareGroupStateRequest

logger = logger_named("penstock.broker")

Done: TypeAlias = Callable[[Any], None]
"""A callback that is called once, with the response to a request."""


Send: TypeAlias = Callable[[Any, Done], None]
"""A function that sends a request, and calls the callback once with the response."""


class Persister:
    """Calls the share coordinator, on this or another node; `send` sends one of the five requests to it.

    Every method takes a request, and calls `done` exactly once with the response: before the method
    returns, or later in the broker's thread, from its purgatory. No method raises: a failure
    is an error of each share partition in the response.
    """

    def __init__(self, send: Send) -> None:
        self.send = send

    def read_state(self, request: ReadShareGroupStateRequest, done: Done) -> None:
        """Send ReadShareGroupState (84), which returns states and fences earlier leaders."""
        self.send(request, done)

    def write_state(self, request: WriteShareGroupStateRequest, done: Done) -> None:
        """Send WriteShareGroupState (85), which merges delivery states into the stored ones.

        A response without an error means that the states are durable.
        """
        self.send(request, done)


def send_here(service: ShareStateService, now_ms: int, request: Any, done: Done) -> None:
    """Answer a request at once on this node, which is the only coordinator."""
    try:
        service.create_topic(now_ms)
    except (KafkaError, StorageError) as error:
        logger.error("no topic for the states of share groups: %s", error)
    from penstock.broker.groups.share_state.requests import answer_here  # few brokers have share groups

    done(answer_here(service, request))
