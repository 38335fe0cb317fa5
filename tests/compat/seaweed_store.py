"""SeaweedFS, a real S3-compatible object store, as a process that tests can kill and start again.

It is built from the sources on Go's module proxy, in the versions of `seaweedfs/go.sum`.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import time
from pathlib import Path

import pyarrow.fs
import pytest

from compat.peers import go_program

BUCKET = "lake"
ACCESS_KEY, SECRET_KEY, REGION = "penstock", "hush", "us-east-1"
START_S_MAX = 120


class SeaweedFS:
    """A SeaweedFS server with its data in a directory, which can be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self._program = go_program("seaweedfs", "github.com/seaweedfs/seaweedfs/weed")
        self._directory = directory
        self._ports = [_port_pair() for _ in range(4)]
        self.port = self._ports[0]
        identity = {
            "name": ACCESS_KEY,
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (directory / "s3.json").write_text(json.dumps({"identities": [identity]}))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the store, and wait until it answers."""
        s3, master, volume, filer = self._ports
        words = [f"-s3.port={s3}", f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}"]
        words += [
            "-volume.max=30",
            "-master.volumeSizeLimitMB=64",
            "-ip=127.0.0.1",
            f"-dir={self._directory}",
        ]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "server", "-s3", f"-s3.config={self._directory}/s3.json", *words],
                stdout=log,
                stderr=log,
                cwd=self._directory,
            )
        until = time.monotonic() + START_S_MAX
        while time.monotonic() < until:
            try:
                self.files().create_dir(BUCKET)
                # A write needs a volume, which a master hands out a while after its start.
                with self.files().open_output_stream(f"{BUCKET}/ready") as sink:
                    sink.write(b"1")
                return
            except OSError:
                time.sleep(0.5)
        pytest.fail(f"SeaweedFS does not answer: {(self._directory / 'log').read_text()[-2000:]}")

    def kill(self) -> None:
        """End the store with SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def files(self) -> pyarrow.fs.S3FileSystem:
        """Return the store as a file system of pyarrow, so that tests read it with a second S3 library."""
        return pyarrow.fs.S3FileSystem(
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            region=REGION,
            allow_bucket_creation=True,
            connect_timeout=5,
            request_timeout=20,
        )


def _port_pair() -> int:
    """Return a free port whose number plus 10,000 is free too: the store uses both."""
    drawn = random.SystemRandom()
    while True:
        port = drawn.randrange(15_000, 25_000)
        try:
            for each in (port, port + 10_000):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", each))
            return port
        except OSError:
            continue
