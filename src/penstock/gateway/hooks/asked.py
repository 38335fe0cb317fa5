"""`HookedRequest`: a client's request that passes through hooks or injected faults."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from penstock.gateway.hooks.hook import Client
    from penstock.gateway.versions import Translation

Steps: TypeAlias = Generator[Any, Any, Any]
"""The type of a generator that handles a request: it yields steps (`NodeCall`, `Rest`, `Overtaken`), and
returns a response, None for no response, or another outcome of `gateway.calls`."""


@dataclass(frozen=True, slots=True)
class HookedRequest:
    """A client's request to an API with hooks or injected faults, and the data needed to handle it."""

    key: int
    version: int
    client: Client
    read: Callable[[], Any]
    """A function that decodes the request, and returns a new message at each call. Raises DecodeError."""
    correlation_id: int
    is_translated: bool
    """True if the broker does not support the request's version, so that the request is translated."""
    translation: Translation
    upstream: Mapping[int, tuple[int, int]]
    """A dict from an API key to the versions that the broker supports."""
    caught: Callable[[str], None]
    """A function that logs the exception being handled. Its argument says where the exception was raised."""


class Answering(Protocol):
    """The methods of `Hooks` that injected faults call, to handle the requests that no fault drops."""

    def answered(self, asked: HookedRequest, read: Callable[[], Any], *, may_pass: bool = True) -> Steps:
        """Return the steps that pass a request through the hooks and to the cluster, without faults."""

    def topic_names(self, asked: HookedRequest, message: Any, version: int) -> Steps:
        """Return the steps that look up the names of the topic ids in a message."""
