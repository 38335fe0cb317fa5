"""Tests of ``penstock broker --for-tests``: one line of JSON when ready, and an end with its parent."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from penstock import Admin, __version__
from penstock.broker import parent_process
from penstock.broker.parent_process import ParentProcess
from penstock.client import NewTopic

COMMAND = [sys.executable, "-m", "penstock", "broker", "--for-tests"]

PARENT = f"""
import subprocess, sys, threading
def spawn():
    child = subprocess.Popen({COMMAND!r} + sys.argv[1:], stdout=subprocess.PIPE, text=True)
    sys.stdout.write(child.stdout.readline())
    sys.stdout.flush()
thread = threading.Thread(target=spawn)
thread.start()
thread.join()
sys.stdin.read()
"""
"""The source of a parent program whose thread that starts the broker ends at once.

Threads of a JVM or of Go may do so.
"""


def started(*options: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    process = subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


def test_it_says_in_one_line_of_json_where_it_is_and_ends_on_sigterm() -> None:
    process, said = started()
    with Admin(bootstrap_servers=said["bootstrap_servers"]) as admin:
        cluster = admin.describe_cluster()
    assert said == {
        "bootstrap_servers": f"127.0.0.1:{said['port']}",
        "port": said["port"],
        "pid": process.pid,
        "cluster_id": cluster.cluster_id,
        "version": __version__,
    }
    assert said["port"] != 9092
    process.send_signal(signal.SIGTERM)
    rest, errors = process.communicate(timeout=60)
    assert (process.returncode, rest, errors) == (0, "", "")


def test_it_goes_with_several_brokers_and_settings() -> None:
    process, said = started("--brokers", "3", "-o", "num.partitions=6")
    try:
        addresses = said["bootstrap_servers"].split(",")
        assert len(addresses) == 3
        assert addresses[0] == f"127.0.0.1:{said['port']}"
        with Admin(bootstrap_servers=said["bootstrap_servers"]) as admin:
            cluster = admin.describe_cluster()
            assert (len(cluster.nodes), cluster.cluster_id) == (3, said["cluster_id"])
            admin.create_topics([NewTopic("orders", -1)])
            assert len(admin.describe_topics(["orders"])[0].partitions) == 6
    finally:
        process.terminate()
        assert process.communicate(timeout=60)[0] == ""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
def test_it_ends_with_its_parent_and_not_with_a_thread_of_it(number: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    said = json.loads(parent.stdout.readline())
    broker = os.pidfd_open(said["pid"])
    try:
        with Admin(bootstrap_servers=said["bootstrap_servers"]) as admin:  # its thread has ended by now
            assert admin.list_topics() == []
        parent.send_signal(number)
        parent.wait(timeout=60)
        asyncio.run(_readable(broker))
        parent.communicate()
    finally:
        os.close(broker)


async def _readable(descriptor: int) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, ended.set)
    async with asyncio.timeout(60):
        await ended.wait()
    asyncio.get_running_loop().remove_reader(descriptor)


def called(change: Callable[[], None], parent: Callable[[], ParentProcess]) -> None:
    """Return once the watcher reports the parent's end after `change`; fail after 60 s."""

    async def watch() -> None:
        ended = asyncio.Event()
        parent().when_ended(asyncio.get_running_loop(), ended.set)
        change()
        async with asyncio.timeout(60):
            await ended.wait()

    asyncio.run(watch())


def test_where_there_are_no_descriptors_of_processes_a_timer_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.setattr(parent_process, "LOOK_EVERY_S", 0)
    called(lambda: monkeypatch.setattr(os, "getppid", lambda: -1), ParentProcess)


def test_a_parent_that_had_ended_before_it_could_be_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(number: int) -> int:
        raise ProcessLookupError(number)

    monkeypatch.setattr(os, "pidfd_open", gone, raising=False)
    called(lambda: None, ParentProcess)


def test_on_windows_the_end_of_a_pipe_as_standard_input_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    parent = ParentProcess()
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(parent_process.os, "name", "nt")
        called(lambda: os.close(writing), lambda: parent)
