"""`__transaction_state`: the topic that stores transactions. A start reads them from it."""

from __future__ import annotations

from penstock.broker.coordination.state_topic import StateTopicLayout
from penstock.broker.partitions.internal_topics import TRANSACTIONS_TOPIC

LAYOUT = StateTopicLayout(
    TRANSACTIONS_TOPIC,
    "transaction.state.log.",
    {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
    },
    has_min_isr=True,
)
