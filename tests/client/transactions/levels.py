"""Helpers for tests with both transaction protocols, which the feature ``transaction.version`` selects."""

from __future__ import annotations

import time

from penstock import Admin, read_topic
from penstock.client import TransactionDescription
from penstock.client.background_loop import run
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ClientConfig
from penstock.errors import KafkaError
from penstock.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest


def committed_values(servers: str, admin: Admin, topic: str, transactional_id: str) -> list[bytes]:
    """Wait until the last transaction has its markers; return the topic's committed values, sorted."""
    while any(one.state.startswith("Prepare") for one in described(admin, transactional_id)):
        time.sleep(0.01)
    table = read_topic(topic, servers, columns=["value"], isolation="read_committed")
    return sorted(table.column("value").to_pylist())


def described(admin: Admin, transactional_id: str) -> list[TransactionDescription]:
    try:
        return admin.describe_transactions([transactional_id])
    except KafkaError:  # no producer has used the id yet
        return []


LEVELS = (0, 2)
"""The tested levels of ``transaction.version``: 0, before KIP-890, and 2, with KIP-890."""


def set_level(servers: str, level: int) -> None:
    """Set ``transaction.version`` of a cluster.

    Connections that are already open keep the level that they negotiated.
    """

    async def ask() -> None:
        async with AsyncClient(ClientConfig.parse(None, {"bootstrap_servers": servers})) as client:
            await client.bootstrap()
            is_raised = level > client.feature_level("transaction.version")
            update = FeatureUpdateKey(
                feature="transaction.version", max_version_level=level, upgrade_type=1 if is_raised else 2
            )
            answer = await client.request(UpdateFeaturesRequest(timeout_ms=5000, feature_updates=[update]))
            assert answer.error_code == 0
            assert all(each.error_code == 0 for each in answer.results)

    run(ask())
