"""Tests of `penstock broker --brokers`, which runs a whole cluster in one process."""

from __future__ import annotations

import signal
import subprocess
import sys

from broker.wire_client import is_well


def test_a_process_can_be_a_cluster() -> None:
    command = [sys.executable, "-m", "penstock.broker", "--port", "0", "--brokers", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("penstock cluster of 2 listening on 127.0.0.1:")
            addresses = line.split(" listening on ")[1].split(", data in ")[0].split(",")
            assert len(addresses) == 2
            for address in addresses:
                assert is_well(int(address.rpartition(":")[2]))
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
