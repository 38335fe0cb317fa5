"""The call `client_instance_id`: the id that brokers give a client for its metrics (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client.arguments import checked, seconds
from penstock.errors import ConfigError, UnsupportedVersionError

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient

PATIENCE_S = 30.0


class HasInstanceId:
    """Base class of the asyncio clients, which may push metrics: adds the call `client_instance_id`."""

    _client: AsyncClient

    @checked(timeout=seconds)
    async def client_instance_id(self, timeout: float | None = None) -> str:
        """Return the client instance id that a broker has assigned for this client's metrics (KIP-714).

        The id is text, as Kafka prints ids. The call waits for `timeout` seconds at most, by default 30.

        Raises:
            ConfigError: ``enable.metrics.push`` is false.
            UnsupportedVersionError: the broker that was asked for metadata accepts no metrics.
            NetworkError, RequestTimeoutError: no broker answers, or not in time.
        """
        client = self._client
        if not client.config.enable_metrics_push:
            raise ConfigError("enable.metrics.push is false: brokers give this client no id")
        await client.bootstrap()
        if client.metrics_push is None:
            raise UnsupportedVersionError("the broker takes no metrics (KIP-714), and gives clients no ids")
        return await client.metrics_push.client_instance_id(PATIENCE_S if timeout is None else timeout)
