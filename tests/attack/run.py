"""A broker process, a client that does everything right, and everything that harmed one or the other once.

    python tests/attack/run.py [--seconds 8] [--seed 1] [--only NAME] [--directory DIR]

Sends each attack of `attacks` for so many seconds to a broker with its data on disk, beside the client of
`good_client`, and prints a line for each: the client's worst latency, by how much the machine let a pause of
it take too long (which is allowed for), the most memory the broker had above that at rest, what it wrote to
its log. At the end the broker is stopped and started again, and everything
that was acknowledged is read. It ends with 1 if a limit was exceeded.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))

from attack.attacks import ATTACKS, Target  # noqa: E402
from penstock import read_topic  # noqa: E402

LATENCY_S_MAX = 0.5
MEMORY_BYTES_MAX = 300 << 20
LOG_BYTES_MAX = 1 << 20
TOPIC = "good-topic"
FILES_MAX = 1024
"""File descriptors of the broker, so that an attack can use them up."""


class Line(NamedTuple):
    """What one attack did."""

    name: str
    latency_s: float
    late_s: float
    """By how much the machine let a pause of the client take too long."""
    memory_bytes: int
    log_bytes: int
    failure: str


class Outcome(NamedTuple):
    """What all of them did, and what was wrong at the end."""

    lines: list[Line]
    idle_latency_s: float
    problems: list[str]


class BrokerProcess:
    """A broker with its data in a directory; its log goes into a file."""

    def __init__(self, directory: Path, log: Path) -> None:
        self._log = log
        with log.open("ab") as file:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "penstock.broker", "--data-dir", str(directory), "--port", "0"],
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                preexec_fn=_limit_files,
            )
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        self.port = int(line.split(",")[0].rpartition(":")[2])

    @property
    def log_bytes(self) -> int:
        return self._log.stat().st_size

    def status(self, field: str) -> int:
        """A figure of ``/proc/PID/status`` in bytes."""
        for line in Path(f"/proc/{self.popen.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise ProcessLookupError(f"the broker has no {field}: it has ended")

    def forget_peak(self) -> None:
        """Have the most memory counted from now on."""
        Path(f"/proc/{self.popen.pid}/clear_refs").write_text("5")

    def end(self, number: int) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(timeout=60)


def _limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, FILES_MAX))


class GoodClient:
    """The process of `good_client`, and what it has noted."""

    def __init__(self, port: int, output: Path) -> None:
        self._output = output
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._popen = subprocess.Popen(
            [sys.executable, str(HERE / "good_client.py"), f"127.0.0.1:{port}", TOPIC, str(output)],
            stdin=subprocess.PIPE,
            env=environment,
        )

    def notes(self) -> list[tuple[str, float, float, object]]:
        if not self._output.exists():
            return []
        lines = self._output.read_text(encoding="utf-8").splitlines(keepends=True)
        return [tuple(json.loads(line)) for line in lines if line.endswith("\n")]  # type: ignore[misc]

    def latest_between(self, start: float, end: float) -> float:
        """By how much a pause in between took too long, at worst."""
        return max((s for what, at, s, _ in self.notes() if what == "late" and start <= at <= end), default=0)

    def worst_between(self, start: float, end: float) -> float:
        """The longest time that anything took which ended in between; and the longest silence, if longer."""
        worst = 0.0
        for what in ("produced", "consumed"):
            times = [start]
            for kind, at, seconds, _ in self.notes():
                if kind == what and start <= at <= end:
                    worst = max(worst, seconds)
                    times.append(at)
            times.append(end)
            worst = max(worst, max(b - a for a, b in pairwise(times)) - 0.1)
        return worst

    def wait_for(self, count: int) -> None:
        """Wait until so many records have come around."""
        deadline = time.monotonic() + 60
        while sum(note[0] == "consumed" for note in self.notes()) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the client works not at all: {self.notes()[-3:]}")
            time.sleep(0.1)

    def end(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.communicate(timeout=60)
        self._popen.kill()
        self._popen.wait()


@contextlib.contextmanager
def broker_in(directory: Path, log: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(directory, log)
    try:
        yield broker
    finally:
        broker.popen.kill()
        broker.popen.wait()
        assert broker.popen.stdout is not None
        broker.popen.stdout.close()


def run(
    seconds: float, seed: int, only: str | None = None, *, directory: str | None = None, verbose: bool = True
) -> Outcome:
    """Send all attacks, or one; return what they did. The broker's data are below `directory` meanwhile."""
    with tempfile.TemporaryDirectory(prefix="attack-", dir=directory) as place:
        return _run(Path(place), seconds, seed, only, verbose)


