"""Tests of compaction of a topic with transactions: what readers get, `.txnindex` files, restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.bench_node import make_topic
from broker.transactions.broker_bench import BrokerBench

C = ("c", 0)
BACKOFF_MS = 15_000


def begun(directory: Path) -> tuple[BrokerBench, int]:
    bench = BrokerBench.on_disk(directory)
    settings = {"cleanup_policy": "compact", "segment_bytes": "400", "min_cleanable_dirty_ratio": "0.01"}
    make_topic(bench.node, "c", delete_retention_ms="20000", **settings)
    _, producer_id, _ = bench.initialize()
    return bench, producer_id


def write_turns(bench: BrokerBench, producer_id: int, turns: range) -> None:
    """Write one transaction of one record per turn; the odd turns are aborted."""
    for turn in turns:
        assert bench.write(producer_id, turn, 0, b"%d" % turn, partition=C)[0] == 0
        assert bench.end(producer_id, turn, commit=turn % 2 == 0)[0] == 0


def keep_house(bench: BrokerBench) -> None:
    """Run the periodic maintenance, and wait for the compaction that it starts."""
    node = bench.node
    bench.clock.advance(BACKOFF_MS)
    assert node.maintain(bench.clock.now_ms()) == []
    assert node.compactor.wait() == []


def indexes(directory: Path) -> dict[str, int]:
    """Return a dict from each `.txnindex` file to its number of entries."""
    files = (directory / "c-0").glob("*.txnindex")
    return {file.name: file.stat().st_size // 34 for file in files}


@pytest.mark.parametrize("kill", [False, True])
def test_what_was_aborted_goes_from_log_and_index(tmp_path: Path, kill: bool) -> None:
    bench, producer_id = begun(tmp_path)
    write_turns(bench, producer_id, range(20))
    before = sum(indexes(tmp_path).values())
    assert before == 10
    keep_house(bench)
    keep_house(bench)
    assert bench.read(partition=C)[-1] == b"18"
    assert len(bench.read(partition=C, isolation=0)) < 10
    bench.write_plain(b"plain", partition=C)
    write_turns(bench, producer_id, range(20, 30))
    keep_house(bench)
    keep_house(bench)
    kept = indexes(tmp_path)
    assert sum(kept.values()) < 12, "transactions without data leave the index"
    seen, behind = bench.read(partition=C), bench.stable(C)
    bench = bench.restart(tmp_path, kill=kill)
    assert bench.read(partition=C) == seen
    assert bench.stable(C) == behind
    assert seen[-1] == b"28"
    assert bench.write(producer_id, 30, 0, b"next", partition=C)[0] == 0
    assert bench.end(producer_id, 30)[0] == 0
    assert bench.read(partition=C)[-1] == b"next"


def test_an_open_transaction_holds_compaction_up_and_nothing_else(tmp_path: Path) -> None:
    bench, producer_id = begun(tmp_path)
    other = bench.initialize("y")[1]
    assert bench.write(other, 0, 0, b"open", partition=C, name="y")[0] == 0
    write_turns(bench, producer_id, range(20))
    keep_house(bench)
    keep_house(bench)
    assert len(bench.read(partition=C, isolation=0)) == 21
    assert bench.end(other, 0, name="y")[0] == 0
    keep_house(bench)
    keep_house(bench)
    assert len(bench.read(partition=C, isolation=0)) < 10
    assert bench.read(partition=C)[-1] == b"18"


def test_an_index_that_names_a_transaction_twice_is_read_once(tmp_path: Path) -> None:
    """A crash during compaction left index entries twice: for the merged segment and for the old ones."""
    bench, producer_id = begun(tmp_path)
    write_turns(bench, producer_id, range(20))
    files = sorted((tmp_path / "c-0").glob("*.txnindex"))
    assert len(files) > 2
    entries = b"".join(file.read_bytes() for file in files)
    listed = bench.fetch(0, 1, C).aborted_transactions
    bench.node.note_producers()
    files[0].write_bytes(entries)
    bench = bench.restart(tmp_path)
    assert bench.fetch(0, 1, C).aborted_transactions == listed
    assert bench.read(partition=C)[-1] == b"18"
