"""The topic `__share_group_state`, in which the states of share partitions are stored."""

from __future__ import annotations

from penstock.broker.coordination.state_topic import StateTopicLayout
from penstock.broker.partitions.internal_topics import SHARE_STATE_TOPIC

LAYOUT = StateTopicLayout(
    SHARE_STATE_TOPIC,
    "share.coordinator.state.topic.",
    {"cleanup.policy": "delete", "compression.type": "producer", "retention.ms": "-1"},
    has_min_isr=True,
)
