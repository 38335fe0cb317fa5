"""For tests of programs that use Kafka: a broker in this process, with faults on demand.

    with KafkaBroker() as broker:
        with broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", topic="orders", times=2):
            ...  # the code under test, with any client

`penstock.testing.plugin` is what pytest finds by itself; it gives the fixtures `kafka_broker` and
`kafka_topic`. Every name is imported on first use, so that pytest starts no later for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.broker.broker import KafkaBroker as KafkaBroker
    from penstock.broker.cluster import KafkaCluster as KafkaCluster
    from penstock.broker.faults.faults import Fault as Fault
    from penstock.broker.faults.faults import Faults as Faults
    from penstock.broker.faults.requests import Request as Request

_HOMES = {
    "Fault": ".broker.faults.faults",
    "Faults": ".broker.faults.faults",
    "KafkaBroker": ".broker.broker",
    "KafkaCluster": ".broker.cluster",
    "Request": ".broker.faults.requests",
}

__all__ = ["Fault", "Faults", "KafkaBroker", "KafkaCluster", "Request"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
