"""Tests that DescribeConfigs shows a broker's start-up settings as Kafka shows those of server.properties."""

from __future__ import annotations

from broker.wire_client import WireClient
from penstock import Broker
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)

STATIC, DEFAULT = 4, 5


def test_the_address_is_static_wherever_it_came_from() -> None:
    for broker in (Broker(), Broker(listeners="PLAINTEXT://127.0.0.1:0", config={"node.id": 7})):
        with broker, WireClient(broker.port) as client:
            node = "7" if broker.config.settings.get("node.id") else "1"
            resource = DescribeConfigsResource(
                resource_type=4,
                resource_name=node,
                configuration_keys=["advertised.listeners", "node.id", "num.partitions"],
            )
            [answer] = client.ask(DescribeConfigsRequest(resources=[resource]), 4).results
            shown = {each.name: (each.value, each.config_source) for each in answer.configs}
            assert shown["advertised.listeners"] == (f"PLAINTEXT://{broker.bootstrap_servers}", STATIC)
            assert shown["node.id"] == (node, STATIC)
            assert shown["num.partitions"] == ("1", DEFAULT)
