"""librdkafka's transactions in a Penstock cluster whose coordinators and leaders move and die."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from broker.replication.transactions_script import GROUP, ID, TOPIC, check, make_cluster, run
from compat.peers import PATIENCE_S, need_module

confluent_kafka = need_module("confluent_kafka")

pytestmark = [pytest.mark.compat, pytest.mark.filterwarnings("ignore::ResourceWarning")]

FORGETS_S = 1.2
"""Seconds after which librdkafka no longer has the address of a group's coordinator in its cache.

Since 2.12 librdkafka drops a broker that is missing from the metadata. If its cache still names that broker
as a coordinator, it waits forever (librdkafka#5511). Once a second it removes cache entries that were not
used for `metadata.max.age.ms`.
"""


class Librdkafka:
    """An adapter for librdkafka's transactional producer that raises retriable errors to its caller."""

    def __init__(self, servers: str) -> None:
        settings = {"bootstrap.servers": servers, "log_level": 0}
        # What librdkafka keeps of coordinators lasts as long as metadata: see FORGETS_S.
        age = {"metadata.max.age.ms": 100}
        self.producer = confluent_kafka.Producer(
            {**settings, **age, "transactional.id": ID, "retry.backoff.ms": 10}
        )
        self.member = confluent_kafka.Consumer({**settings, "group.id": GROUP})
        self._again(lambda: self.producer.init_transactions(30))

    def _again(self, call: Callable[[], Any]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                call()
            except confluent_kafka.KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
            else:
                return

    def begin(self) -> None:
        self.producer.begin_transaction()

    def write(self, partition: int, value: bytes) -> None:
        self.producer.produce(TOPIC, value, partition=partition)
        assert self.producer.flush(PATIENCE_S) == 0

    def store_offset(self, offset: int) -> None:
        offsets = [confluent_kafka.TopicPartition(TOPIC, 0, offset)]
        metadata = self.member.consumer_group_metadata()
        self._again(lambda: self.producer.send_offsets_to_transaction(offsets, metadata, 30))

    def end(self, *, commits: bool) -> None:
        end = self.producer.commit_transaction if commits else self.producer.abort_transaction
        self._again(lambda: end(30))
        time.sleep(FORGETS_S)


@pytest.mark.parametrize("happening", ["the coordinator dies", "a leader dies"])
def test_each_committed_transaction_is_whole_and_no_aborted_one_is_seen(happening: str) -> None:
    with make_cluster() as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3], [2, 3, 1], [3, 1, 2]], min_insync_replicas=2)
        theirs = Librdkafka(cluster.bootstrap_servers)
        try:
            committed, offset = run(cluster, theirs, happening)
            check(cluster, committed, offset)
        finally:
            theirs.member.close()
