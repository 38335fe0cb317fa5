"""Third-party software for tests: Java from Maven; Go, Node and Python programs; any Apache Kafka release.

Downloads stay in `.venv/peers`, keyed by a digest of the file that names them, so a second run downloads
nothing. A missing tool skips the test on a developer's machine and fails it where `CI` is ``true``.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib
import importlib.util
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from free_ports import free_ports as free_ports

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".venv" / "peers"
JAVA_OPTIONS = [
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    f"-Dlog4j.configuration=file:{HERE}/java/log4j.properties",
]
DEBIAN_PACKAGES = {
    "mvn": "maven",
    "java": "default-jdk-headless",
    "javac": "default-jdk-headless",
    "keytool": "default-jdk-headless",
    "go": "golang-go",
    "node": "nodejs",
    "npm": "npm",
    "kcat": "kcat",
    "krb5kdc": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
    "krb5-config": "libkrb5-dev",
}
RELEASES = (
    *("4.4.0", "4.3.0", "3.9.1", "3.8.1", "3.6.2", "3.3.2", "2.8.2", "1.1.1"),
    *("0.11.0.3", "0.10.2.2", "0.9.0.1", "0.8.2.2", "0.8.1.1", "0.8.0"),
)
"""The releases of Apache Kafka that have a directory under `java/`."""

ARCHIVED = ("4.4.0", "4.3.0", "3.9.1")
"""Releases that tests start so often that a class data sharing archive saves time."""

ONLY_FOR_SOAK = ("iceberg-rest", "spark-lake")
"""The directories under `java/` that only tests of `make soak` need."""

LEAKY_CLIENTS = tuple(
    pytest.mark.filterwarnings(f"ignore::{name}")
    for name in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning")
)
"""The marks of tests with kafka-python and aiokafka, which leave sockets to the garbage collector."""

PATIENCE_S = 180
"""Seconds to wait for an expected event, which may take minutes on a busy machine."""

P = ParamSpec("P")
T = TypeVar("T")

CLUSTER_ID = "cGVuc3RvY2stcGVlcnMtMQ"


def until(holds: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds. Fail with the description `what` after `patience_s` seconds."""
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


