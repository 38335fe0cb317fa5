"""Fetch and build what `make compat` needs of others: ``make peers``.

Tests do it themselves where it has not been done, each when it comes to it. At one go it runs beside whatever
else a machine does, and package managers beside each other. What fails is printed, and ends it with 1.
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
"""What has requirements that this Python installs for another: the test does."""

COMPILED = {"kerberos_library": "krb5-config"}
"""What is compiled against libraries of the machine, and the program that says where these are."""

Fetch = Callable[[], object]


def archive(name: str) -> object:
    return peers.class_archive(peers.maven_classpath(name))


def of_maven() -> Iterator[tuple[str, Fetch]]:
    """Class paths, the connector of Spark, and archives of classes."""
    archived = [f"kafka-{version}" for version in peers.ARCHIVED]
    yield "class paths", peers.fetch_classpaths
    yield "spark-connector", peers.spark_connector
    for name in archived:
        yield f"archive of {name}", partial(archive, name)


def of_directories(file: str, fetch: Callable[[str], object]) -> Iterator[tuple[str, Fetch]]:
    """What is fetched for each directory that has a file of this name."""
    for path in sorted(peers.HERE.glob(f"*/{file}")):
        name = path.parent.name
        can_be_made = name not in COMPILED or shutil.which(COMPILED[name]) is not None
        if can_be_made and name not in (*ONLY_FOR_SOAK, *NOT_PROGRAMS):
            yield name, partial(fetch, name)


def run(works: Iterator[tuple[str, Fetch]]) -> list[str]:
    """Do them in turn; what failed."""
    failed = []
    for name, fetch in works:
        try:
            fetch()
        except BaseException as error:  # as pytest.fail raises
            failed.append(f"{name}: {error}")
    return failed


def main() -> int:
    """Fetch everything, each kind beside the others."""
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
