"""Tests of the demo's broker: it is started, found again and stopped, even after the demo has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.demo.embedded import EmbeddedBroker, is_serving, leftover
from penstock.demo.output import Output, write_json
from penstock.errors import NetworkError


@pytest.fixture
def output(tmp_path: Path) -> Output:
    return Output(tmp_path)


def test_a_broker_lives_as_long_as_its_block(output: Output) -> None:
    with EmbeddedBroker.start(output) as broker:
        found = leftover(output)
        assert found is not None
        assert found.pid == broker.pid
        assert broker.bootstrap_server == f"127.0.0.1:{found.port}"
    assert leftover(output) is None
    assert not output.broker_file.exists()


def test_a_broker_that_was_left_behind_is_stopped_before_the_next_starts(output: Output) -> None:
    code = (
        "import sys; from pathlib import Path; from penstock.demo.embedded import EmbeddedBroker\n"
        "from penstock.demo.output import Output\n"
        "EmbeddedBroker.start(Output(Path(sys.argv[1])))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(output.directory)], check=True)
    before = leftover(output)
    assert before is not None
    with EmbeddedBroker.start(output) as broker:
        assert broker.pid != before.pid
        assert not is_serving(before.pid, output.broker_directory)


def test_another_process_with_that_number_is_left_alone(output: Output) -> None:
    write_json(output.broker_file, {"pid": os.getpid(), "port": 1})
    assert leftover(output) is None
    with EmbeddedBroker.start(output):
        pass
    output.broker_file.write_text("{")
    assert leftover(output) is None


def test_the_broker_of_a_directory_with_a_longer_name_is_another(output: Output) -> None:
    with EmbeddedBroker.start(output) as broker:
        whole = output.broker_directory
        assert is_serving(broker.pid, whole)
        assert not is_serving(broker.pid, whole.with_name(whole.name[:-1]))


def test_a_broker_that_cannot_start_says_why(output: Output) -> None:
    with EmbeddedBroker.start(output) as broker:
        other = Output(output.directory / "other")
        other.directory.mkdir()
        with pytest.raises(NetworkError, match=f"the broker did not start: port {broker.port} "):
            EmbeddedBroker.start(other, broker.port)
    assert leftover(other) is None


def test_a_broker_that_was_killed_is_started_again_on_its_log(output: Output) -> None:
    with EmbeddedBroker.start(output) as broker:
        os.kill(broker.pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while leftover(output) is not None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert leftover(output) is None
        with EmbeddedBroker.start(output) as again:
            assert again.pid != broker.pid
