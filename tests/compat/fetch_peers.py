"""Fetch and build the third-party software that `make compat` needs: ``make peers``.

A test fetches what is missing when it needs it. This program fetches everything in advance, with several
package managers at the same time. It prints what fails, and exits with 1 if anything failed.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from compat import peers

ONLY_FOR_SOAK = ("duckdb-lake", "seaweedfs", "spark-4.0", "spark-4.1", "spark-4.2")
NOT_PROGRAMS = ("python2",)
"""Directories with requirements for another interpreter, which the test itself installs."""

COMPILED = {"kerberos_library": "krb5-config"}
"""Directories whose library must be compiled, each with the program that locates its C libraries."""

Fetch = Callable[[], object]


def archive(name: str) -> object:
    return peers.class_archive(peers.maven_classpath(name))


def of_maven() -> Iterator[tuple[str, Fetch]]:
    """Yield what Maven supplies: class paths, Spark's Kafka connector, and class data sharing archives."""
    archived = [f"kafka-{version}" for version in peers.ARCHIVED]
    yield "class paths", peers.fetch_classpaths
    yield "spark-connector", peers.spark_connector
    for name in archived:
        yield f"archive of {name}", partial(archive, name)


def of_directories(file: str, fetch: Callable[[str], object]) -> Iterator[tuple[str, Fetch]]:
    """Yield a download task for each directory that contains a file of this name."""
    for path in sorted(peers.HERE.glob(f"*/{file}")):
        name = path.parent.name
        can_be_made = name not in COMPILED or shutil.which(COMPILED[name]) is not None
        if can_be_made and name not in (*ONLY_FOR_SOAK, *NOT_PROGRAMS):
            yield name, partial(fetch, name)


def run(works: Iterator[tuple[str, Fetch]]) -> list[str]:
    """Run download tasks one after the other; return a line of text for each that failed."""
    failed = []
    for name, fetch in works:
        try:
            fetch()
        except BaseException as error:  # as pytest.fail raises
            failed.append(f"{name}: {error}")
    return failed


def main() -> int:
    """Fetch everything, with one thread for each package manager; return the exit code."""
    kinds = (
        of_maven(),
        of_directories("go.mod", peers.go_program),
        of_directories("package.json", peers.node_program),
        of_directories("requirements.txt", peers.python_program),
    )
    with ThreadPoolExecutor(len(kinds)) as beside:
        failed = [each for found in beside.map(run, kinds) for each in found]
    print("\n".join(failed), file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
