"""Draw the package's layers, as the import rules in pyproject.toml define them, for ARCHITECTURE.md.

    python tools/draw_layers.py

writes docs/pictures/architecture.svg. A test fails if the picture does not match the rules.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"

CAPTIONS = {
    "cli": "one module per noun",
    "demo": "the main job",
    "gateway": "old clients, a cluster of today",
    "spark": "data source, session, exactly-once tables",
    "lake": "Iceberg, Delta, object stores",
    "testing": "faults, fixtures for pytest",
    "queries": "sql, topic_dataset, scan_polars",
    "tables": "read_topic, scan_log, write_topic",
    "landing": "Parquet files and their manifests",
    "registry": "schemas: columns, rows, a registry",
    "client": "producer, consumer, admin",
    "broker": "dispatch, partitions, groups",
    "explorer": "bytes to readable, and back",
    "v07": "Kafka 0.7, both ends",
    "log": "batches by offset, Kafka's directory",
    "cloudevents": "events ↔ records",
    "security": "SCRAM, TLS, tokens, hidden passwords",
    "protocol": "bytes ↔ messages",
    "records": "bytes ↔ columns",
    "telemetry": "metrics that clients push",
    "model": "shared nouns",
    "clock": "time as an argument",
    "moments": "times as text",
    "common": "Java's hash, buffers, failures, threads",
    "errors": "the error tree",
    "printable": "control characters, spelled out",
    "version": "of the package",
    "headers": "headers of records",
}

FLOWS = {
    "Produce": (
        "bytes → frame → header → codec",
        "records stay a memoryview",
        "check CRC, producer, sequence",
        "patch base offset in place",
        "log.append, wake the waiting",
    ),
    "Fetch into Arrow": (
        "offsets → ranges → Fetch",
        "records are views of the frame",
        "one kernel scans, one gathers",
        "→ pyarrow.RecordBatch → Spark",
    ),
}

FILLS = (
    "#eef3fa",
    "#e8eef7",
    "#e1eaf5",
    "#dbe7f3",
    "#d5e3f1",
    "#cfe0ef",
    "#c7dbed",
    "#bfd6ea",
    "#b7d1e7",
    "#aecbe4",
    "#a5c5e0",
    "#9cbfdc",
    "#93b9d8",
    "#8ab3d4",
    "#81add0",
    "#78a7cc",
    "#6fa1c8",
)
LEFT, WIDTH, GAP, HEIGHT, PITCH, TOP = 40, 640, 14, 52, 62, 24
TEXT_LEFT = 726


class Room(NamedTuple):
    """A box in the picture that stands for a subpackage."""

    name: str
    x: int
    y: int
    width: int
    fill: str


def layers() -> list[list[str]]:
    """Return the subpackages in each layer, from top to bottom.

    Only the contract of the whole package is read; subpackages may have their own.
    """
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = rules["tool"]["importlinter"]["contracts"]
    [contract] = [contract for contract in contracts if contract.get("containers") == ["penstock"]]
    return [[name.strip(" ()") for name in layer.split("|")] for layer in contract["layers"]]


def rooms() -> list[Room]:
    """Return a box with its position for every subpackage."""
    placed = []
    for row, names in enumerate(layers()):
        width = (WIDTH - GAP * (len(names) - 1)) // len(names)
        for column, name in enumerate(names):
            x = LEFT + column * (width + GAP)
            placed.append(Room(name, x, TOP + row * PITCH, width, FILLS[row]))
    return placed


def box(room: Room) -> str:
    middle = room.x + room.width // 2
    return (
        f'<rect x="{room.x}" y="{room.y}" width="{room.width}" height="{HEIGHT}" rx="8" fill="{room.fill}"'
        ' stroke="#5b7fa3"/>\n'
        f'<text x="{middle}" y="{room.y + 22}" text-anchor="middle" font-size="15" font-weight="bold"'
        f' fill="#1d3550">{room.name}</text>\n'
        f'<text x="{middle}" y="{room.y + 41}" text-anchor="middle" font-size="11.5" fill="#35506e">'
        f"{CAPTIONS[room.name]}</text>"
    )


def notes() -> list[str]:
    lines = [
        f'<text x="{TEXT_LEFT}" y="40" font-size="14" fill="#7a3a12">imports point down only;</text>',
        f'<text x="{TEXT_LEFT}" y="60" font-size="14" fill="#7a3a12">siblings never meet</text>',
    ]
    y = 120
    for title, steps in FLOWS.items():
        lines.append(
            f'<text x="{TEXT_LEFT}" y="{y}" font-size="15" font-weight="bold" fill="#1d3550">{title}</text>'
        )
        for step in steps:
            y += 21
            lines.append(f'<text x="{TEXT_LEFT}" y="{y}" font-size="13" fill="#35506e">{step}</text>')
        y += 42
    return lines


def picture() -> str:
    """Return the whole picture as SVG."""
    height = TOP + len(layers()) * PITCH + 10
    arrow = LEFT + WIDTH + 22
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 {height}"'
            ' font-family="Helvetica, Arial, sans-serif" role="img"'
            ' aria-label="The layers of Penstock and the paths of a produce and a fetch">',
            '<defs><marker id="a" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7"'
            ' orient="auto"><path d="M0 0L10 5L0 10z" fill="#b5541c"/></marker></defs>',
            f'<rect width="980" height="{height}" fill="#ffffff"/>',
            *map(box, rooms()),
            f'<path d="M{arrow} {TOP + 10} V {height - 40}" stroke="#b5541c" stroke-width="2.5" fill="none"'
            ' marker-end="url(#a)"/>',
            *notes(),
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
