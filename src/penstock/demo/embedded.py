"""The demo's own broker: a separate process, with its log in the demo's directory.

If a demo is killed, its broker keeps running. The next demo finds the broker through a file with its process
id, and stops it before starting its own, so that no records of the earlier process can arrive during the new
replay.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from penstock.demo.output import Output, read_json, write_json
from penstock.errors import NetworkError, StorageError

HOST = "127.0.0.1"
START_SECONDS = 30.0
STOP_SECONDS = 15.0
LISTENING = re.compile(r"listening on (\S+):(\d+)")


class EmbeddedBroker:
    """The demo's running broker process. The end of its ``with`` block stops it, unless `stays` is set."""

    def __init__(self, output: Output, process: subprocess.Popen[bytes], port: int) -> None:
        self._output = output
        self._process = process
        self.port = port
        self.bootstrap_server = f"{HOST}:{port}"
        self.stays = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @classmethod
    def start(cls, output: Output, port: int = 0) -> EmbeddedBroker:
        """Start a broker on `port` (0: a free one) and wait until it listens.

        Raises:
            NetworkError: the broker did not start; the error has the broker's own message.
        """
        stop_leftover(output)
        # A file rather than a pipe: the broker may outlive this process, and a pipe would not.
        with output.broker_log.open("ab") as log:
            written_before = log.tell()
            process = subprocess.Popen(
                _command(output, port),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )
        try:
            write_json(output.broker_file, {"pid": process.pid})
            port = _wait_until_listening(process, output.broker_log, written_before)
            write_json(output.broker_file, {"pid": process.pid, "port": port})
            return cls(output, process, port)
        except BaseException:
            _stop(process)
            raise

    def __enter__(self) -> EmbeddedBroker:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.stays:
            _stop(self._process)
            self._output.broker_file.unlink(missing_ok=True)


def _command(output: Output, port: int) -> list[str]:
    options = ["--data-dir", str(output.broker_directory), "--host", HOST, "--port", str(port)]
    return [sys.executable, "-m", "penstock", "broker", *options]


class Leftover(NamedTuple):
    """A broker that an earlier demo left running.

    `port` is 0 if that demo ended before the broker listened.
    """

    pid: int
    port: int


def leftover(output: Output) -> Leftover | None:
    """Return the broker that an earlier demo left running in this directory, or None."""
    if not output.broker_file.exists():
        return None
    try:
        noted = read_json(output.broker_file)
        found = Leftover(int(noted["pid"]), int(noted.get("port", 0)))
    except (ValueError, KeyError):
        return None
    return found if found.pid > 0 and is_serving(found.pid, output.broker_directory) else None


def stop_leftover(output: Output) -> None:
    """Stop the broker that an earlier demo in this directory left running, if there is one.

    Raises:
        StorageError: the broker does not stop.
    """
    found = leftover(output)
    if found is not None:
        pid = found.pid
        for sign, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
            os.kill(pid, sign)
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and is_serving(pid, output.broker_directory):
                time.sleep(0.02)
            if not is_serving(pid, output.broker_directory):
                break
        else:
            raise StorageError(f"process {pid}, the broker of an earlier demo, does not stop; end it by hand")
    output.broker_file.unlink(missing_ok=True)


def is_serving(pid: int, directory: Path) -> bool:
    """Return True if process `pid` runs, is not a zombie, and has `directory` as its data directory."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        shown = subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, check=False)
        words = shown.stdout
    except OSError:
        return False
    option = rb"--data-dir[\0 ]" + re.escape(os.fsencode(directory)) + rb"(?=[\0\n ]|\Z)"
    return re.search(option, words) is not None


def _wait_until_listening(process: subprocess.Popen[bytes], log: Path, position: int) -> int:
    deadline = time.monotonic() + START_SECONDS
    while True:
        ended = process.poll() is not None
        with log.open("rb") as file:
            file.seek(position)
            said = file.read().decode("utf-8", "replace")
        found = LISTENING.search(said)
        if found:
            return int(found[2])
        if ended or time.monotonic() > deadline:
            words = said.strip().splitlines()
            cause = words[-1].removeprefix("penstock: ") if words else "it said nothing"
            raise NetworkError(f"the broker did not start: {cause}")
        time.sleep(0.01)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
