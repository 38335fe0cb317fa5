"""The health of a broker for monitors such as Kubernetes and load balancers: as JSON, with reasons.

``/health`` is 200 while clients are served in full, else 503: during start and shutdown, while the controller
of a cluster does not count the broker as alive, and while a log or its directory has failed. ``/health/live``
is 200 as long as the broker answers at all.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.broker.node import Node

REASONS_MAX = 20
"""The maximum number of reasons shown. A failed directory can give one reason for each of its logs."""


class CheckedServer(Protocol):
    """The attributes of a server that `Health` reads."""

    @property
    def node(self) -> Node: ...
    @property
    def is_stopping(self) -> bool: ...
    @property
    def is_listening(self) -> bool: ...
    @property
    def storage_failures(self) -> Collection[str]: ...


class Health:
    """The health of one broker: its state, and the reasons why it does not serve its clients in full."""

    def __init__(self, server: CheckedServer) -> None:
        self._server = server

    @property
    def status(self) -> str:
        """The state of the broker: ``starting``, ``serving``, ``impaired`` or ``stopping``."""
        if self._server.is_stopping:
            return "stopping"
        if not self._server.is_listening or self._server.node.not_ready is not None:
            return "starting"
        return "impaired" if self._server.storage_failures else "serving"

    @property
    def is_ready(self) -> bool:
        """True if the broker serves its clients in full: it is fully started and nothing has failed."""
        return self.status == "serving"

    def as_json(self) -> str:
        """Return status, node id and reasons as one line of JSON."""
        reasons = sorted(self._server.storage_failures)
        if self._server.is_stopping:
            reasons.insert(0, "the broker stops")
        elif not self._server.is_listening:
            reasons.insert(0, "the broker does not listen yet")
        elif self._server.node.not_ready is not None:
            reasons.insert(0, self._server.node.not_ready)
        left_out = len(reasons) - REASONS_MAX
        if left_out > 0:
            reasons[REASONS_MAX:] = [f"and {left_out} more"]
        found = {"status": self.status, "node_id": self._server.node.node_id, "reasons": reasons}
        return json.dumps(found) + "\n"


def live() -> str:
    """Return the text of the page ``/health/live``, which does not depend on the broker's state."""
    return '{"status": "live"}\n'
