"""Tools for tests of programs that use Kafka: a broker in the test's process, with faults on demand.

    with KafkaBroker() as broker:
        with broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", topic="orders", times=2):
            ...  # the code under test, with any client

pytest loads the plugin `penstock.testing.plugin` by itself; the plugin has fixtures such as `kafka_broker`
and `kafka_topic`. Every name of this package is imported on first use, so that pytest starts quickly.
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
