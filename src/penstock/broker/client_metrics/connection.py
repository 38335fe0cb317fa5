"""Ties the state of a client that pushes metrics to its connection, and describes the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.client_metrics.service import Origin

if TYPE_CHECKING:
    from penstock.broker.client_metrics.service import ClientMetrics
    from penstock.broker.context import Context


class PushingConnection:
    """A session resource that drops the client instance's state when the connection closes."""

    def __init__(self, service: ClientMetrics, client_instance_id: bytes) -> None:
        self._service = service
        self.client_instance_id = client_instance_id

    def close(self) -> None:
        self._service.drop(self.client_instance_id)


def origin_of(context: Context[Any]) -> Origin:
    """Return the client id, software and address of the client that has sent the request in progress."""
    session = context.session
    return Origin(
        session.client_id or "",
        session.software_name,
        session.software_version,
        session.client_address,
        session.client_port,
    )


def keep_with_connection(context: Context[Any], service: ClientMetrics, client_instance_id: bytes) -> None:
    """Attach a client instance to its connection, so that its state is dropped when this ends."""
    known = context.session.resource(PushingConnection)
    if known is None:
        context.session.keep(PushingConnection(service, client_instance_id))
    else:
        known.client_instance_id = client_instance_id
