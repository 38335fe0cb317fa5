"""The fixtures of the package pytest-kafka, with Penstock instead of Kafka's and ZooKeeper's scripts.

    from penstock.testing.pytest_kafka import make_kafka_consumer, make_kafka_server, make_zookeeper_process

The paths of scripts are ignored. `make_kafka_server` starts ``penstock broker --for-tests`` with the settings
of the template; `make_zookeeper_process` starts a process that does nothing. `make_kafka_consumer` needs
kafka-python, as the original does.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import Popen
from typing import Any, Literal

import pytest

from penstock.common.logs import logger_named
from penstock.errors import NetworkError, RequestTimeoutError

__all__ = [
    "DEFAULT_CONSUMER_TIMEOUT_MS",
    "DEFAULT_TERMINATION_WAIT_TIMEOUT_SEC",
    "KAFKA_SERVER_CONFIG_TEMPLATE",
    "ZOOKEEPER_CONFIG_TEMPLATE",
    "make_kafka_consumer",
    "make_kafka_server",
    "make_zookeeper_process",
    "terminate",
]

KAFKA_SERVER_CONFIG_TEMPLATE = """\
listeners=PLAINTEXT://127.0.0.1:{kafka_port}
log.dirs={kafka_log_dir}
num.partitions=1
offsets.topic.replication.factor=1
default.replication.factor=1
"""
"""A template of ``server.properties`` with ``{kafka_port}``, ``{kafka_log_dir}``, and maybe ``{zk_port}``."""

ZOOKEEPER_CONFIG_TEMPLATE = """\
dataDir={zk_data_dir}
clientPort={zk_port}
"""
"""A template that exists only for compatibility, and is not read, since there is no ZooKeeper."""

DEFAULT_CONSUMER_TIMEOUT_MS = 500
DEFAULT_TERMINATION_WAIT_TIMEOUT_SEC = 5

Scope = Literal["session", "package", "module", "class", "function"]


def terminate(
    proc: Popen[Any],
    signal_fn: Callable[[Popen[Any]], Any] = Popen.terminate,
    wait_timeout: float = DEFAULT_TERMINATION_WAIT_TIMEOUT_SEC,
) -> None:
    """End a process with the function `signal_fn`, and wait; kill the process if it does not exit in time."""
    signal_fn(proc)
    try:
        proc.wait(timeout=wait_timeout)
    except subprocess.TimeoutExpired:
        proc.kill()
        proc.wait()


def make_zookeeper_process(
    zk_bin: str,
    zk_port: int | None = None,
    zk_config_template: str = ZOOKEEPER_CONFIG_TEMPLATE,
    teardown_fn: Callable[[Popen[Any]], Any] = terminate,
    scope: Scope = "function",
) -> Any:
    """Return a fixture that yields an idle process instead of ZooKeeper, and a port."""

    @pytest.fixture(scope=scope)
    def zookeeper_process() -> Iterator[tuple[Popen[Any], int]]:
        """Yield an idle process instead of ZooKeeper, and a port."""
        waiting = "import sys; sys.stdin.read()"
        process = Popen([sys.executable, "-S", "-c", waiting], stdin=subprocess.PIPE, start_new_session=True)
        yield process, _free_port() if zk_port is None else zk_port
        _end(process, teardown_fn)

    return zookeeper_process


def make_kafka_server(
    kafka_bin: str,
    zookeeper_fixture_name: str,
    kafka_port: int | None = None,
    kafka_config_template: str = KAFKA_SERVER_CONFIG_TEMPLATE,
    teardown_fn: Callable[[Popen[Any]], Any] = terminate,
    scope: Scope = "function",
    timeout: int = 15,
) -> Any:
    """Return a fixture that yields the process of a broker, and its port for clients."""

    @pytest.fixture(scope=scope)
    def kafka_server(request: pytest.FixtureRequest) -> Iterator[tuple[Popen[Any], int]]:
        """Yield the process of a broker that is ready, and its port for clients."""
        _, zk_port = request.getfixturevalue(zookeeper_fixture_name)
        port = _free_port() if kafka_port is None else kafka_port
        folder = request.getfixturevalue("tmp_path_factory").mktemp(f"kafka-server-{port}")
        properties = folder / "kafka-server.properties"
        properties.write_text(
            kafka_config_template.format(zk_port=zk_port, kafka_port=port, kafka_log_dir=folder / "logs")
        )
        process = _started(properties, port)
        yield process, port
        _end(process, teardown_fn)

    return kafka_server


def make_kafka_consumer(
    kafka_fixture_name: str,
    kafka_topics: Sequence[str] | None = None,
    seek_to_beginning: bool = False,
    scope: Scope = "function",
    **consumer_kwargs: Any,
) -> Any:
    """Return a fixture that yields a `KafkaConsumer` of kafka-python, connected to a fixture's broker.

    With `seek_to_beginning`, the consumer reads from the first record on.
    """
    topics = tuple(kafka_topics or ())
    if seek_to_beginning and not topics:
        raise ValueError("seek_to_beginning needs kafka_topics: partitions to seek in come of them")

    @pytest.fixture(scope=scope)
    def kafka_consumer(request: pytest.FixtureRequest) -> Any:
        """Return a connected consumer, whose iteration ends after `consumer_timeout_ms` without records."""
        _, port = request.getfixturevalue(kafka_fixture_name)
        options = {
            "consumer_timeout_ms": DEFAULT_CONSUMER_TIMEOUT_MS,
            "bootstrap_servers": f"127.0.0.1:{port}",
            **consumer_kwargs,
        }
        consumer = importlib.import_module("kafka").KafkaConsumer(*topics, **options)
        if seek_to_beginning:
            _await_assignment(consumer)
            consumer.seek_to_beginning()
        return consumer

    return kafka_consumer


def _await_assignment(consumer: Any, patience_s: float = 15) -> None:
    for _ in range(round(patience_s / 0.02)):
        consumer.poll(timeout_ms=20)
        if consumer.assignment():
            return
    raise RequestTimeoutError(f"the consumer was assigned no partition in {patience_s} s")


def _started(properties: Path, port: int) -> Popen[Any]:
    """Start the process of a broker, and return the process when the broker is ready.

    Raises:
        NetworkError: the process ended before the broker was ready; its messages are on standard error.
    """
    words = [sys.executable, "-m", "penstock", "broker", "--for-tests"]
    words += ["--config-file", str(properties), "--host", "127.0.0.1", "--port", str(port)]
    process = Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise NetworkError(f"the broker did not start (exit code {process.wait()}); standard error says why")
    logger_named("penstock.testing").info("started %s", json.loads(line))
    return process


def _end(process: Popen[Any], teardown_fn: Callable[[Popen[Any]], Any]) -> None:
    """Call the suite's `teardown_fn`, and end the process if it still runs."""
    try:
        teardown_fn(process)
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
