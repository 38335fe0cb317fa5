"""One request that the gateway sends to the cluster behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.protocol.message import Message


@dataclass(frozen=True, slots=True)
class Call:
    """A request to a node of the cluster, in a version that the node takes."""

    api_key: int
    version: int
    message: Message
    node_id: int | None = None
    """The node, by the cluster's own id; None is the node that the client is connected to."""
