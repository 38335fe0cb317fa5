"""Tests of the source code: every coordinator stores its state with `penstock.broker.coordination` only."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from penstock.broker.groups.share_state.records import LAYOUT as SHARE_STATES
from penstock.broker.groups.topic import LAYOUT as OFFSETS
from penstock.broker.partitions.internal_topics import INTERNAL_TOPICS
from penstock.broker.transactions.topic import LAYOUT as TRANSACTIONS

ROOT = Path(__file__).resolve().parents[3]
BROKER = ROOT / "src/penstock/broker"
CONTRACT = "A coordinator stores, loads and unloads by broker.coordination, and touches no log of its own"


def makers(name: str) -> set[Path]:
    """Return the paths of the broker's modules that call a class or function of this name."""
    return {
        path
        for path in BROKER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    }


def test_every_topic_of_state_has_one_layout() -> None:
    assert sorted(layout.name for layout in (OFFSETS, SHARE_STATES, TRANSACTIONS)) == sorted(INTERNAL_TOPICS)
    assert len(makers("StateTopicLayout")) == len(INTERNAL_TOPICS)


def test_who_has_a_topic_of_state_reads_it_by_leader_epochs() -> None:
    assert makers("StateTopic") == makers("LoadedPartitions")
    assert len(makers("StateTopic")) == len(INTERNAL_TOPICS)


def test_every_coordinator_is_under_the_contract() -> None:
    """The import contract in `pyproject.toml` lists every package that makes a `StateTopic`.

    A package in this list may not import `penstock.log`, so that it cannot append to a log by itself.
    """
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    [contract] = [each for each in contracts if each["name"] == CONTRACT]
    rooms = {f"penstock.broker.{path.relative_to(BROKER).parts[0]}" for path in makers("StateTopic")}
    assert rooms == set(contract["source_modules"])
    assert {"penstock.log", "penstock.records"} <= set(contract["forbidden_modules"])
