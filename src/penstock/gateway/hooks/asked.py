"""`HookedRequest`: a client's request that passes through hooks or injected faults."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from penstock.gateway.hooks.hook import Client
    from penstock.gateway.versions import Translation

Steps: TypeAlias = Generator[Any, Any, Any]
"""A generator that handles a request: it yields steps (`NodeCall`, `Rest`, `Overtaken`), and returns a
response, None, or another end of `gateway.calls`."""


@dataclass(frozen=True, slots=True)
class HookedRequest:
    """A request of a client whose API has hooks or faults."""

    key: int
    version: int
    client: Client
    read: Callable[[], Any]
    """Returns the decoded request, a new one each time. Raises DecodeError."""
    correlation_id: int
    is_translated: bool
    """True if the broker does not support the request's version, so that the request is translated."""
    translation: Translation
    upstream: Mapping[int, tuple[int, int]]
    """The versions that the broker has, by API key."""
    caught: Callable[[str], None]
    """Logs the exception that is being handled; the argument describes where it was raised."""


class Answering(Protocol):
    """The interface of `Hooks` that injected faults use for the requests that are not dropped."""

    def answered(self, asked: HookedRequest, read: Callable[[], Any], *, may_pass: bool = True) -> Steps:
        """Return the steps that pass a request through the hooks and to the cluster, without faults."""

    def topic_names(self, asked: HookedRequest, message: Any, version: int) -> Steps:
        """Return the steps that look up the names of the topic ids in a message."""
