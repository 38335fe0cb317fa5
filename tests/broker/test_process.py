"""Tests of the broker as a process: its line of output when ready, signals, and recovery after SIGKILL."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.bench_node import batch_of, produce_request
from broker.wire_client import WireClient, is_well
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic

BROKER = [sys.executable, "-m", "penstock.broker"]


class Process:
    """A broker process that has printed that it is ready."""

    def __init__(self, *options: str) -> None:
        self.popen = subprocess.Popen([*BROKER, *options], stdout=subprocess.PIPE, text=True)
        assert self.popen.stdout is not None
        self.line = self.popen.stdout.readline()
        self.port = int(self.line.split(",")[0].rpartition(":")[2])

    def end(self, number: int) -> int:
        self.popen.send_signal(number)
        with self.popen:
            return self.popen.wait(timeout=20)


@contextlib.contextmanager
def process(*options: str) -> Iterator[Process]:
    broker = Process(*options)
    try:
        yield broker
    finally:
        broker.popen.kill()
        broker.popen.wait()
        assert broker.popen.stdout is not None
        broker.popen.stdout.close()


def put(port: int, count: int = 1) -> list[int]:
    with WireClient(port) as client:
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        answers = [client.ask(produce_request(batch_of(b"a" * 100)), 9) for _ in range(count)]
    return [answer.responses[0].partition_responses[0].base_offset for answer in answers]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_line_when_ready_and_a_clean_end(number: int, tmp_path: Path) -> None:
    with process("--data-dir", str(tmp_path), "--port", "0") as broker:
        assert broker.line == (
            f"penstock broker 1 listening on 127.0.0.1:{broker.port}, data in {tmp_path}\n"
        )
        assert is_well(broker.port)
        put(broker.port)
        assert broker.end(number) == 0
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_in_memory() -> None:
    with process("--config=node.id=5") as broker:
        assert broker.line.startswith("penstock broker 5 listening on ")
        assert broker.line.endswith(", data in memory\n")
        assert put(broker.port) == [0]


def test_listeners_as_in_server_properties() -> None:
    with process("--config", "listeners=PLAINTEXT://127.0.0.2:0") as broker:
        assert " listening on 127.0.0.2:" in broker.line


def test_kill_9_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    expected = 0
    for round_ in range(3):
        with process("--data-dir", str(tmp_path)) as broker:
            assert put(broker.port, 20) == list(range(expected, expected + 20)), f"round {round_}"
            broker.end(signal.SIGKILL)
        expected += 20
        assert not (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--prot", "1"], "usage:"),
        (["--port", "x"], "is no port"),
        (["--config", "x"], "usage:"),
        (["--config", "penstock.metrics.prt=1"], "did you mean penstock.metrics.port?"),
        (["--config", "num.partitions=x"], "expected a whole number"),
        (["--data-dir", "/proc/penstock"], "/proc/penstock"),
    ],
)
def test_mistakes_get_one_line_and_a_failing_exit(options: list[str], words: str) -> None:
    done = subprocess.run([*BROKER, *options], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_a_setting_that_there_is_not_is_told_and_passed_over() -> None:
    """The broker logs unknown settings and ignores them, as Apache Kafka does.

    They may belong to other releases, or to components that Penstock does not have.
    """
    words = ["--port", "0", "--config", "num.partition=1", "--config", "controlled.shutdown.enable=false"]
    with subprocess.Popen(
        [*BROKER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert " listening on " in process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=20)
    assert errors.count("unknown setting num.partition, passed over; did you mean num.partitions?") == 1
    assert errors.count("without effect in a single process: controlled.shutdown.enable") == 1


def test_a_port_in_use_gets_one_line() -> None:
    with process() as broker:
        command = [*BROKER, "--port", str(broker.port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        f"port {broker.port} on 127.0.0.1 is in use; stop what listens there, or choose another port\n"
    )


def test_a_file_size_limit_stands_for_a_full_disk(tmp_path: Path) -> None:
    """Beyond the limit every write fails: the producer gets an error, and the broker keeps running.

    Records written before the limit are kept.
    """
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000)); "
    code += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    code += "from penstock.broker.__main__ import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as popen:
        assert popen.stdout is not None
        port = int(popen.stdout.readline().split(",")[0].rpartition(":")[2])
        with WireClient(port) as client:
            client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
            codes = []
            for _ in range(5):
                answer = client.ask(produce_request(batch_of(b"x" * 9000)), 9)
                codes.append(answer.responses[0].partition_responses[0].error_code)
        assert codes == [0, 0, 0, 56, 56]
        assert is_well(port)
        os.kill(popen.pid, signal.SIGKILL)
    with process("--data-dir", str(tmp_path)) as broker:
        assert put(broker.port) == [3]


def test_a_start_loads_no_openssl_and_stops_the_collector_until_it_has_ended() -> None:
    """A broker without TLS does not import OpenSSL, which takes a tenth of the start time.

    A broker with TLS imports it when it reads certificates.
    """
    script = """
import gc, sys, types
from penstock.broker.command_line import read, run
def serve(**settings):
    print("asyncio" in sys.modules, "_ssl" in sys.modules, gc.isenabled())
    import ssl
    return 0 if ssl.OPENSSL_VERSION else 1
sys.modules["penstock.broker.process"] = types.SimpleNamespace(run_broker=serve)
print(run(read(["--port", "0"])), gc.isenabled())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False", "0", "True"]
