"""Steps that the generator handling a request yields to the gateway, and the outcomes that it returns.

`Ranges` has the API versions that a node of the cluster supports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.protocol.message import Message

Ranges: TypeAlias = "Mapping[int, tuple[int, int]]"
"""A dict from an API key to the lowest and highest version, as in a broker's ApiVersions response."""


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A step of handling a request: send `message` to a node, in a version that it supports."""

    api_key: int
    version: int
    message: Message
    node_id: int | None = None
    """The node's id in the cluster; None for the node that the client is connected to."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A step of handling a request: wait for `seconds` before the next step."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Overtaken:
    """A step that waits up to `seconds` for the connection's next request, to handle that one first."""

    seconds: float


@dataclass(frozen=True, slots=True)
class PassedOn:
    """An outcome of handling a request: the client's unchanged bytes are forwarded to the broker."""


@dataclass(frozen=True, slots=True)
class Silence:
    """An outcome of handling a request: no response to this request or to any later one of the connection."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """An outcome of handling a request: the gateway closes the client's connection."""

    reason: str
    is_reset: bool = False
    """True if the connection is closed with a TCP reset."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """An outcome of handling a request: a response that is damaged on purpose.

    The gateway encodes `answer` with its size field, and sends the bytes that `change` returns for it."""

    answer: Message
    change: Callable[[bytes], bytes]
    is_cut: bool = False
    """True if the connection is closed after the response."""
