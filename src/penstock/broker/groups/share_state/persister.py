"""The share coordinator as the rest of a broker calls it: requests that are answered later.

A broker by itself answers at once; in a cluster another node may coordinate, and replicas have to follow.
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
"""Called once, with the answer to a request."""


Send: TypeAlias = Callable[[Any, Done], None]
"""Sends a request, and has a function called with the answer."""


class Persister:
    """Calls the share coordinator, here or at another node; `send` sends one of the five requests to it.

    Every method takes a request, and has `done` called exactly once with its answer: before the method
    returns, or later in the thread of this broker, from a turn of its purgatory. None raises anything: what
    fails is an error of each share partition in the answer.
    """

    def __init__(self, send: Send) -> None:
        self.send = send

    def read_state(self, request: ReadShareGroupStateRequest, done: Done) -> None:
        """ReadShareGroupState (84): the state of share partitions; earlier leaders are fenced from now on."""
        self.send(request, done)

    def write_state(self, request: WriteShareGroupStateRequest, done: Done) -> None:
        """WriteShareGroupState (85): add what became of records. An answer without an error is durable."""
        self.send(request, done)


def send_here(service: ShareStateService, now_ms: int, request: Any, done: Done) -> None:
    """Have this node, which coordinates everything, answer a request at once."""
    try:
        service.create_topic(now_ms)
    except (KafkaError, StorageError) as error:
        logger.error("no topic for the states of share groups: %s", error)
    from penstock.broker.groups.share_state.requests import answer_here  # few brokers have share groups

    done(answer_here(service, request))
