"""Writes a file with the metrics of landers for the textfile collector of Prometheus' node_exporter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from penstock.common.atomic_files import write_whole_text
from penstock.common.prometheus import label_value
from penstock.lake.lander import Lander


def write_metrics(path: Path, landers: Sequence[Lander]) -> None:
    """Replace the file `path` with the current metrics of the topics that are copied to tables.

    Raises:
        StorageError: the file cannot be written.
    """
    write_whole_text(path, metrics_text(landers))


def metrics_text(landers: Sequence[Lander]) -> str:
    """Return the metrics of landers in Prometheus' text format, as of the last commit of each lander."""
    lines = []
    for name, (kind, meaning, value_of) in _FIGURES.items():
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{{{_labels(each)}}} {value_of(each)}" for each in landers]
    name = "penstock_land_next_offset"
    lines += [f"# HELP {name} The next offset to be landed.", f"# TYPE {name} gauge"]
    for each in landers:
        for partition, offset in sorted(each.positions.offsets.items()):
            lines.append(f'{name}{{{_labels(each)},partition="{partition}"}} {offset}')
    return "\n".join(lines) + "\n"


_FIGURES: Mapping[str, tuple[str, str, Callable[[Lander], int]]] = {
    "penstock_land_rows_total": ("counter", "Rows committed.", lambda each: each.written.rows),
    "penstock_land_dead_letters_total": (
        "counter",
        "Records that do not fit the table.",
        lambda each: each.dead,
    ),
    "penstock_land_files_total": ("counter", "Files committed.", lambda each: each.written.files),
    "penstock_land_bytes_total": ("counter", "Bytes of these files.", lambda each: each.written.size_bytes),
    "penstock_land_commits_total": ("counter", "Commits of the table.", lambda each: each.written.commits),
    "penstock_land_lag_offsets": (
        "gauge",
        "Offsets left to read at the last commit.",
        lambda each: each.lag,
    ),
    "penstock_land_last_commit_seconds": (
        "gauge",
        "When the last commit was, since 1970.",
        lambda each: int(each.committed_s),
    ),
}
"""A dict from each metric's name to its type, its help text, and a function that returns its value."""


def _labels(lander: Lander) -> str:
    return f'topic="{label_value(lander.positions.topic)}",table="{label_value(lander.table.title)}"'
