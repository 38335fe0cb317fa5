"""Tests in which any system call fails while a file is written: the next attempt succeeds.

No incomplete file remains.
"""

from __future__ import annotations

import errno
import io
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.broker.config.values import BrokerConfig
from penstock.broker.partitions.disk_log_store import DiskStore
from penstock.broker.partitions.producers.producer_snapshots import ProducerSnapshots
from penstock.broker.partitions.producers.producer_state import Producers, SeenBatch
from penstock.cli.table_files import output_file
from penstock.clock import ManualClock
from penstock.errors import StorageError
from penstock.landing.files import TaskFiles
from penstock.landing.layout import TableLayout
from penstock.landing.table import STALE_STAGING_S, LandingTable
from penstock.log.directory.checkpoint import read_offsets, write_offsets
from penstock.log.directory.epoch_checkpoint import load_epochs
from penstock.log.directory.metadata_snapshots import QuorumVoters, newest_whole, write_snapshot
from penstock.model import OffsetRange, TopicPartition
from system_calls import Refusals

LAYOUT = TableLayout(columns=(("n", "bigint"),))
TP = TopicPartition("t", 0)


class Job:
    """A test case that writes files to `directory`, and repeats the write if the first attempt fails."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def prepare(self) -> None:
        """Create the files that exist before the write."""

    def do(self) -> None:
        """Write the files, in one attempt."""

    def check(self) -> None:
        """Check that the written files are complete, and that there are no others."""

    def names(self) -> set[str]:
        return {each.name for each in self.directory.rglob("*") if each.is_file()}


class Snapshot(Job):
    def do(self) -> None:
        values = [b"one", b"two"]
        write_snapshot(
            str(self.directory),
            7,
            1,
            values,
            quorum=QuorumVoters(),
            last_timestamp_ms=1,
            now_ms=2,
            read_back=True,
        )
        found = newest_whole(str(self.directory))
        assert found is not None
        assert list(found.values) == values

    def check(self) -> None:
        assert self.names() == {"00000000000000000007-0000000001.checkpoint"}


class Offsets(Job):
    def prepare(self) -> None:
        write_offsets(str(self.directory / "recovery"), {TP: 5})

    def do(self) -> None:
        path = str(self.directory / "recovery")
        assert read_offsets(path)[TP] in (5, 9)
        write_offsets(path, {TP: 9})

    def check(self) -> None:
        assert read_offsets(str(self.directory / "recovery")) == {TP: 9}
        assert self.names() == {"recovery"}


class Epochs(Job):
    def prepare(self) -> None:
        self.epochs = load_epochs(str(self.directory / "epochs"))
        self.epochs.assign(1, 0)

    def do(self) -> None:
        self.epochs.assign(2, 10)
        self.epochs.truncate_start(5)

    def check(self) -> None:
        assert self.epochs.entries == load_epochs(str(self.directory / "epochs")).entries == [(1, 5), (2, 10)]
        assert self.names() == {"epochs"}


class ProducersOfAPartition(Job):
    def prepare(self) -> None:
        self.snapshots = ProducerSnapshots(str(self.directory))
        self.producers = Producers(10)
        for offset in (100, 200):
            self.producers.record(7, 1, SeenBatch(offset, offset, offset, offset, 1), 0)
            self.snapshots.save(offset, self.producers)

    def do(self) -> None:
        self.producers.record(7, 1, SeenBatch(300, 300, 300, 300, 1), 0)
        self.snapshots.save(300, self.producers)

    def check(self) -> None:
        found = Producers(10)
        assert self.snapshots.offsets() == [200, 300]
        assert self.snapshots.load(found, 0, 0) == 200
        assert found.get(7) is not None
        assert len(self.names()) == 2


class LoginSecret(Job):
    def prepare(self) -> None:
        self.store = DiskStore(str(self.directory), BrokerConfig({}), ManualClock())
        self.before = self.names()

    def do(self) -> None:
        self.secret = self.store.login_secret()

    def check(self) -> None:
        assert self.store.login_secret() == self.secret
        assert len(self.names() - self.before) == 1
        self.store.abandon()


class Output(Job):
    def prepare(self) -> None:
        (self.directory / "out").write_bytes(b"old")

    def do(self) -> None:
        try:
            with output_file(str(self.directory / "out")) as file:
                file.write(b"new")
        except OSError as error:  # the command line names the file
            raise StorageError(str(error)) from error

    def check(self) -> None:
        assert (self.directory / "out").read_bytes() == b"new"
        assert self.names() == {"out"}


class Landing(Job):
    def prepare(self) -> None:
        self.table = LandingTable(self.directory / "table")
        self.next = 0
        for batch in range(2):
            self.land(batch)

    def land(self, batch: int) -> None:
        files = TaskFiles(self.table.root, self.table.staging("w", batch), LAYOUT, f"{batch}-{self.next}")
        self.next += 1
        written = [*files.add(pa.record_batch({"n": [batch]})), *files.finish()]
        self.table.commit("w", batch, LAYOUT, written, [OffsetRange("t", 0, batch, batch + 1)])

    def do(self) -> None:
        self.land(2)

    def check(self) -> None:
        self.land(3)
        found = [path for _, path in self.table.files()]
        values = [value for path in found for value in pa.parquet.read_table(path)["n"].to_pylist()]
        assert sorted(values) == [0, 1, 2, 3]
        parquet = set(self.table.root.rglob("*.parquet"))
        assert parquet == set(found)
        self.table.clean([], now=time.time() + 2 * STALE_STAGING_S)
        assert not [name for name in self.names() if "unfinished" in name]


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> Refusals:
    made = Refusals(monkeypatch)
    monkeypatch.setattr(io, "open", made._counted(io.open))
    return made


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize(
    "kind", [Snapshot, Offsets, Epochs, ProducersOfAPartition, LoginSecret, Output, Landing]
)
def test_what_was_refused_is_written_at_the_next_attempt(
    kind: Callable[[Path], Job], number: int, tmp_path: Path, refusals: Refusals
) -> None:
    failures, first, is_over = 0, 0, False
    while not is_over:
        first += 1
        directory = tmp_path / f"{first}"
        directory.mkdir()
        job = kind(directory)
        job.prepare()
        refusals.arm(first, first, number)
        try:
            job.do()
        except StorageError:
            failures += 1
            refusals.disarm()
            job.do()
        is_over = refusals.count < first
        refusals.disarm()
        job.check()
    assert failures >= 2
