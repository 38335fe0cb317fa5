"""A Penstock broker as a separate process, for benchmarks whose contestants all use the same broker."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

LISTENING = re.compile(r"listening on (\S+:\d+)")


def free_port() -> int:
    """Return a port that nothing listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def running_broker(*config: str) -> Iterator[str]:
    """Start a broker with a data directory that is removed afterwards; yield its address.

    `config` are settings as NAME=VALUE.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
        command = [sys.executable, "-m", "penstock.broker", "--data-dir", directory, "--port", "0"]
        for setting in config:
            command += ["--config", setting]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = LISTENING.search(line)
            if match is None:
                raise RuntimeError(f"the broker did not start: {line!r}")
            yield match[1]
        finally:
            process.terminate()
            process.wait(10)
