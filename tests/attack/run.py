"""Attack a broker process while a correct client uses it, and report the effects on both.

    python tests/attack/run.py [--seconds 8] [--seed 1] [--only NAME] [--scene one] [--directory DIR]

The program runs the attacks of `attacks` against a broker with its data on disk, those of `clusters` against
three brokers in one process, and those of `logins` against a broker with TLS and SASL. Each attack takes
`--seconds`, while the client of `good_client` produces and consumes. For each attack it prints the client's
worst latency and its longest login. It also prints how much too long a pause of the client took, by which the
limits are extended, the broker's additional memory, and what the broker logged. At the end it restarts the
broker and reads all acknowledged records. The exit status is 1 if a limit was exceeded.
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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))

from attack.attacks import ATTACKS, Attack, Target  # noqa: E402
from attack.clusters import CLUSTER_ATTACKS, ClusterTarget  # noqa: E402
from attack.logins import CROWD, LOGIN_ATTACKS, POOR_PASSWORD, POOR_USER, LoginTarget  # noqa: E402
from compat.peers import free_ports  # noqa: E402
from penstock import Admin, read_topic  # noqa: E402
from security_certificates import authority, issue  # noqa: E402

LATENCY_S_MAX = 0.5
LOGIN_S_MAX = 4.0
"""The longest that a login over a new connection may take, in seconds.

While ten thousand other connections are opened, the kernel's queue is full, and connecting is tried again
after a second.
"""

MEMORY_BYTES_MAX = 300 << 20
LOG_BYTES_MAX = 1 << 20
UNKNOWN_BYTES = 32 << 10
"""The most memory in bytes for a connection with an unfinished TLS handshake: the state of OpenSSL."""

TOPIC = "good-topic"
FILES_MAX = 1024
"""The broker's limit of file descriptors, low enough that an attack can use all of them."""

CROWD_FILES_MAX = 16_384
"""The limit of file descriptors of a broker to which attacks open ten thousand connections."""


class Line(NamedTuple):
    """The measurements of one attack, which `run` prints as one line."""

    name: str
    latency_s: float
    login_s: float
    """The longest login during the attack, in seconds."""
    late_s: float
    """The most by which a pause of the client exceeded the requested time, in seconds."""
    memory_bytes: int
    log_bytes: int
    failure: str


class Outcome(NamedTuple):
    """The measurements of all attacks, and the problems that were found."""

    lines: list[Line]
    idle_latency_s: float
    problems: list[str]


class BrokerProcess:
    """A broker in a process of its own with its data in a directory; its log is written to a file."""

    def __init__(
        self, directory: Path, log: Path, options: Sequence[str] = (), files_max: int = FILES_MAX
    ) -> None:
        self._log = log
        command = [sys.executable, "-m", "penstock.broker", "--data-dir", str(directory), *options]

        def limit_files() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, files_max))

        with log.open("ab") as file:
            self.popen = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=file, text=True, preexec_fn=limit_files
            )
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        if not line:
            raise ChildProcessError(f"the broker does not start:\n{log.read_text(errors='replace')[-3000:]}")
        addresses = line.partition(" listening on ")[2].partition(", data in")[0]
        self.ports = [int(each.rpartition(":")[2]) for each in addresses.split(",")]
        """The ports of the broker's listeners, or of all brokers of a cluster."""
        self.port = self.ports[0]

    @property
    def log_bytes(self) -> int:
        return self._log.stat().st_size

    def status(self, field: str) -> int:
        """Return a field of the broker's ``/proc/PID/status`` in bytes."""
        for line in Path(f"/proc/{self.popen.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise ProcessLookupError(f"the broker has no {field}: it has ended")

    def forget_peak(self) -> None:
        """Reset the broker's peak memory to its present memory."""
        Path(f"/proc/{self.popen.pid}/clear_refs").write_text("5")

    def end(self, number: int) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(timeout=60)


class GoodClient:
    """The process of `good_client`, and functions that evaluate the events that it has written."""

    def __init__(self, settings: dict[str, str], output: Path) -> None:
        self._output = output
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "GOOD_CLIENT_SETTINGS": json.dumps(settings),
        }
        self._popen = subprocess.Popen(
            [sys.executable, str(HERE / "good_client.py"), TOPIC, str(output)],
            stdin=subprocess.PIPE,
            env=environment,
        )

    def notes(self) -> list[tuple[str, float, float, object]]:
        if not self._output.exists():
            return []
        lines = self._output.read_text(encoding="utf-8").splitlines(keepends=True)
        return [tuple(json.loads(line)) for line in lines if line.endswith("\n")]  # type: ignore[misc]

    def longest_between(self, kind: str, start: float, end: float) -> float:
        """Return the longest event of a kind, in seconds, that ended between two times.

        The kind is ``late`` or ``logged in``.
        """
        return max((s for what, at, s, _ in self.notes() if what == kind and start <= at <= end), default=0)

    def worst_between(self, start: float, end: float) -> float:
        """Return the longest time in seconds that a record took between two times.

        A longer gap between two records counts instead.
        """
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
        """Wait until the client has consumed `count` records."""
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