def _run(place: Path, seconds: float, seed: int, only: str | None, verbose: bool) -> Outcome:
    data, log = place / "data", place / "log"
    lines: list[Line] = []
    problems: list[str] = []
    # Where more runs than there are processors, everybody waits for a turn so many times longer.
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    with broker_in(data, log) as broker:
        client = GoodClient(broker.port, place / "notes")
        try:
            client.wait_for(100)
            began = time.monotonic()
            time.sleep(2)
            idle_s = client.worst_between(began, time.monotonic())
            idle_bytes = broker.status("VmRSS")
            if verbose:
                print(
                    f"at rest: {idle_bytes >> 20} MiB, worst latency {idle_s * 1000:.0f} ms; the machine is"
                    f" used {busy:.1f} times, so {LATENCY_S_MAX * busy:.1f} s are allowed",
                    flush=True,
                )
                print(
                    f"{'attack':<22}{'latency':>11}{'machine late':>14}{'memory above rest':>19}{'log':>9}",
                    flush=True,
                )
            for attack in ATTACKS:
                if only in (None, attack.run.__name__):
                    rng = random.Random(f"{seed} {attack.run.__name__}")
                    lines.append(_attack(attack.run, broker, client, rng, seconds * attack.times, idle_bytes))
                    if verbose:
                        print(_shown(lines[-1]), flush=True)
                    if broker.popen.poll() is not None:
                        problems.append(f"the broker has ended with {broker.popen.returncode}")
                        break
        finally:
            client.end()
        if not problems:
            if broker.end(signal.SIGTERM):
                problems.append(f"a clean end was {broker.popen.returncode}")
            with broker_in(data, log) as again:
                problems += _lost(client, again.port)
    problems += _judged(lines, LATENCY_S_MAX * busy + idle_s)
    failed = [note for note in client.notes() if note[0] == "failed"]
    problems += [f"the client was told: {note[3]}" for note in failed[:5]]
    return Outcome(lines, idle_s, problems)


def _attack(
    attack: object,
    broker: BrokerProcess,
    client: GoodClient,
    rng: random.Random,
    seconds: float,
    idle_bytes: int,
) -> Line:
    assert callable(attack)
    name, failure = attack.__name__, ""
    log_bytes = broker.log_bytes
    broker.forget_peak()
    began = time.monotonic()
    try:
        attack(Target(broker.port, rng, seconds))
    except AssertionError as error:
        failure = str(error)
    time.sleep(1)
    try:
        peak = broker.status("VmHWM") - idle_bytes
    except OSError:
        peak = 0
    ended = time.monotonic()
    worst, late = client.worst_between(began, ended), client.latest_between(began, ended)
    return Line(name, worst, late, peak, broker.log_bytes - log_bytes, failure)


def _lost(client: GoodClient, port: int) -> list[str]:
    """What was acknowledged and is not there any more, or did not come around."""
    acknowledged = {note[3] for note in client.notes() if note[0] == "produced"}
    consumed = {note[3] for note in client.notes() if note[0] == "consumed"}
    kept = set()
    for value in read_topic(TOPIC, f"127.0.0.1:{port}")["value"].to_pylist():
        kept.add(json.loads(value)[0])
    problems = []
    if acknowledged - kept:
        problems.append(f"{len(acknowledged - kept)} of {len(acknowledged)} acknowledged records are lost")
    last = max((number for number in consumed if isinstance(number, int)), default=-1)
    missing = {number for number in acknowledged if isinstance(number, int) and number < last} - consumed
    if missing:
        problems.append(f"{len(missing)} acknowledged records never came around")
    return problems


def _judged(lines: list[Line], latency_s_max: float) -> list[str]:
    problems = []
    for line in lines:
        if line.latency_s > latency_s_max + line.late_s:
            problems.append(f"{line.name}: the client waited {line.latency_s:.2f} s")
        if line.memory_bytes > MEMORY_BYTES_MAX:
            problems.append(f"{line.name}: {line.memory_bytes >> 20} MiB above rest")
        if line.failure:
            problems.append(f"{line.name}: {line.failure}")
    if sum(line.log_bytes for line in lines) > LOG_BYTES_MAX:
        problems.append(f"{sum(line.log_bytes for line in lines) >> 10} KiB of log")
    return problems


def _shown(line: Line) -> str:
    return (
        f"{line.name:<22}{line.latency_s * 1000:>8.0f} ms{line.late_s * 1000:>11.0f} ms"
        f"{line.memory_bytes / (1 << 20):>15.0f} MiB{line.log_bytes / 1024:>5.0f} KiB {line.failure}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="attack a broker beside a client that does everything right")
    parser.add_argument("--seconds", type=float, default=8, help="how long an attack goes on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="the name of one attack")
    parser.add_argument("--directory", help="where the broker has its data meanwhile")
    words = parser.parse_args()
    outcome = run(words.seconds, words.seed, words.only, directory=words.directory)
    for problem in outcome.problems:
        print(problem)
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
