"""Tests of a broker process at its limit of open files.

It stops accepting connections, logs this once, and continues when descriptors are free.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.bench_node import batch_of, produce_request
from broker.test_process import BROKER
from broker.wire_client import WireClient, is_well
from free_ports import free_ports
from penstock.common.listening.accepting import DESCRIPTORS_RESERVED, listening_sockets
from penstock.log.directory.files import DESCRIPTORS_SPARE
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest
from penstock.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.list_transactions_request import ListTransactionsRequest

FILES = 256
"""The process's soft and hard limit of open files, of which the broker reserves 64 for logs."""

LOOK_S = 0.05
"""The interval in seconds at which the broker checks for free descriptors."""
LOG_BYTES_MAX = 20_000
PATIENCE_S = 20.0


@contextlib.contextmanager
def broker(
    data: Path, log: Path, *options: str, soft: int = FILES, hard: int = FILES
) -> Iterator[tuple[int, int]]:
    """Run a broker process with a limit of open files, and its log in a file.

    Yields its port and process id.
    """
    limited = (
        "import resource, runpy, sys; from penstock.common.listening import accepting; "
        f"accepting.RETRY_S = {LOOK_S}; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); "
        "sys.argv[1:1] = []; runpy.run_module('penstock.broker', run_name='__main__')"
    )
    arguments = [BROKER[0], "-c", limited, "--data-dir", str(data), "--port", "0", *options]
    with open(log, "wb") as stderr:
        popen = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=stderr, text=True)
        try:
            assert popen.stdout is not None
            line = popen.stdout.readline()
            yield int(line.split(",")[0].rpartition(":")[2]), popen.pid
            assert popen.poll() is None
        finally:
            popen.kill()
            popen.wait()
            assert popen.stdout is not None
            popen.stdout.close()


def eventually(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def connect_all(port: int, count: int) -> list[socket.socket]:
    """Open this number of connections; those that the broker does not accept wait in the kernel."""
    peers = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            peers.append(socket.create_connection(("127.0.0.1", port), 5))
    return peers


def is_served(port: int) -> bool:
    try:
        return is_well(port)
    except OSError:
        return False


def open_files(process_id: int) -> int:
    return len(os.listdir(f"/proc/{process_id}/fd"))


def topics(*names: str, partitions: int = 1) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    )


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")


@needs_proc
@pytest.mark.parametrize("which", ["broker", "metrics", "0.7"])
def test_connections_leave_a_reserve_and_are_taken_in_again(which: str, tmp_path: Path) -> None:
    ports = dict(zip(("metrics", "0.7"), free_ports(2), strict=True))
    options = [
        f"--config=penstock.metrics.port={ports['metrics']}",
        f"--config=penstock.0.7.port={ports['0.7']}",
    ]
    log = tmp_path / "log"
    with broker(tmp_path / "data", log, *options) as (port, process_id):
        with WireClient(port) as client:
            peers = connect_all(ports.get(which, port), 60 if which == "metrics" else FILES + 40)
            try:
                if which != "metrics":  # which takes in 32
                    eventually(lambda: b"no room for another connection" in log.read_bytes())
                time.sleep(3 * LOOK_S)  # two looks for room
                assert open_files(process_id) <= FILES - FILES // 4 + 3
                # Who is there already notices nothing, not even where new files are needed.
                answer = client.ask(topics("fresh"), 5)
                assert [topic.error_code for topic in answer.topics] == [0]
                produced = client.ask(produce_request(batch_of(b"v"), topic="fresh"), 9)
                assert produced.responses[0].partition_responses[0].error_code == 0
            finally:
                for peer in peers:
                    peer.close()
            eventually(lambda: is_served(port))
            assert produced.responses[0].partition_responses[0].base_offset == 0
        assert log.read_bytes().count(b"no room for another connection") <= 2  # once for each listener
        assert len(log.read_bytes()) < LOG_BYTES_MAX
        assert b"Traceback" not in log.read_bytes()


