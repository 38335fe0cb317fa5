"""Run test classes of Apache Kafka, from the jars on Maven, against Penstock, and yield their verdicts.

`java/kafka-own` has replacements for five classes of Kafka's test harness. They precede the originals on the
class path. Instead of starting brokers in their own JVM, they request Penstock brokers from the `brokers`
process. A sixth replacement saves Connect a scan of all classes.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import struct
import subprocess
import sys
import threading
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from compat.peers import CACHE, HERE, JAVA_OPTIONS, maven_classpath, need

SOURCES = HERE / "java" / "kafka-own"
SILENCE_S = 600
"""Seconds without an output line after which the JVM and its brokers are considered hung and killed."""

WHOLE_CLASS = "(class)"
"""The text that a verdict has instead of a method name if the JVM ended during the class."""

OF_A_CLUSTER = b"Lorg/apache/kafka/common/test/api/Cluster"
EMBEDDED = (b"EmbeddedKafkaCluster", b"EmbeddedConnect", b"MirrorConnectorsIntegrationBaseTest")
"""Names in the class files of Streams, Connect and MirrorMaker tests that start embedded clusters."""

PLUGINS = "test-plugins/"
"""The directory in the jar of Connect's tests that contains the sources of test plugins."""

OF_CORE = "kafka/"
HARNESS = "kafka/server/QuorumTestHarness"
IN_THE_JVM = b"KafkaClusterTestKit"
MARKS = (b"Lorg/junit/jupiter/api/Test;", b"Lorg/junit/jupiter/params/ParameterizedTest;")
"""The annotations of test methods, as in class files.

A class that neither has nor inherits them only contains helpers.
"""

_IS_TEST = re.compile(r"(.*/)?(?!Abstract)[^/$]*Test\.class")


class Verdict(NamedTuple):
    """The result of one run of a test: PASS, FAIL, or SKIP if it could not be run against Penstock."""

    verdict: str
    test_class: str
    method: str
    ms: int
    reason: str


