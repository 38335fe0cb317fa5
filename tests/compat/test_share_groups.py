"""Java's share consumer (KIP-932) in share groups at Penstock, and the records stored for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from broker.wire_client import WireClient
from compat.peers import HERE, java, maven_classpath
from compat.places import ONE_AND_LATER_THREE, made
from penstock import Admin, Producer
from penstock.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

pytestmark = pytest.mark.compat

QUICK = {
    "group.share.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
}
KINDS = ("accept", "release", "reject", "renew")
EACH = 5


@pytest.fixture(scope="module", params=ONE_AND_LATER_THREE)
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    with made(request.param, config=QUICK) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize("mode", ["batch_optimized", pytest.param("record_limit", marks=pytest.mark.soak)])
def test_javas_share_consumer_says_what_becomes_of_records(servers: str, mode: str) -> None:
    topic, group = f"t-{mode}", f"g-{mode}"
    with Admin(servers) as admin:
        admin.create_topic(topic)
    begin_at_the_start(servers, group)
    names = [f"{kind}-{number}" for number in range(EACH) for kind in KINDS]
    with Producer(servers, {"linger.ms": "20"}) as producer:
        for name in names:
            producer.send(topic, name.encode())
    classpath = maven_classpath("kafka-4.3.0")
    program = HERE / "java/share/ShareMember.java"
    found = java(classpath, program, servers, group, topic, mode, len(names), check=True)
    lines = Counter(found.stdout.splitlines())
    expected = Counter(
        {
            **{f"accept-{n} 1 accept": 1 for n in range(EACH)},
            **{f"release-{n} 1 release": 1 for n in range(EACH)},
            **{f"release-{n} 2 accept": 1 for n in range(EACH)},
            **{f"reject-{n} 1 reject": 1 for n in range(EACH)},
            **{f"renew-{n} 1 renew": 1 for n in range(EACH)},
            **{f"renew-{n} 1 accept": 1 for n in range(EACH)},
        }
    )
    assert lines == expected
    assert _lag(servers, group, topic) == (len(names), 0)


def begin_at_the_start(servers: str, group: str) -> None:
    resource = AlterConfigsResource(
        resource_type=32,
        resource_name=group,
        configs=[AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")],
    )
    with WireClient(_port(servers)) as client:
        answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0


def _lag(servers: str, group: str, topic: str) -> tuple[int, int]:
    """Return the share group's start offset in partition 0 of a topic, and its lag."""
    asked = DescribeShareGroupOffsetsRequest(groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group)])
    asked.groups[0].topics = [DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[0])]
    with WireClient(_port(servers)) as client:
        where = client.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4).coordinators[0]
    with WireClient(where.port) as client:
        found = client.ask(asked, 1).groups[0].topics[0].partitions[0]
    assert found.error_code == 0
    return found.start_offset, found.lag


def _port(servers: str) -> int:
    return int(servers.split(",")[0].rpartition(":")[2])