class Scene:
    """One broker without security, its limits, and the attacks that `run` sends to it."""

    attacks: tuple[Attack, ...] = ATTACKS
    options: Sequence[str] = ("--port", "0")
    files_max = FILES_MAX
    memory_bytes_max = MEMORY_BYTES_MAX

    def settings(self, port: int) -> dict[str, str]:
        """Return the settings of the good client; `port` is that of the broker's first listener."""
        return {"bootstrap.servers": f"127.0.0.1:{port}"}

    def target(self, ports: Sequence[int], rng: random.Random, seconds: float) -> Target:
        return Target(ports[0], rng, seconds)


class ClusterScene(Scene):
    """Three brokers in one process; the good client's topic has three replicas.

    Attacks connect to each broker.
    """

    attacks = CLUSTER_ATTACKS
    options = ("--port", "0", "--brokers", "3")

    def target(self, ports: Sequence[int], rng: random.Random, seconds: float) -> Target:
        return ClusterTarget(ports, rng, seconds)


class LoginScene(Scene):
    """A broker with three listeners: SASL over TLS, SASL without TLS, and plaintext.

    The good client uses SASL over TLS, and logs in over new connections several times a second.
    """

    attacks = LOGIN_ATTACKS
    files_max = CROWD_FILES_MAX

    def __init__(self, place: Path, unknown_max: int | None = None) -> None:
        """`unknown_max` is the number of connections that may be open without a login."""
        self._ports = free_ports(3)
        trusted = authority()
        self._ca = place / "ca.pem"
        self._ca.write_text(trusted.certificate_pem)
        server = issue(trusted)
        keystore = place / "server.pem"
        keystore.write_text(server.key_pem + server.certificate_pem)
        users = f'user_{POOR_USER}="{POOR_PASSWORD}"'
        lines = [
            "listeners=PLAINTEXT://127.0.0.1:{},SASL_PLAINTEXT://127.0.0.1:{},SASL_SSL://127.0.0.1:{}",
            f"ssl.keystore.location={keystore}",
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        ]
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        lines += [
            f"listener.name.{name}.plain.sasl.jaas.config={module} required {users};"
            for name in ("sasl_plaintext", "sasl_ssl")
        ]
        if unknown_max is not None:
            self.memory_bytes_max = MEMORY_BYTES_MAX + min(unknown_max, CROWD) * UNKNOWN_BYTES
            lines.append(f"penstock.unauthenticated.connections.max={unknown_max}")
        path = place / "server.properties"
        path.write_text("\n".join(lines).format(*self._ports))
        self.options = ("--config-file", str(path))

    def settings(self, port: int) -> dict[str, str]:
        with Admin(f"127.0.0.1:{port}") as admin:
            for name in ("good", POOR_USER):
                admin.set_password(name, POOR_PASSWORD)
        return {
            "bootstrap.servers": f"127.0.0.1:{self._ports[2]}",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self._ca),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "good",
            "sasl.password": POOR_PASSWORD,
        }

    def target(self, ports: Sequence[int], rng: random.Random, seconds: float) -> Target:
        return LoginTarget(self._ports[1], self._ports[2], str(self._ca), rng, seconds)


@contextlib.contextmanager
def broker_in(directory: Path, log: Path, scene: Scene) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(directory, log, scene.options, scene.files_max)
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
    """Run all attacks on one broker, or only the one named `only`; return the measurements.

    The broker's data are in a temporary directory below `directory`.
    """
    with tempfile.TemporaryDirectory(prefix="attack-", dir=directory) as place:
        return _run(Path(place), Scene(), seconds, seed, only, verbose)


def run_cluster(
    seconds: float, seed: int, only: str | None = None, *, directory: str | None = None, verbose: bool = True
) -> Outcome:
    """Run the attacks on three brokers in one process, with the arguments of `run`."""
    with tempfile.TemporaryDirectory(prefix="attack-", dir=directory) as place:
        return _run(Path(place), ClusterScene(), seconds, seed, only, verbose)