def release() -> str:
    """Return the release of Apache Kafka whose tests are run."""
    found = re.search("<kafka>(.*)</kafka>", (SOURCES / "pom.xml").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def judged_classes() -> list[str]:
    """Return the full names of the test classes whose brokers come from a replaced harness class."""
    judged: list[str] = []
    parents: dict[str, str] = {}
    of_core: list[str] = []
    with_tests: set[str] = set()
    for jar in maven_classpath("kafka-own").split(":"):
        if not jar.endswith("-test.jar"):
            continue
        with zipfile.ZipFile(jar) as file:
            for name in file.namelist():
                code = file.read(name) if name.endswith(".class") else b""
                whole = name.removesuffix(".class")
                if _IS_TEST.fullmatch(name) and _is_judged(code):
                    judged.append(whole)
                elif code and name.startswith(OF_CORE):
                    parents[whole], is_abstract = parent_of(code)
                    of_core += [whole] * (not is_abstract and _IS_TEST.fullmatch(name) is not None)
                    if any(mark in code for mark in MARKS):
                        with_tests.add(whole)
    taken = {name.rpartition("/")[2] for name in judged}
    for name in of_core:
        short = name.rpartition("/")[2]
        line = _line(name, parents)
        has_tests = not with_tests.isdisjoint((name, *line))
        if HARNESS in line and has_tests and short not in taken:  # results are kept by the short name
            judged.append(name)
            taken.add(short)
    names = {name.replace("/", ".") for name in judged}
    return sorted(names, key=lambda each: (each.rpartition(".")[2], each))


def _is_judged(code: bytes) -> bool:
    embedded = any(each in code for each in EMBEDDED) and b"Lorg/junit/jupiter/" in code
    return OF_A_CLUSTER in code or (embedded and IN_THE_JVM not in code)


def _line(name: str, parents: dict[str, str]) -> list[str]:
    """Return the superclasses of a class, as far as they are known, nearest first."""
    found = []
    while name in parents:
        name = parents[name]
        found.append(name)
    return found


def parent_of(code: bytes) -> tuple[str, bool]:
    """Return the name of a class file's superclass, and True if the class is abstract."""
    (count,) = struct.unpack_from(">H", code, 8)
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    at, index = 10, 1
    while index < count:
        kind = code[at]
        (first,) = struct.unpack_from(">H", code, at + 1)
        if kind == 1:
            texts[index] = code[at + 3 : at + 3 + first].decode("utf-8", "replace")
        elif kind == 7:
            classes[index] = first
        at += 3 + first if kind == 1 else _SIZES[kind]
        index += 2 if kind in (5, 6) else 1
    flags, _, parent = struct.unpack_from(">HHH", code, at)
    return texts[classes[parent]] if parent else "", bool(flags & _ABSTRACT)


_ABSTRACT = 0x400

_SIZES = {
    3: 5,
    4: 5,
    5: 9,
    6: 9,
    7: 3,
    8: 3,
    9: 5,
    10: 5,
    11: 5,
    12: 5,
    15: 4,
    16: 3,
    17: 5,
    18: 5,
    19: 3,
    20: 3,
}
"""A dict from the tag of a class file constant to its size in bytes, except for UTF-8 texts."""


def compiled() -> str:
    """Return the class path with the replaced harness classes, which are compiled if necessary."""
    classpath = maven_classpath("kafka-own")
    sources = sorted(SOURCES.rglob("*.java"))
    newest = max(each.stat().st_mtime_ns for each in sources)
    target = CACHE / f"kafka-own-{newest}"
    command = [need("javac"), "-nowarn", "-Xlint:none", "-cp", classpath, *map(str, sources), "-d"]
    _made_once(target, lambda part: subprocess.run([*command, str(part)], check=True))
    return f"{target}:{_unpacked_plugins(classpath)}:{classpath}"


def _unpacked_plugins(classpath: str) -> Path:
    """Unpack the plugin sources that Connect's tests compile, and return their directory.

    The tests cannot read the sources from a jar.
    """
    target = CACHE / f"kafka-own-plugins-{release()}"
    jar = next(each for each in classpath.split(":") if re.search(r"connect-runtime-[^/]*-test\.jar$", each))

    def unpack(part: Path) -> None:
        with zipfile.ZipFile(jar) as file:
            file.extractall(part, [each for each in file.namelist() if each.startswith(PLUGINS)])

    _made_once(target, unpack)
    return target


def _made_once(target: Path, make: Callable[[Path], object]) -> None:
    """Let `make` fill a temporary directory and rename it to `target`, unless `target` exists."""
    if target.exists():
        return
    part = target.with_suffix(f".{os.getpid()}")
    make(part)
    with contextlib.suppress(OSError):  # another process has made it meanwhile
        part.rename(target)


def judge(
    work: Sequence[tuple[str, Sequence[str]]],
    *,
    patience_s: int,
    tell: Callable[[Verdict], object] = lambda verdict: None,
    jobs: int = 1,
    log: Path | None = None,
) -> Iterator[list[Verdict]]:
    """Run classes, or some of their methods, and yield the verdicts of each once it has ended.

    `patience_s` is the number of seconds that one run of a test may take, and `jobs` the number of JVMs at a
    time. A thread for each JVM calls `tell` with each verdict as it arrives. The output of failed tests and
    of the brokers is appended to `log`.
    """
    classpath = compiled()
    left = deque(work)
    found: queue.SimpleQueue[list[Verdict] | Exception | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            while left:
                _run_pair(classpath, left, patience_s, log, tell, found.put)
            found.put(None)
        except Exception as error:
            found.put(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    running = jobs
    while running:
        verdicts = found.get()
        if verdicts is None:
            running -= 1
        elif isinstance(verdicts, Exception):
            raise verdicts
        else:
            yield verdicts


def _run_pair(
    classpath: str,
    left: deque[tuple[str, Sequence[str]]],
    patience_s: int,
    log: Path | None,
    tell: Callable[[Verdict], object],
    ended: Callable[[list[Verdict]], None],
) -> None:
    """Run classes in one JVM, with one process for brokers, until no class is left or the JVM ends."""
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(log.open("ab")) if log is not None else subprocess.DEVNULL
        paths = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        brokers = stack.enter_context(
            subprocess.Popen(
                [sys.executable, str(HERE / "verdicts" / "brokers.py")],
                stdout=subprocess.PIPE,
                stderr=output,
                env={**os.environ, "PYTHONPATH": paths},
                text=True,
            )
        )
        stack.callback(brokers.kill)
        assert brokers.stdout is not None
        port = int(brokers.stdout.readline())
        options = ["-Xmx1500M", "-XX:TieredStopAtLevel=1", "--add-opens=java.base/java.lang=ALL-UNNAMED"]
        options += ["--add-opens=java.base/java.util=ALL-UNNAMED", *JAVA_OPTIONS]
        options += ["--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED"]
        options += [f"-Dverdicts.port={port}", f"-Dverdicts.patience={patience_s}"]
        options += [f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.properties'}"]
        workplace = CACHE / "kafka-own-work"
        workplace.mkdir(exist_ok=True)
        jvm = stack.enter_context(
            subprocess.Popen(
                [need("java"), *options, "-cp", classpath, "verdicts.Run"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=workplace,
                text=True,
            )
        )
        stack.callback(jvm.kill)
        assert jvm.stdin is not None
        assert jvm.stdout is not None
        while left:
            try:
                name, methods = left.popleft()
            except IndexError:
                break
            with contextlib.suppress(BrokenPipeError):
                jvm.stdin.write(f"{name} {','.join(methods)}".rstrip() + "\n")
                jvm.stdin.flush()
            verdicts = []
            for verdict in _read_class(jvm, name):
                tell(verdict)
                verdicts.append(verdict)
            ended(verdicts)
            if verdicts and verdicts[-1].method == WHOLE_CLASS:
                return
        jvm.stdin.close()
        jvm.wait(30)


def _read_class(jvm: subprocess.Popen[str], name: str) -> Iterator[Verdict]:
    """Yield the verdicts of a class as the JVM prints them.

    If the JVM ends early, the last verdict is a FAIL of WHOLE_CLASS.
    """
    assert jvm.stdout is not None
    while True:
        watch = threading.Timer(SILENCE_S, jvm.kill)
        watch.start()
        line = jvm.stdout.readline()
        watch.cancel()
        if not line:
            yield Verdict("FAIL", name, WHOLE_CLASS, 0, "the JVM ended, or was silent for too long")
            return
        parts = line.rstrip("\n").split("\t")
        if parts[0] == "END" and parts[1] == name:
            return
        if len(parts) == 5:
            yield Verdict(parts[0], parts[1], parts[2], int(parts[3]), parts[4])
