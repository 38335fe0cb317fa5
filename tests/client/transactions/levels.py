"""The two flows of transactions, chosen by a broker's feature."""

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
    """The values of a topic that are committed, sorted; once the last transaction has its markers."""
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
"""Of ``transaction.version``: before KIP-890, and with it."""


def set_level(servers: str, level: int) -> None:
    """Set ``transaction.version`` of a cluster. Connections that are open keep what they were told."""

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
