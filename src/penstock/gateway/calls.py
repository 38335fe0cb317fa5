"""The steps that a generator yields while it handles one request, and the ends that it returns.

`Ranges` has the versions in which nodes of the cluster can be asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.protocol.message import Message

Ranges: TypeAlias = "Mapping[int, tuple[int, int]]"
"""Lowest and highest version by API key, as a broker's ApiVersions has them."""


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A step: a request to a node of the cluster, in a version that the node supports."""

    api_key: int
    version: int
    message: Message
    node_id: int | None = None
    """The node's id in the cluster; None for the node that the client is connected to."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A step: wait for `seconds` before the next step."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Overtaken:
    """A step: let the next request of the connection go first, if one arrives within `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class PassedOn:
    """An end: the client's request goes to the broker as the bytes that the client has sent."""


@dataclass(frozen=True, slots=True)
class Silence:
    """An end: neither this request nor any later one of the connection is answered."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """An end: the gateway closes the connection."""

    reason: str
    is_reset: bool = False
    """True if the client gets a TCP reset."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """An end: the gateway encodes `answer` with its size field, and sends the bytes that `change` returns."""

    answer: Message
    change: Callable[[bytes], bytes]
    is_cut: bool = False
    """True if the connection is closed after the response."""
