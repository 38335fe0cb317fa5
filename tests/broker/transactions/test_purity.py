"""Tests that the modules which decide about transactions use no clock, random numbers, threads or files."""

from __future__ import annotations

import ast
from pathlib import Path

import penstock.broker.partitions.producers.transactions as of_partitions
import penstock.broker.transactions as room
from for_each import for_each

MODULES = [*sorted(Path(room.__path__[0]).glob("*.py")), Path(of_partitions.__file__)]
IMPURE = {"asyncio", "io", "os", "pathlib", "random", "secrets", "socket", "threading", "time", "uuid"}


@for_each(MODULES)
def test_nothing_of_the_outside_is_imported(path: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.split(".")[0])
    assert imported.isdisjoint(IMPURE)
