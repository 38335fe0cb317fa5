"""Figures of a landing as a file in Prometheus' text format, for the textfile collector of node_exporter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.lake.lander import Lander
from penstock.landing.atomic_files import write_whole

Figure = tuple[str, str, str, int]
"""The name, the type, what it says, and the value."""


def write_metrics(path: Path, lander: Lander, now_s: float) -> None:
    """Write the figures of a landing as of `now_s`, in seconds since 1970, in place of what the file has.

    Raises:
        StorageError: the file cannot be written.
    """
    write_whole(path, lambda hidden: _write(hidden, metrics_text(lander, now_s)))


def metrics_text(lander: Lander, now_s: float) -> str:
    """Return the figures of a landing, which has committed at `now_s`."""
    labels = f'topic="{_escaped(lander.positions.topic)}",table="{_escaped(lander.table.title)}"'
    lines = []
    for name, kind, meaning, value in _figures(lander, now_s):
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", f"{name}{{{labels}}} {value}"]
    name = "penstock_land_next_offset"
    lines += [f"# HELP {name} The next offset to be landed.", f"# TYPE {name} gauge"]
    for partition, offset in sorted(lander.positions.offsets.items()):
        lines.append(f'{name}{{{labels},partition="{partition}"}} {offset}')
    return "\n".join(lines) + "\n"


def _figures(lander: Lander, now_s: float) -> Iterator[Figure]:
    done = lander.written
    yield "penstock_land_rows_total", "counter", "Rows committed.", done.rows
    yield "penstock_land_dead_letters_total", "counter", "Records that do not fit the table.", lander.dead
    yield "penstock_land_files_total", "counter", "Files committed.", done.files
    yield "penstock_land_bytes_total", "counter", "Bytes of these files.", done.size_bytes
    yield "penstock_land_commits_total", "counter", "Commits of the table.", done.commits
    yield "penstock_land_lag_offsets", "gauge", "Offsets left to read at the last commit.", lander.lag
    yield "penstock_land_last_commit_seconds", "gauge", "When the last commit was, since 1970.", int(now_s)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