@needs_proc
def test_logs_that_cannot_be_opened_answer_an_error_and_others_work_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with broker(tmp_path / "data", log) as (port, _), WireClient(port) as client:
        client.ask(topics("first"), 5)
        assert _produce(client, "first", 0) == 0
        codes = set()
        for number in range(20):
            name = f"many{number}"
            created = client.ask(topics(name, partitions=20), 5)
            codes.add(created.topics[0].error_code)
            if not created.topics[0].error_code:
                codes |= {_produce(client, name, index) for index in range(20)}
        assert codes == {0, ErrorCode.KAFKA_STORAGE_ERROR}
        assert _produce(client, "first", 0) == 0  # its files are open
        text = log.read_bytes()
        assert b"Traceback" not in text
        assert len(text) < 100_000


@needs_proc
def test_a_partition_that_met_the_limit_is_used_once_there_is_room(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with broker(tmp_path / "data", log) as (port, process_id), WireClient(port) as client:
        refused: list[tuple[str, int]] = []
        number = 0
        while len(refused) < 30:
            name = f"many{number}"
            number += 1
            assert client.ask(topics(name, partitions=20), 5).topics[0].error_code == 0
            refused += [
                (name, index)
                for index in range(20)
                if _produce(client, name, index) == ErrorCode.KAFKA_STORAGE_ERROR
            ]
        assert open_files(process_id) <= FILES - DESCRIPTORS_SPARE
        assert _produce(client, *refused[0]) == ErrorCode.KAFKA_STORAGE_ERROR
        # Handlers are imported by the first request for them: there are descriptors for that.
        assert client.ask(ListGroupsRequest(), 4).error_code == 0
        assert client.ask(DescribeLogDirsRequest(), 4).error_code == 0
        assert client.ask(ListTransactionsRequest(), 1).error_code == 0
        names = [f"many{each}" for each in range(4)]
        deleted = client.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=1000), 5)
        assert [each.error_code for each in deleted.responses] == [0] * 4
        assert {_produce(client, *each) for each in refused} == {0}
    text = log.read_text("utf-8")
    assert "Traceback" not in text
    with broker(tmp_path / "data", log) as (port, _), WireClient(port) as client:
        assert {_produce(client, *each) for each in refused} == {0}


def _produce(client: WireClient, topic: str, index: int) -> int:
    """Send Produce until the log could be opened, since the broker limits openings per second.

    Returns the error code.
    """
    code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    while code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        time.sleep(0.01)
        answer = client.ask(produce_request(batch_of(b"v"), topic=topic, partition=index), 9)
        code = int(answer.responses[0].partition_responses[0].error_code)
    return code


@needs_proc
def test_the_soft_limit_is_raised_by_the_command(tmp_path: Path) -> None:
    hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 4096)
    with broker(tmp_path / "data", tmp_path / "log", soft=FILES, hard=hard) as (_, process_id):
        limits = Path(f"/proc/{process_id}/limits").read_text()
        [line] = [line for line in limits.splitlines() if line.startswith("Max open files")]
        assert line.split()[3:5] == [str(hard), str(hard)]


def test_a_broker_inside_a_program_leaves_its_limits_alone() -> None:
    check = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (300, 600))\n"
        "from penstock import Broker\n"
        "with Broker(): pass\n"
        "assert resource.getrlimit(resource.RLIMIT_NOFILE) == (300, 600)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_every_address_of_a_host_is_listened_on() -> None:
    bound = listening_sockets("127.0.0.1", 0)
    try:
        assert [one.getsockname()[0] for one in bound] == ["127.0.0.1"]
    finally:
        for one in bound:
            one.close()
    with pytest.raises(OSError, match=r"[Aa]ddress"):
        listening_sockets("203.0.113.1", 0)


def test_the_reserve_is_small_beside_usual_limits() -> None:
    assert DESCRIPTORS_RESERVED <= 1024 // 4
