"""Tests of the order in which several processes share the tests."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import pytest

from parts_of_tests import HEADS, in_parts

ROOT = Path(__file__).resolve().parents[1]


class Item(NamedTuple):
    """A stand-in for a collected test, with the attributes that the ordering uses."""

    nodeid: str
    path: Path
    fixturenames: tuple[str, ...] = ()


def items_of(count: int, file: str, *fixtures: str) -> list[Item]:
    return [Item(f"{file}::test_{number}", Path(file), fixtures if number else ()) for number in range(count)]


@pytest.mark.parametrize("processes", [1, 2, 4, 7])
def test_no_test_is_lost_and_every_part_has_its_head(processes: int) -> None:
    items = [
        *items_of(400, "tests/broker/test_one.py"),
        *items_of(30, "tests/test_house.py"),
        *items_of(50, "tests/spark/test_batch.py", "spark"),
        *items_of(400, "tests/v07/test_other.py"),
        *items_of(40, "tests/test_documents.py"),
    ]
    ordered = in_parts(items, processes)
    assert sorted(ordered) == sorted(items)
    assert [item.path.name for item in ordered[:50]] == ["test_batch.py"] * 50
    if processes == 4:
        part = len(items) // 4
        assert ordered[part].path.name == "test_documents.py"
        assert ordered[2 * part].path.name == "test_house.py"
    for file in {item.path for item in items}:  # a file keeps its order
        assert [item for item in ordered if item.path == file] == [
            item for item in items if item.path == file
        ]


def test_a_head_that_is_longer_than_its_part_loses_nothing() -> None:
    items = [*items_of(3, "tests/log/test_one.py"), *items_of(90, "tests/spark/test_batch.py", "spark")]
    random.Random(1).shuffle(items)
    assert sorted(in_parts(items, 4)) == sorted(items)


def test_heads_are_files_that_exist() -> None:
    for beginning in (each for head in HEADS for each in head):
        assert (ROOT / beginning).exists(), beginning