def need(tool: str) -> str:
    """Return the path of a program on this machine.

    Without the program the test is skipped, or fails if `CI` is true.
    """
    path = shutil.which(tool, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if path is None:
        reason = f"{tool} is missing; on Debian: apt install {DEBIAN_PACKAGES.get(tool, tool)}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def need_module(name: str) -> Any:
    """Import a client library of the `dev` group.

    Without the library the tests are skipped, or fail if `CI` is true.
    """
    if os.environ.get("CI") != "true":
        return pytest.importorskip(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, as in importorskip
        return importlib.import_module(name)


def _run(command: list[str], directory: Path, **environment: str) -> str:
    """Run a build tool and return its standard output.

    Fail the test with the tool's output if the tool fails.
    """
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if done.returncode:
        pytest.fail(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done.stdout


def _one_at_a_time(tool: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a decorator that lets only one process at a time use a tool.

    Package managers share caches that they do not lock.
    """

    def decorate(fetch: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(fetch)
        def locked(*args: P.args, **kwargs: P.kwargs) -> T:
            CACHE.mkdir(parents=True, exist_ok=True)
            with open(CACHE / f".lock-{tool}", "wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                return fetch(*args, **kwargs)

        return locked

    return decorate


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]


# --- Java ---------------------------------------------------------------------------------------------------


def maven_classpath(name: str) -> str:
    """Return the class path of the dependencies in `java/NAME/pom.xml`, which Maven fetches if necessary."""
    classpath = _fetched(name)
    if name.startswith("kafka-") and name[6:] in ARCHIVED:
        _archived[classpath] = name[6:]
    return classpath


_archived: dict[str, str] = {}
"""A dict from a class path that was fetched to its release, for the releases in `ARCHIVED`."""

_making: set[str] = set()
"""Releases whose class data sharing archive is being made at the moment."""


def _place(name: str) -> tuple[Path, Path]:
    """Return the pom.xml that a class path is made from, and the file in which the class path is cached."""
    pom = HERE / "java" / name / "pom.xml"
    return pom, CACHE / f"{name}-{_digest(pom)}.classpath"


@_one_at_a_time("mvn")
def _fetched(name: str) -> str:
    pom, cached = _place(name)
    if cached.exists():
        classpath = cached.read_text()
        if all(os.path.exists(jar) for jar in classpath.split(":")):
            return classpath
    _build_classpaths(pom, [name])
    return cached.read_text()


@_one_at_a_time("mvn")
def fetch_classpaths() -> None:
    """Fetch the missing class paths that `make compat` needs.

    They are fetched in one Maven run, since starting Maven takes longer than the downloads.
    """
    names = [path.parent.name for path in sorted(HERE.glob("java/*/pom.xml"))]
    missing = [name for name in names if name not in ONLY_FOR_SOAK and not _place(name)[1].exists()]
    if not missing:
        return
    with tempfile.TemporaryDirectory(prefix="classpaths-") as directory:
        modules = "".join(
            f"<module>{os.path.relpath(_place(name)[0].parent, os.path.realpath(directory))}</module>"
            for name in missing
        )
        pom = Path(directory) / "pom.xml"
        pom.write_text(EVERY_POM.format(modules=modules))
        _build_classpaths(pom, missing)


EVERY_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>penstock.compat</groupId>
  <artifactId>every</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <modules>{modules}</modules>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId>
    <artifactId>maven-dependency-plugin</artifactId>
    <version>3.6.1</version>
  </plugin></plugins></build>
</project>
"""


def _build_classpaths(pom: Path, names: list[str]) -> None:
    """Run Maven to write the class paths of these directories, which are modules of `pom`."""
    end = f".{os.getpid()}"
    target = f"-Dmdep.outputFile={CACHE}/${{project.artifactId}}{end}"
    _run([need("mvn"), "-q", "-B", "-f", str(pom), "dependency:build-classpath", target], pom.parent)
    for name in names:
        Path(CACHE / f"{name}{end}").rename(_place(name)[1])
    (CACHE / f"every{end}").unlink(missing_ok=True)


def java_command(
    classpath: str, main: str | Path, *args: object, options: tuple[str, ...] = (), heap_mb: int = 256
) -> list[str]:
    """Return the command line that runs a class, or a Java source file, in a JVM that starts fast.

    The JVM uses only the quick C1 compiler, and loads Apache Kafka's classes from an archive.
    """
    options = (*options, *class_archive(classpath))
    if str(main).endswith(".java"):
        classpath = f"{classpath}:{_compiled(Path(main), classpath)}"
        main = Path(main).stem
    quick = [f"-Xmx{heap_mb}M", "-XX:TieredStopAtLevel=1", *JAVA_OPTIONS, *options]
    return [need("java"), *quick, "-cp", classpath, str(main), *map(str, args)]


@_one_at_a_time("javac")
def _compiled(source: Path, classpath: str) -> Path:
    """Return a directory with the compiled classes of a Java source file.

    Compiling once in advance saves each JVM a second or two.
    """
    place = hashlib.sha256(source.read_bytes() + b"\0" + classpath.encode()).hexdigest()[:16]
    classes = CACHE / f"{source.stem}-{place}.classes"
    if not classes.exists():
        part = classes.with_suffix(f".{os.getpid()}")
        quick = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-nowarn", "-proc:none"]
        _run([need("javac"), *quick, "-cp", classpath, "-d", str(part), str(source)], CACHE)
        part.rename(classes)
    return classes


def class_archive(classpath: str) -> tuple[str, ...]:
    """Return JVM options that load the classes of `classpath` from a class data sharing archive.

    Returns no options if the class path is not that of a release in `ARCHIVED`, or if this Java makes no
    archives. The first call makes the archive by starting and ending a broker. Warnings of JVMs that
    cannot use the archive are turned off.
    """
    version = _archived.get(classpath)
    if version is None or version in _making:
        return ()
    archive = CACHE / f"kafka-{version}-{hashlib.sha256(classpath.encode()).hexdigest()[:16]}.jsa"
    if not archive.exists():
        with open(CACHE / ".archive-lock", "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not archive.exists():
                _make_archive(version, archive)
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable") if archive.stat().st_size else ()


def _make_archive(version: str, archive: Path) -> None:
    """Make a release's class data sharing archive.

    The file is empty if this Java is older than 13, which cannot make one.
    """
    part = archive.with_suffix(f".{os.getpid()}")
    making = ("-XX:+IgnoreUnrecognizedVMOptions", f"-XX:ArchiveClassesAtExit={part}")
    _making.add(version)
    try:
        with real_kafka(version, in_order=True, options=making):
            pass
    finally:
        _making.remove(version)
    part.touch()
    part.rename(archive)


def java(
    classpath: str,
    main: str | Path,
    *args: object,
    stdin: str | bytes | None = None,
    timeout_s: float = PATIENCE_S,
    check: bool = False,
    options: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a Java program to its end: `main` is a class name, or the path of a ``.java`` source file.

    The output is returned as text (UTF-8, with invalid bytes replaced). If `check` is true, an exit code
    other than 0 fails the test and shows the output. Raises subprocess.TimeoutExpired after `timeout_s`
    seconds.
    """
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        java_command(classpath, main, *args, options=options),
        input=b"" if data is None else data,
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    stdout, stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if check and done.returncode:
        pytest.fail(f"{main} ended with {done.returncode}:\n{stdout[-4000:]}{stderr[-4000:]}")
    return subprocess.CompletedProcess(done.args, done.returncode, stdout, stderr)


@_one_at_a_time("mvn")
def spark_connector(spark: str | None = None) -> list[Path]:
    """Return the jars of Spark's Kafka connector, for the default Spark release or the one named `spark`."""
    for tool in ("mvn", "javac"):
        need(tool)
    module = HERE.parents[1] / "benchmarks" / "spark_connector"
    spec = importlib.util.spec_from_file_location("spark_connector", module / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    directory = CACHE / f"spark-connector-{_digest(*sorted(module.glob('*.*')))}"
    directory.mkdir(parents=True, exist_ok=True)
    found: list[Path] = loaded.connector_jars(directory, *([spark] if spark else []))
    return found


# --- real Apache Kafka --------------------------------------------------------------------------------------


def release(version: str) -> str:
    """Return the full release number for a `version` prefix: ``3.9`` gives 3.9.1."""
    for known in RELEASES:
        if known == version or known.startswith(version + "."):
            return known
    raise ValueError(f"no java/kafka-{version}; there are {', '.join(RELEASES)}")


def _properties(path: Path, settings: Mapping[str, object]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


def _settings(version: str, port: int, second_port: int, directory: Path) -> dict[str, object]:
    """Return the settings of one Apache Kafka broker on loopback.

    A release ignores the settings that it does not know.
    """
    settings: dict[str, object] = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": directory / "data",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 5,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 2,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "num.network.threads": 1,
        "num.io.threads": 2,
    }
    if version >= "3":
        return settings | {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{second_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{second_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "initial.broker.registration.timeout.ms": 1000 * PATIENCE_S,
        }
    return settings | {
        "broker.id": 1,
        "zookeeper.connect": f"127.0.0.1:{second_port}",
        # ZooKeeper starts beside it, and has 6 s for that by default; a broker that waits longer is dead.
        "zookeeper.connection.timeout.ms": 1000 * PATIENCE_S,
        "zookeeper.session.timeout.ms": 30_000,
        "host.name": "127.0.0.1",
        "port": port,
    }


def answers(port: int, brokers: int = 1) -> bool:
    """Return True if a broker on the local `port` answers Metadata v0 with at least this many brokers."""
    request = struct.pack(">hhih4si", 3, 0, 1, 4, b"test", 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.recv(64)
            return len(answer) >= 12 and struct.unpack_from(">i", answer, 8)[0] >= brokers
    except OSError:
        return False


@contextlib.contextmanager
def _jvm(command: list[str], log: Path, in_order: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=log.parent
        )
    try:
        yield process
        if in_order:
            process.terminate()
            process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def real_kafka(
    version: str,
    settings: Mapping[str, object] | None = None,
    *,
    directory: Path | None = None,
    heap_mb: int = 512,
    in_order: bool = False,
    first_port: int | None = None,
    classes: Path | None = None,
    options: tuple[str, ...] = (),
) -> Iterator[str]:
    """Run a release of Apache Kafka, one broker on a free port of loopback; yields its bootstrap servers.

    `version` may be shortened (``3.9``). `settings` override our defaults in server.properties. The data are
    in `directory`/data, or in a temporary directory that is removed at the end. The broker is ended with
    SIGKILL, or with SIGTERM if `in_order` is true. `classes` is a directory with compiled classes that
    `settings` name. If `settings` contain listeners, `first_port` is the port of a listener without TLS and
    SASL. `options` are additional JVM options.
    """
    version = release(version)
    classpath = maven_classpath(f"kafka-{version}")
    archive = class_archive(classpath)
    if version >= "3" and "slf4j-reload4j" not in classpath:
        classpath += ":" + maven_classpath("kafka-log")
    with contextlib.ExitStack() as stack:
        if directory is None:
            directory = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka-", ignore_cleanup_errors=True))
            )
        port, second_port = free_ports(2)
        port = first_port or port
        merged = {**_settings(version, port, second_port, directory), **(settings or {})}
        properties = _properties(directory / "server.properties", merged)
        if version >= "3":
            if not (directory / "data" / "meta.properties").exists():
                java(
                    classpath,
                    "kafka.tools.StorageTool",
                    "format",
                    "-t",
                    CLUSTER_ID,
                    "-c",
                    properties,
                    check=True,
                    options=archive,
                )
        else:
            keeper = {"dataDir": directory / "zookeeper", "clientPort": second_port, "maxClientCnxns": 0}
            keeper |= {"clientPortAddress": "127.0.0.1", "admin.enableServer": "false"}
            file = _properties(directory / "zookeeper.properties", keeper)
            main = "org.apache.zookeeper.server.ZooKeeperServerMain"
            no_beans = ("-Dzookeeper.jmx.log4j.disable=true",)
            command = java_command(classpath, main, file, options=no_beans)
            stack.enter_context(_jvm(command, directory / "zookeeper.log"))
        log = directory / "server.log"
        options = (*options, *archive)
        if version < "0.8.2":
            options += ("--add-opens=java.base/java.lang=ALL-UNNAMED",)  # snappy-java 1.0 wants it
        path = classpath if classes is None else f"{classpath}:{classes}"
        command = java_command(path, "kafka.Kafka", properties, options=options, heap_mb=heap_mb)
        process = stack.enter_context(_jvm(command, log, in_order))
        deadline = time.monotonic() + PATIENCE_S
        # Before the controller has told, no broker is known; 0.8 tells with the first topic.
        while not answers(port, brokers=int(version >= "0.9")):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(
                    f"Apache Kafka {version} did not start:\n{log.read_text(errors='replace')[-6000:]}"
                )
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"


_shared: dict[str, tuple[contextlib.ExitStack, str]] = {}


def shared_kafka(version: str) -> str:
    """Return the bootstrap servers of an Apache Kafka broker that tests share.

    Tests must use topics and groups of their own. Only one version runs at a time: a call for another
    version ends the running broker. The last broker ends with the test session.
    """
    version = release(version)
    if version not in _shared:
        stop_shared()
        stack = contextlib.ExitStack()
        _shared[version] = stack, stack.enter_context(real_kafka(version))
    return _shared[version][1]


def stop_shared() -> None:
    """End the Apache Kafka broker that tests share. `conftest.py` calls it when the session ends."""
    while _shared:
        _shared.popitem()[1][0].close()


# --- Go, Node and Python ------------------------------------------------------------------------------------


@_one_at_a_time("go")
def go_program(directory: str | Path, package: str = ".") -> Path:
    """Build the Go program in a subdirectory of tests/compat with its `go.sum`; return the binary's path.

    `package` names a package of another Go module, if the program is third-party.
    """
    source = HERE / directory
    binary = CACHE / f"{source.name}-{_digest(*sorted([*source.glob('*.go'), *source.glob('go.*')]))}"
    if not binary.exists():
        part = binary.with_suffix(f".{os.getpid()}")
        environment = {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
        _run([need("go"), "build", "-o", str(part), package], source, **environment)
        part.rename(binary)
    return binary


@_one_at_a_time("npm")
def node_program(directory: str | Path) -> Path:
    """Install the Node program of a directory with its lock file; return the directory to run it in."""
    source = HERE / directory
    files = sorted(path for path in source.iterdir() if path.is_file())
    target = CACHE / f"{source.name}-{_digest(*files)}"
    if not (target / ".installed").exists():
        need("node")
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for path in files:
            shutil.copy(path, target)
        _run([need("npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts"], target)
        (target / ".installed").touch()
    return target


@_one_at_a_time("pip")
def python_program(directory: str | Path) -> Path:
    """Install a directory's `requirements.txt` into a virtual environment; return its interpreter's path.

    The file lists all packages, including dependencies. It serves clients that conflict with those of the
    `dev` group.
    """
    requirements = HERE / directory / "requirements.txt"
    target = CACHE / f"{requirements.parent.name}-{_digest(requirements)}"
    python = target / "bin" / "python"
    if not (target / ".installed").exists():
        shutil.rmtree(target, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(target)], CACHE)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        _run([str(python), *install, "-r", str(requirements)], CACHE)
        (target / ".installed").touch()
    return python


def kerberos_library() -> None:
    """Make the library `gssapi` importable, compiled against this machine's Kerberos if need be."""
    for tool in ("krb5kdc", "kadmin.local", "kinit", "krb5-config"):
        need(tool)
    if importlib.util.find_spec("gssapi") is None:
        python = python_program("kerberos_library")
        [packages] = python.parents[1].glob("lib/python*/site-packages")
        sys.path.append(str(packages))
