"""`HookedRequest`: a client's request for hooks or faults, from which its steps are made."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from penstock.gateway.hooks.hook import Client
    from penstock.gateway.versions import Translation

Steps: TypeAlias = Generator[Any, Any, Any]
"""A generator that yields a `NodeCall`, a `Rest` or an `Overtaken`, and returns a response, None, or another
end of `calls`."""


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
    """Whether the broker does not have the request's version."""
    translation: Translation
    upstream: Mapping[int, tuple[int, int]]
    """The versions that the broker has, by API key."""
    caught: Callable[[str], None]
    """Reports the exception that is being handled."""


class Answering(Protocol):
    """The hooks of a gateway, as faults use them for the requests that they let pass."""

    def answered(self, asked: HookedRequest, read: Callable[[], Any], *, may_pass: bool = True) -> Steps:
        """Return the steps of a request through hooks alone, without faults."""

    def topic_names(self, asked: HookedRequest, message: Any, version: int) -> Steps:
        """Return the steps that find the names of the topics which a message has by id."""
