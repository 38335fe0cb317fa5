"""What the work on one request asks for, step by step, and how it may end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.protocol.message import Message


@dataclass(frozen=True, slots=True)
class Call:
    """A request to a node of the cluster, in a version that the node takes."""

    api_key: int
    version: int
    message: Message
    node_id: int | None = None
    """The node, by the cluster's own id; None is the node that the client is connected to."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A rest of so many seconds, before the next step."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Overtaken:
    """The next request of the connection goes first, if one comes within so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class PassedOn:
    """An end: the request goes to the broker in the bytes that the client has sent."""


@dataclass(frozen=True, slots=True)
class Silence:
    """An end: neither this request nor a later one of the connection is answered."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """An end: the connection is closed."""

    reason: str
    is_reset: bool = False
    """Whether the client gets a reset."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """An end: the answer, in bytes that `change` makes of it, its size included."""

    answer: Message
    change: Callable[[bytes], bytes]
    is_cut: bool = False
    """Whether the connection is closed behind it."""