def run_logins(
    seconds: float,
    seed: int,
    only: str | None = None,
    *,
    directory: str | None = None,
    verbose: bool = True,
    unknown_max: int | None = None,
) -> Outcome:
    """Run the attacks on the logins of a broker with TLS and SASL, with the arguments of `run`."""
    with tempfile.TemporaryDirectory(prefix="attack-", dir=directory) as place:
        scene = LoginScene(Path(place), unknown_max)
        return _run(Path(place), scene, seconds, seed, only, verbose)


def _run(place: Path, scene: Scene, seconds: float, seed: int, only: str | None, verbose: bool) -> Outcome:
    data, log = place / "data", place / "log"
    lines: list[Line] = []
    problems: list[str] = []
    # Where more runs than there are processors, everybody waits for a turn so many times longer.
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    with broker_in(data, log, scene) as broker:
        client = GoodClient(scene.settings(broker.port), place / "notes")
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
                heads = f"{'attack':<22}{'latency':>11}{'login':>11}{'machine late':>14}"
                print(f"{heads}{'memory above rest':>19}{'log':>9}", flush=True)
            for attack in scene.attacks:
                if only in (None, attack.run.__name__):
                    rng = random.Random(f"{seed} {attack.run.__name__}")
                    target = partial(scene.target, broker.ports, rng, seconds * attack.times)
                    lines.append(_attack(attack.run, target, broker, client, idle_bytes))
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
            with broker_in(data, log, scene) as again:
                problems += _lost(client, again.port)
    problems += _judged(lines, LATENCY_S_MAX * busy + idle_s, LOGIN_S_MAX * busy, scene.memory_bytes_max)
    failed = [note for note in client.notes() if note[0] == "failed"]
    problems += [f"the client was told: {note[3]}" for note in failed[:5]]
    return Outcome(lines, idle_s, problems)


def _attack(
    attack: Callable[[Target], None],
    target: Callable[[], Target],
    broker: BrokerProcess,
    client: GoodClient,
    idle_bytes: int,
) -> Line:
    name, failure = attack.__name__, ""
    log_bytes = broker.log_bytes
    broker.forget_peak()
    began = time.monotonic()
    try:
        attack(target())
    except AssertionError as error:
        failure = str(error)
    time.sleep(1)
    try:
        peak = broker.status("VmHWM") - idle_bytes
    except OSError:
        peak = 0
    ended = time.monotonic()
    worst = client.worst_between(began, ended)
    late, login = (client.longest_between(kind, began, ended) for kind in ("late", "logged in"))
    return Line(name, worst, login, late, peak, broker.log_bytes - log_bytes, failure)


def _lost(client: GoodClient, port: int) -> list[str]:
    """Return a text for each problem: acknowledged records that are lost or were not consumed."""
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


def _judged(lines: list[Line], latency_s_max: float, login_s_max: float, memory_bytes_max: int) -> list[str]:
    problems = []
    for line in lines:
        if line.latency_s > latency_s_max + line.late_s:
            problems.append(f"{line.name}: the client waited {line.latency_s:.2f} s")
        if line.login_s > login_s_max + line.late_s:
            problems.append(f"{line.name}: a login took {line.login_s:.2f} s")
        if line.memory_bytes > memory_bytes_max:
            problems.append(f"{line.name}: {line.memory_bytes >> 20} MiB above rest")
        if line.failure:
            problems.append(f"{line.name}: {line.failure}")
    if sum(line.log_bytes for line in lines) > LOG_BYTES_MAX:
        problems.append(f"{sum(line.log_bytes for line in lines) >> 10} KiB of log")
    return problems


def _shown(line: Line) -> str:
    times = f"{line.latency_s * 1000:>8.0f} ms{line.login_s * 1000:>8.0f} ms{line.late_s * 1000:>11.0f} ms"
    return (
        f"{line.name:<22}{times}"
        f"{line.memory_bytes / (1 << 20):>15.0f} MiB{line.log_bytes / 1024:>5.0f} KiB {line.failure}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="attack a broker beside a client that does everything right")
    parser.add_argument("--seconds", type=float, default=8, help="how long an attack goes on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="the name of one attack")
    parser.add_argument("--scene", choices=["one", "cluster", "logins"], help="what is attacked; all three")
    parser.add_argument("--directory", help="where the broker has its data meanwhile")
    words = parser.parse_args()
    problems = []
    scenes = {
        "one": (run, ATTACKS),
        "cluster": (run_cluster, CLUSTER_ATTACKS),
        "logins": (run_logins, LOGIN_ATTACKS),
    }
    for name, (scene, attacks) in scenes.items():
        is_meant = words.only is None or words.only in {attack.run.__name__ for attack in attacks}
        if is_meant and words.scene in (None, name):
            problems += scene(words.seconds, words.seed, words.only, directory=words.directory).problems
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
