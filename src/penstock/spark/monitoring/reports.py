"""Reports of running queries as files, for `penstock follow` and for other programs.

Spark sends events of queries to listeners; a checkpoint has neither the speed of a query nor its error.
Each query has one file, named after its id, with its last report; it is replaced atomically.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.common.atomic_files import make_directory, write_whole_text
from penstock.errors import ConfigError, StorageError
from penstock.spark.sinks.progress import Progress, progress_of, reason

REPORTS_MAX = 100
"""The most files in the directory of reports: the oldest reports are deleted."""

REPORT_BYTES_MAX = 16 * 1024 * 1024
"""The largest report, in bytes, that is read: the offsets of some 100,000 topic partitions."""

SUFFIX = ".query.json"


@dataclass(frozen=True, slots=True)
class Report:
    """The last report of a query. `error` is one line if the query has failed."""

    query_id: str
    name: str | None
    is_active: bool
    error: str | None
    progress: Progress | None
    offsets: tuple[Any, ...] = ()
    """The end offsets of the last micro-batch for each source, in Spark's format."""
    written_at: float = 0.0
    """The time when the file was written, in seconds since 1970."""


def reports_directory() -> Path:
    """Return the default directory of reports, below XDG_STATE_HOME or ``~/.local/state``."""
    state = os.environ.get("XDG_STATE_HOME")
    return Path(state or Path.home() / ".local" / "state") / "penstock" / "queries"


def write_report(directory: Path, document: Mapping[str, Any]) -> None:
    """Replace the report of the query ``document["id"]``, and remove the oldest if there are too many.

    Raises:
        StorageError: the file cannot be written.
    """
    make_directory(directory)
    target = directory / f"{document['id']}{SUFFIX}"
    is_new = not target.exists()
    write_whole_text(target, json.dumps(document))
    if is_new:
        _drop_old(directory)


def find_report(directory: Path, query: str) -> Report | None:
    """Return the report of the query with an id, or else the newest one of a query with that name, or None.

    Raises:
        StorageError: a report cannot be read.
    """
    found: Report | None = None
    paths = list(directory.glob(f"*{SUFFIX}")) if directory.is_dir() else []
    for path in paths:
        report = _read(path)
        if report is None:
            continue
        if report.query_id == query:
            return report
        if report.name == query and (found is None or report.written_at > found.written_at):
            found = report
    return found


def report_of(document: Mapping[str, Any], written_at: float = 0.0) -> Report:
    """Return the report in the contents of a file written at `written_at` (seconds since 1970).

    Raises:
        ConfigError: a field is missing, or has another type.
    """
    try:
        progress = document.get("progress")
        error = document.get("error")
        return Report(
            str(document["id"]),
            document.get("name"),
            bool(document["isActive"]),
            None if error is None else reason(RuntimeError(str(error))),
            None if progress is None else progress_of(progress),
            () if progress is None else tuple(each.get("endOffset") for each in progress["sources"]),
            written_at,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(f"no report of a query: {error!r}") from None


def _read(path: Path) -> Report | None:
    """Return the report in a file, or None if the file has been removed."""
    try:
        with path.open("rb") as file:
            written_at = os.fstat(file.fileno()).st_mtime
            data = file.read(REPORT_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        if len(data) > REPORT_BYTES_MAX:
            raise ValueError(f"larger than {REPORT_BYTES_MAX} bytes")
        document = json.loads(data)
        if not isinstance(document, dict):
            raise ValueError("no JSON object")
        return report_of(document, written_at)
    except (ValueError, ConfigError) as error:
        raise StorageError(f"{path} is no report of a query ({error}): remove it") from None


def _drop_old(directory: Path) -> None:
    aged = []
    for path in directory.glob(f"*{SUFFIX}"):
        with suppress(FileNotFoundError):
            aged.append((path.stat().st_mtime, path))
    for _, path in sorted(aged)[:-REPORTS_MAX]:
        path.unlink(missing_ok=True)
