"""Tests that docs/reference/limits.md has the names and defaults of the settings in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from for_each import for_each
from penstock.broker.config.broker_keys import BROKER_KEYS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "limits.md"

BROKER, CLIENT = "## The broker", "## Clients and readers"


def rows(chapter: str) -> list[tuple[list[str], str]]:
    """Return (names in the first cell, default) of each table row below the headings of `chapter`."""
    found = []
    here = False
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            here = line.startswith(chapter)
        elif here and line.startswith("| ") and not line.startswith("| Limit"):
            first, default = (cell.strip() for cell in line.strip("| ").split(" | ")[:2])
            names = re.findall(r"`([a-z0-9.]+\.[a-z0-9.]+)`", first)
            if names and re.fullmatch(r"-?\d+", default):
                found.append((names, default))
    return found


@for_each(rows(BROKER))
def test_defaults_of_the_broker_are_those_of_its_table(names: list[str], default: str) -> None:
    assert {BROKER_KEYS[name].default for name in names} == {default}


@pytest.mark.parametrize(
    "name", [name for name in BROKER_KEYS if re.search(r"^penstock\.(?!0\.7\.).*\bmax\b", name)]
)
def test_every_limit_of_ours_is_on_the_page(name: str) -> None:
    assert any(name in names for names, _ in rows(BROKER))


def test_defaults_of_clients_are_those_of_their_options() -> None:
    from penstock.client.config import ConsumerConfig

    options = ConsumerConfig.parse({"bootstrap.servers": "localhost:9092"}, {})
    known = {
        "penstock.unpack.max.bytes": options.penstock_unpack_max_bytes,
        "penstock.unpack.max.records": options.penstock_unpack_max_records,
    }
    told = {name: int(default) for names, default in rows(CLIENT) for name in names}
    assert told == known
