"""The Python for Spark's workers on this machine: the driver's Python, with the installed PySpark.

Spark puts the archive of PySpark's sources first on the path of every worker. Python compiles modules that it
imports from an archive anew in each process: the planner of a query then starts in 0.7 CPU seconds, against
0.25 with the installed files. This module writes a small program that starts Python without the archive. If
the Python plans a stream, the program starts it through `fork_client`.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
import sysconfig
from pathlib import Path

from penstock.common.atomic_files import write_whole_bytes
from penstock.spark.runtime.fork_client import RUNNER
from penstock.spark.runtime.java import cache_directories

_PROGRAM = """#!/bin/sh
# Runs Python with the PySpark that is installed, instead of the archive of its sources.
set -f
kept=
IFS=:
for entry in $PYTHONPATH; do
  case "$entry" in
    {archives}) ;;
    *) kept="${{kept:+$kept:}}$entry" ;;
  esac
done
PYTHONPATH="$kept"
export PYTHONPATH
unset IFS
{streams}exec {python} "$@"
"""

_STREAMS = """if [ "$*" = "-m {module}" ]; then
  exec {python} -I -S {client} {python} "$@"
fi
"""


def worker_python(package: Path) -> str:
    """Return the value of PYSPARK_PYTHON for workers on this machine.

    `package` is the folder of PySpark. The result is `sys.executable` if the workers would not find the same
    PySpark without the archive, or if no file can be written.
    """
    lib = package / "python" / "lib"
    archives = [lib / "pyspark.zip", *sorted(lib.glob("py4j-*-src.zip"))]
    home = os.environ.get("SPARK_HOME")
    is_own = home is None or os.path.realpath(home) == os.path.realpath(package)
    if os.name != "posix" or not is_own or len(archives) != 2 or not _is_found(package):
        return sys.executable
    # Spark follows links before it names the archives.
    spellings = sorted({str(archive) for archive in archives} | {os.path.realpath(one) for one in archives})
    program = _PROGRAM.format(
        archives=" | ".join(map(shlex.quote, spellings)),
        python=shlex.quote(sys.executable),
        streams=_streams(),
    )
    return _written(program) or sys.executable


def _streams() -> str:
    """Return the shell lines that start a Python to plan a stream; "" on systems without fork servers."""
    client = Path(__file__).with_name("fork_client.py")
    if sys.platform != "linux" or not client.exists():
        return ""
    return _STREAMS.format(module=RUNNER, client=shlex.quote(str(client)), python=shlex.quote(sys.executable))


def _is_found(package: Path) -> bool:
    """Return True if a new Python of this installation imports PySpark and py4j from `package`."""
    place = os.path.realpath(package.parent)
    places = {os.path.realpath(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    return place in places and os.path.isdir(os.path.join(place, "py4j"))


def _written(program: str) -> str | None:
    """Return the path of an executable file with the text `program`, or None if no directory allows one."""
    import hashlib

    name = "python-" + hashlib.sha256(program.encode()).hexdigest()[:16]
    for cache in cache_directories():
        path = cache / name
        try:
            cache.mkdir(parents=True, exist_ok=True, mode=0o700)
            if cache.stat().st_uid != os.getuid():
                continue  # in a shared temporary directory another user may have taken the name
            if not (os.access(path, os.X_OK) and path.read_text(encoding="utf-8") == program):
                # Written beside and renamed: a worker that starts now sees the whole file or none.
                beside = path.with_name(f"{name}-{os.getpid()}")
                write_whole_bytes(
                    str(path), program.encode(), fresh=str(beside), mode=stat.S_IRWXU, sync=False
                )
            if _runs(path):
                return str(path)
        except OSError:
            continue
    return None


def _runs(path: Path) -> bool:
    """Return True if the file system of `path` allows programs to be executed."""
    return not os.statvfs(path).f_flag & os.ST_NOEXEC
