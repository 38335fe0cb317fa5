"""Every call of the newest Java Admin client has the outcome that `java/admin/outcomes.txt` lists.

The table has a second column where Apache Kafka 4.3 differs; `make soak` runs all calls against it too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.peers import HERE, java, maven_classpath, real_kafka
from compat.places import PLACES, THREE, THREE_AND_AGAIN_ONE, made

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

SETTINGS = {"offsets.topic.num.partitions": "5"}
HERE_COLUMN, KAFKA_COLUMN = 1, 2

OF_THREE_BROKERS = {
    "createTopics replicas 3": "{r=ok}",
    "createTopics assigned": "{r=!TopicExistsException}",
    "createTopics assigned badly": "{r2=ok, r3=!InvalidReplicaAssignmentException, "
    "r4=!InvalidReplicaAssignmentException}",
    "alterReassignments badly": "{t-0=ok, t-1=!InvalidReplicaAssignmentException, "
    "t-9=!UnknownTopicOrPartitionException}",
    "createPartitions": "{none=!UnknownTopicOrPartitionException, r=!InvalidReplicaAssignmentException, "
    "t=ok, u=!InvalidPartitionsException}",
}
"""Outcomes that differ at three brokers, where topic r has three replicas.

All other calls have the outcome they have at one broker.
"""


def outcomes(column: int) -> dict[str, str]:
    """Return the expected outcome of each call in the table, for Penstock or for Apache Kafka."""
    lines = (HERE / "java" / "admin" / "outcomes.txt").read_text().splitlines()[1:]
    rows = [line.split(" | ") for line in lines]
    return {row[0]: row[min(column, len(row) - 1)] for row in rows}


@pytest.fixture(params=[*THREE_AND_AGAIN_ONE, pytest.param("Apache Kafka", marks=pytest.mark.soak)])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, str]]]:
    """Provide the bootstrap servers of a cluster and the outcomes expected there."""
    if request.param in PLACES:
        more = OF_THREE_BROKERS if request.param == THREE else {}
        with made(request.param, config=SETTINGS) as broker:
            yield broker.bootstrap_servers, outcomes(HERE_COLUMN) | more
    else:
        with real_kafka("4.3.0", settings=SETTINGS) as servers:
            yield servers, outcomes(KAFKA_COLUMN)


def test_every_call_of_the_admin(place: tuple[str, dict[str, str]]) -> None:
    servers, expected = place
    program = HERE / "java" / "admin" / "AdminCalls.java"
    done = java(maven_classpath("kafka-4.3.0"), program, servers, timeout_s=300, check=True)
    said = dict(line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)
    assert len(said) > 120
    assert {name: text for name, text in said.items() if "!" in text or name in expected} == expected
