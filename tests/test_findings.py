"""Tests that the tests named in FINDINGS.md and in the list of passing client tests exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CLIENTS = (
    "broker_clients",
    "client_metrics",
    "java_admin",
    "java_connect",
    "java_libraries",
    "java_streams",
    "java_tools",
    "older_clients",
    "profiles_clients",
    "programs",
    "secured_clients",
    "secured_programs",
)
PASSING = (ROOT / "tests" / "compat" / "passing.txt").read_text().split()


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_what_passes_is_listed_and_stays() -> None:
    """Every test of another client must be on the list.

    An entry whose test was removed fails as well.
    """
    there = {
        f"{name}::{test}"
        for name in CLIENTS
        for test in functions(ROOT / "tests" / "compat" / f"test_{name}.py")
        if test.startswith("test_")
    }
    assert sorted(there) == PASSING


def test_findings_name_the_tests_that_hold_them() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "FINDINGS.md").read_text())
    assert len(named) > 15
    rooms = ("scripts.py", "transaction_scripts.py")
    scripts = set().union(*(functions(ROOT / "tests" / "compat" / name) for name in rooms))
    for path, name in named:
        assert name in functions(ROOT / path) | (scripts if path.endswith("test_differential.py") else set())
