"""Tests that kill the broker with SIGKILL while a share group works: every answered write survives."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from broker.groups.share_simulation import ranks_of
from broker.wire_client import WireClient
from free_ports import free_ports
from penstock.broker.groups.share_state.batches import StateBatch
from penstock.protocol.messages import initialize_share_group_state_request as initialize
from penstock.protocol.messages import read_share_group_state_request as read
from penstock.protocol.messages import write_share_group_state_request as write
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest

RETRIED = (14, 15, 16)


class Victim:
    """A broker process that is killed and restarted on the same port, with the same directory."""

    def __init__(self, directory: Path) -> None:
        [self.port] = free_ports(1)
        self._command = [sys.executable, "-m", "penstock.broker", "--port", str(self.port)]
        self._command += ["--data-dir", str(directory), "--config", "log.flush.interval.messages=1"]
        self._command += ["--config", "share.coordinator.snapshot.update.records.per.snapshot=5"]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith("penstock broker")

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        with self._process:
            self._process.wait(30)


class Client:
    """A share group member that also acts as partition leader and writes states to the coordinator.

    It records every write that was answered, for `check`.
    """

    def __init__(self, port: int, dice: Random) -> None:
        self.port = port
        self.dice = dice
        self.epoch = 0
        self.answered: dict[int, tuple[int, int]] = {}
        """A dict from offset to the delivery count and state of the last answered write."""
        self.sent: dict[int, set[tuple[int, int]]] = {}
        """A dict from offset to all delivery counts and states that were sent.

        A write without an answer may have been stored.
        """
        self.count = 0
        """The number of writes that were answered."""
        self.topic_id = b""
        self.wire: WireClient | None = None

    def connect(self) -> WireClient:
        if self.wire is not None:
            self.wire.socket.close()
        self.wire = WireClient(self.port)
        return self.wire

    def ask(self, request: Any, version: int) -> Any:
        assert self.wire is not None
        return self.wire.ask(request, version)

    def prepare(self) -> None:
        self.connect()
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        self.topic_id = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7).topics[0].topic_id
        for key_type, key in ((0, "g"), (2, f"g:{'A' * 22}:0")):
            self.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 6)
        self.epoch = self.ask(self.beat(), 1).member_epoch
        data = initialize.PartitionData(partition=0, state_epoch=2, start_offset=0)
        state = initialize.InitializeStateData(topic_id=self.topic_id, partitions=[data])
        made = self.ask(initialize.InitializeShareGroupStateRequest(group_id="g", topics=[state]), 0)
        assert made.results[0].partitions[0].error_code == 0

    def beat(self) -> ShareGroupHeartbeatRequest:
        names = ["t"] if self.epoch == 0 else None
        return ShareGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=self.epoch, subscribed_topic_names=names
        )

    def work(self, seconds: float) -> None:
        """Send heartbeats and writes until the connection to the broker breaks, or the time is up."""
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline:
                answer = self.ask(self.beat(), 1)
                assert answer.error_code in (0, *RETRIED), answer
                self.epoch = max(self.epoch, answer.member_epoch)
                self.write()
        except (OSError, EOFError):
            return

    def write(self) -> None:
        offset = self.dice.randrange(200)
        rank = self.dice.randrange(1, 4), self.dice.choice([0, 2, 4])
        self.sent.setdefault(offset, set()).add(rank)
        batch = write.StateBatch(
            first_offset=offset, last_offset=offset, delivery_count=rank[0], delivery_state=rank[1]
        )
        data = write.PartitionData(partition=0, state_epoch=2, start_offset=-1, state_batches=[batch])
        state = write.WriteStateData(topic_id=self.topic_id, partitions=[data])
        answer = self.ask(write.WriteShareGroupStateRequest(group_id="g", topics=[state]), 1)
        if answer.results[0].partitions[0].error_code == 0:
            self.answered[offset] = max(rank, self.answered.get(offset, rank))
            self.count += 1

    def check(self) -> None:
        """Read the state: no answered write may be lost, and every stored value must have been sent."""
        self.connect()
        data = read.ReadStateData(topic_id=self.topic_id, partitions=[read.PartitionData(partition=0)])
        answer = self.ask(read.ReadShareGroupStateRequest(group_id="g", topics=[data]), 0)
        found = answer.results[0].partitions[0]
        assert (found.error_code, found.state_epoch, found.start_offset) == (0, 2, 0)
        ranks = ranks_of(
            tuple(
                StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in found.state_batches
            )
        )
        for offset, rank in self.answered.items():
            assert ranks[offset] >= rank, f"record {offset} has gone back"
        for offset, rank in ranks.items():
            assert rank in self.sent[offset]
        group = self.ask(ShareGroupDescribeRequest(group_ids=["g"]), 1).groups[0]
        (member,) = group.members
        assert member.member_epoch >= self.epoch
        self.epoch = member.member_epoch


def run(directory: Path, kills: int, seed: int) -> None:
    dice = Random(seed)
    victim = Victim(directory)
    client = Client(victim.port, dice)
    try:
        client.prepare()
        for _ in range(kills):
            working = threading.Thread(target=client.work, args=(30,))
            working.start()
            enough = client.count + dice.randrange(3, 40)
            while client.count < enough and working.is_alive():
                time.sleep(0.002)
            time.sleep(dice.uniform(0, 0.01))
            victim.kill()
            working.join(60)
            assert not working.is_alive()
            victim.start()
            client.check()
        assert client.answered
    finally:
        victim.kill()
        if client.wire is not None:
            client.wire.socket.close()


@pytest.mark.slow
def test_what_was_answered_survives_kills(tmp_path: Path) -> None:
    run(tmp_path, kills=2, seed=1)


@pytest.mark.soak
def test_fifty_kills(tmp_path: Path) -> None:
    run(tmp_path, kills=50, seed=2)
