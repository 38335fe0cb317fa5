"""Copy a JSON topic to lake tables with `penstock land` while processes are killed and requests fail."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from compat.faulty_proxy import Faults
from penstock import write_topic
from penstock.lake.contract import LakeTable
from penstock.lake.lander import Lander, LandSettings
from penstock.lake.shapes import ShapeSettings

KILLS = 50
ROWS = 20


class Server(Protocol):
    """An object store or a catalog server that can be killed and started again."""

    def kill(self) -> None: ...
    def start(self) -> None: ...


def land_through_kills(
    where: str,
    options: Mapping[str, str],
    servers: str,
    server: Server,
    proxy: Faults,
    drawn: random.Random,
    *,
    methods: Sequence[str],
    odds: float,
    directory: Path,
) -> int:
    """Copy the topic `orders` to a table with processes that are killed, every fifth time with the server.

    Requests with one of the HTTP `methods` fail with the probability `odds`: before or after they take
    effect, or without an answer. Returns the number of rows written to the topic; their field `n` numbers
    them from 0.
    """
    count = 0

    def fill() -> None:
        nonlocal count
        values = [json.dumps({"n": n}).encode() for n in range(count, count + ROWS)]
        write_topic(pa.table({"value": values}), "orders", bootstrap_servers=servers)
        count += ROWS

    def fault(method: str, path: str) -> str | None:
        is_drawn = method in methods and drawn.random() < odds
        return drawn.choice(("before", "after", "lost")) if is_drawn else None

    stored = [f"--store={name}={value}" for name, value in options.items()]
    words = ["land", "orders", "--to", where, "-b", servers, "--format", "json", "--every", "1ms", "-f"]
    proxy.fault = fault
    for number in range(KILLS):
        fill()
        with subprocess.Popen(
            [sys.executable, "-m", "penstock", *words, *stored, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(directory)},
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()  # the first commit, or the end of the process
            fill()
            time.sleep(drawn.random() * 0.5)
            if number % 5 == 4:
                server.kill()
                time.sleep(drawn.random())
                server.start()
            process.send_signal(signal.SIGKILL)
    proxy.fault = lambda method, path: None
    assert proxy.failed
    return count


def land_the_rest(servers: str, table: LakeTable) -> None:
    """Copy the records that the killed processes did not copy to the table."""
    with Lander(LandSettings("orders", servers, ShapeSettings("json")), table) as lander:
        lander.run(follow=False)
