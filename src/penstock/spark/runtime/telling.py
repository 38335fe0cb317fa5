"""Prints the result of a batch query in one line on the driver's stderr, since `save` returns nothing.

Spark calls the commit of a writer in a separate Python process, which shares the driver's stderr. Streaming
queries report their progress instead. With ``PENSTOCK_PROGRESS=0``, nothing is printed.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.printable import printable

if TYPE_CHECKING:
    from penstock.lake.contract import Written
    from penstock.landing.manifest import Manifest

SWITCH = "PENSTOCK_PROGRESS"
NAMED_MAX = 5
"""The most topics that are named in a printed line; further topics are only counted."""


def tell(line: str) -> None:
    """Print one line to stderr, unless ``PENSTOCK_PROGRESS`` is 0."""
    if os.environ.get(SWITCH) != "0":
        with contextlib.suppress(OSError, ValueError):  # no stderr: the rows are written all the same
            print(f"penstock: {printable(line)}", file=sys.stderr, flush=True)


def rows_line(tasks: Iterable[Mapping[str, int]]) -> str:
    """Return a line with the number of rows that tasks have written, by topic."""
    rows: Counter[str] = Counter()
    for each in tasks:
        rows.update(each)
    if not rows:
        return "wrote no rows"
    return "wrote " + _joined(
        [f"{_counted(count, 'row')} to {topic}" for topic, count in sorted(rows.items())]
    )


def once_line(rows: int, topics: Collection[str]) -> str:
    """Return a line with the number of rows that a job has written exactly once, and their topics."""
    return f"wrote {_counted(rows, 'row')} to {_joined(sorted(topics))}, once" if rows else "wrote no rows"


def landed_line(path: str, manifest: Manifest | None) -> str:
    """Return a line with the numbers of rows and offsets in one batch of a landed table."""
    if manifest is None:
        return f"landed no rows in {path}"
    topics: dict[str, int] = {}
    for each in manifest.ranges:
        topics[each.topic] = topics.get(each.topic, 0) + each.end - each.start
    offsets = _joined([f"{_counted(count, 'offset')} of {topic}" for topic, count in sorted(topics.items())])
    rows = sum(file.rows for file in manifest.files)
    size = sum(file.size_bytes for file in manifest.files)
    files = f"{_counted(rows, 'row')} in {_counted(len(manifest.files), 'file')} ({size:,} bytes) in {path}"
    return f"landed {files}" + (f", from {offsets}" if offsets else "")


def lake_line(table: str, written: Written | None) -> str:
    """Return a line with the numbers of rows and files of one commit to a lake table."""
    if written is None:
        return f"landed no rows in {table}"
    files = f"{_counted(written.files, 'file')} ({written.size_bytes:,} bytes)"
    return f"landed {_counted(written.rows, 'row')} in {files} in {table}"


def _joined(said: Sequence[str]) -> str:
    more = len(said) - NAMED_MAX
    return ", ".join([*said[:NAMED_MAX], *([f"and {more} more topics"] if more > 0 else [])])


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
