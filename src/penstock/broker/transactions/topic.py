"""`__transaction_state`, the topic in which the transaction coordinator stores transactions.

The coordinator reads a partition of the topic when the broker starts, or becomes the partition's leader.
"""

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
