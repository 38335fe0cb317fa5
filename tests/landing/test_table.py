"""Tests of tables of landed files: each batch is visible once, wherever its commit was interrupted.

Readers find no files of uncommitted batches.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.common import atomic_files
from penstock.errors import ConfigError, DecodeError, StorageError
from penstock.landing import table as table_module
from penstock.landing.files import TaskFiles
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import LandedFile, Manifest
from penstock.landing.table import STALE_STAGING_S, LandingTable
from penstock.model import OffsetRange

LAYOUT = TableLayout(columns=(("n", "bigint"), ("kind", "string")), partition_by=("kind",))
WRITER = "a-query"


@pytest.fixture(autouse=True)
def _without_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace fsync: these tests simulate killed processes, whose written data survives without it."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class Killed(BaseException):
    """An exception that simulates the end of the process at that point."""


class Steps:
    """A counter of a commit's disk operations; it raises `Killed` before the operation number `last`."""

    def __init__(self, last: int | None) -> None:
        self.last = last
        self.done = 0

    def step(self) -> None:
        if self.done == self.last:
            raise Killed
        self.done += 1


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> list[Steps]:
    """Count the disk operations of commits; return a list whose last item is the counter in use.

    After a simulated kill, `rmtree` in clean-up code fails as well, so that files stay.
    """
    current = [Steps(None)]

    def counted(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            current[-1].step()
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(os, "link", counted(os.link))
    monkeypatch.setattr(atomic_files, "sync", counted(lambda path: None))
    monkeypatch.setattr(table_module.shutil, "rmtree", counted(shutil.rmtree))
    monkeypatch.setattr(Path, "rename", counted(Path.rename))
    monkeypatch.setattr(Path, "mkdir", counted(Path.mkdir))
    return current


def attempt(table: LandingTable, batch: int, numbers: range, *, writer: str = WRITER) -> list[LandedFile]:
    """Write the files of one task attempt, one for each of two partitions, and return them."""
    files = TaskFiles(table.root, table.staging(writer, batch), LAYOUT, f"{batch:03d}")
    rows = pa.record_batch(
        {"n": pa.array(numbers, pa.int64()), "kind": [f"k{number % 2}" for number in numbers]}
    )
    return [*files.add(rows), *files.finish()]


def rows_of(batch: int) -> range:
    return range(batch * 10, batch * 10 + 10)


def run(table: LandingTable, batch: int, *, register: Any = None) -> Manifest:
    """Commit a micro-batch of two tasks, one of which was attempted twice."""
    lower, upper = rows_of(batch)[:5], rows_of(batch)[5:]
    attempt(table, batch, lower)
    files = [*attempt(table, batch, lower), *attempt(table, batch, upper)]
    ranges = [OffsetRange("t", 0, part.start, part.stop) for part in (lower, upper)]
    return table.commit(WRITER, batch, LAYOUT, files, ranges, register)


def plainly(root: Path) -> list[int]:
    """Return the rows that a reader of the directory finds."""
    if not any(root.rglob("*.parquet")):
        return []
    return sorted(ds.dataset(root, format="parquet", partitioning="hive").to_table()["n"].to_pylist())


def by_manifest(root: Path) -> list[int]:
    """Return the rows that a reader of the table's manifests finds."""
    found = [path for _, path in LandingTable(root).files()]
    return sorted(n for path in found for n in pa.parquet.read_table(path)["n"].to_pylist())


def leftovers(root: Path) -> list[str]:
    return sorted(
        str(path.relative_to(root)) for path in root.rglob("*") if path.name.endswith(".unfinished")
    )


def test_batches_add_up(tmp_path: Path) -> None:
    table = LandingTable(tmp_path / "new" / "orders")
    for batch in range(3):
        manifest = run(table, batch)
        assert manifest == table.newest(WRITER)
        assert plainly(table.root) == by_manifest(table.root) == [*range((batch + 1) * 10)]
        assert leftovers(table.root) == []
    assert [each.ranges for each in table.manifests(WRITER)] == [
        (OffsetRange("t", 0, start, start + 5), OffsetRange("t", 0, start + 5, start + 10))
        for start in (0, 10, 20)
    ]
    assert table.layout() == LAYOUT


def test_wherever_a_commit_is_interrupted_its_rows_are_there_once(tmp_path: Path, disk: list[Steps]) -> None:
    """The test interrupts a commit before each of its disk operations in turn."""
    points = 0
    decided = set()
    while True:
        table = LandingTable(tmp_path / str(points))
        run(table, 0)
        disk.append(Steps(points))
        try:
            run(table, 1)
        except Killed:
            pass
        else:
            break
        disk.append(Steps(None))
        # Between the two runs: all of the batch or none of it by the manifests, no row twice anywhere.
        counted = by_manifest(table.root)
        assert counted in ([*range(10)], [*range(20)])
        decided.add(len(counted))
        seen = plainly(table.root)
        assert len(seen) == len(set(seen))
        assert set(range(10)) <= set(seen) <= set(counted)
        run(LandingTable(table.root), 1)
        assert plainly(table.root) == by_manifest(table.root) == [*range(20)]
        assert leftovers(table.root) == []
        # Spark's own log lost the commit: the batch is written once more, and nothing changes.
        before = sorted(table.root.rglob("*.parquet"))
        run(LandingTable(table.root), 1)
        assert sorted(table.root.rglob("*.parquet")) == before
        assert leftovers(table.root) == []
        points += 1
    assert points > 10
    assert decided == {10, 20}


def test_wherever_the_first_commit_is_interrupted(tmp_path: Path, disk: list[Steps]) -> None:
    points = 0
    while True:
        table = LandingTable(tmp_path / str(points))
        disk.append(Steps(points))
        try:
            run(table, 0)
        except Killed:
            disk.append(Steps(None))
            run(table, 0)
            assert plainly(table.root) == by_manifest(table.root) == [*range(10)]
            assert leftovers(table.root) == []
            points += 1
        else:
            break
    assert points > 15


def test_a_task_killed_in_the_middle_leaves_nothing_that_a_reader_sees(tmp_path: Path) -> None:
    table = LandingTable(tmp_path)
    run(table, 0)
    torn = table.staging(WRITER, 1) / "torn.parquet.unfinished"
    torn.parent.mkdir(parents=True)
    torn.write_bytes(b"PAR1 torn")
    assert plainly(tmp_path) == by_manifest(tmp_path) == [*range(10)]
    run(table, 1)
    assert leftovers(tmp_path) == []


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    runs=st.lists(
        st.tuples(st.sampled_from(["killed", "whole", "again", "late"]), st.integers(0, 40)), max_size=6
    )
)
def test_however_batches_are_retried(
    runs: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory, disk: list[Steps]
) -> None:
    """Spark runs the batch after the last complete one, or repeats that one if its commit log is lost."""
    table = LandingTable(tmp_path_factory.mktemp("landed"))
    whole, begun = 0, -1
    for outcome, point in runs:
        disk[:] = [Steps(point if outcome == "killed" else None)]
        batch = whole - 1 if outcome == "again" and 0 < whole > begun else whole
        begun = batch
        late = attempt(table, batch, rows_of(batch)) if outcome == "late" else []
        try:
            run(LandingTable(table.root), batch)
        except Killed:
            disk[:] = [Steps(None)]
        else:
            whole = max(whole, batch + 1)
        if late:
            # A driver that was thought dead commits what it had: the batch has its content.
            table.commit(WRITER, batch, LAYOUT, late)
        seen = plainly(table.root)
        assert len(seen) == len(set(seen))
        assert set(range(whole * 10)) <= set(seen) <= set(by_manifest(table.root))
    disk[:] = [Steps(None)]
    run(table, whole)
    assert plainly(table.root) == by_manifest(table.root) == [*range(whole * 10 + 10)]
    assert leftovers(table.root) == []


def test_of_two_drivers_one_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = LandingTable(tmp_path)
    create = table_module.create_whole

    def overtaken(target: Path, text: str) -> bool:
        if target.parent.name == WRITER and not target.exists():
            mine = attempt(table, 0, rows_of(0))
            other = Manifest(WRITER, 0, tuple(mine))
            assert create(target, other.to_json())
        return create(target, text)

    monkeypatch.setattr(table_module, "create_whole", overtaken)
    run(table, 0)
    assert plainly(tmp_path) == by_manifest(tmp_path) == [*range(10)]
    assert leftovers(tmp_path) == []


def test_an_older_checkpoint_is_refused(tmp_path: Path) -> None:
    table = LandingTable(tmp_path)
    run(table, 0)
    run(table, 1)
    with pytest.raises(ConfigError, match=r"batch 0 is to be landed, but .* has batch 1 of a-query"):
        run(table, 0)
    assert plainly(tmp_path) == [*range(20)]


def test_other_columns_are_refused_with_their_names(tmp_path: Path) -> None:
    table = LandingTable(tmp_path)
    run(table, 0)
    other = TableLayout(columns=(("n", "string"), ("kind", "string"), ("more", "int")), partition_by=())
    with pytest.raises(
        ConfigError,
        match=r"column n: bigint there, string here; column more: none there, int here; "
        r"partitionBy: kind there, none here\. Land into another directory",
    ):
        table.commit(WRITER, 1, other, [])
    assert plainly(tmp_path) == [*range(10)]


def test_records_that_were_read_twice_are_refused(tmp_path: Path) -> None:
    table = LandingTable(tmp_path)
    ranges = [OffsetRange("t", 0, 0, 5), OffsetRange("t", 1, 0, 5), OffsetRange("t", 0, 4, 9)]
    with pytest.raises(ConfigError, match="t-0 was read twice for one batch, from offset 4 on"):
        table.commit(WRITER, 0, LAYOUT, attempt(table, 0, rows_of(0)), ranges)
    assert plainly(tmp_path) == []


def test_a_directory_that_is_not_shared_is_one_clear_line(tmp_path: Path) -> None:
    table = LandingTable(tmp_path)
    files = attempt(table, 0, rows_of(0))
    (tmp_path / files[0].staged).unlink()
    with pytest.raises(StorageError, match=r"not there: the directory has to be the same file system"):
        table.commit(WRITER, 0, LAYOUT, files)
    assert by_manifest(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "staged"),
    [
        ("../x.parquet", "_penstock/staging/w/0/x.unfinished"),
        ("x.parquet", "../staging/w/0/x.unfinished"),
        ("x.parquet", "_penstock/staging/../0/x.unfinished"),
        ("/x.parquet", "_penstock/staging/w/0/x.unfinished"),
    ],
)
def test_paths_do_not_lead_out_of_the_table(tmp_path: Path, path: str, staged: str) -> None:
    with pytest.raises(ConfigError, match="no file on its way into a landed table"):
        LandingTable(tmp_path).commit(WRITER, 0, LAYOUT, [LandedFile(path, staged, 1, 1, {})])


def test_manifests_are_put_together_and_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "KEPT_SINGLE", 3)
    table = LandingTable(tmp_path)
    for batch in range(14):
        run(table, batch)
        assert by_manifest(tmp_path) == [*range(batch * 10 + 10)]
    names = sorted(path.name for path in (tmp_path / "_penstock" / "manifests" / WRITER).iterdir())
    assert names == [
        *(f"{first:020d}-{first + 2:020d}.json" for first in (0, 3, 6)),
        *(f"{batch:020d}.json" for batch in range(9, 14)),
    ]
    assert [each.batch for each in table.manifests(WRITER)] == [*range(14)]
    # As after an end between the two steps of putting together.
    merged = json.loads((tmp_path / "_penstock" / "manifests" / WRITER / names[0]).read_text())
    (tmp_path / "_penstock" / "manifests" / WRITER / f"{1:020d}.json").write_text(
        json.dumps(merged["manifests"][1])
    )
    assert by_manifest(tmp_path) == [*range(140)]


def test_what_writers_left_long_ago_is_removed_but_for_what_counts(tmp_path: Path, disk: list[Steps]) -> None:
    table = LandingTable(tmp_path)
    old = attempt(table, 0, range(100, 110), writer="gone")
    owed = attempt(table, 0, range(200, 210), writer="owed")
    table.declare(LAYOUT)
    manifest = table.root / "_penstock" / "manifests" / "owed" / f"{0:020d}.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(Manifest("owed", 0, tuple(owed)).to_json())
    run(table, 0)
    assert all((tmp_path / file.staged).exists() for file in [*old, *owed])
    later = (tmp_path / old[0].staged).stat().st_mtime + STALE_STAGING_S + 60
    table.clean([], now=later)
    assert [(tmp_path / file.staged).exists() for file in [*old, *owed]] == [False, False, True, True]
    assert by_manifest(tmp_path) == [*range(10), *range(200, 210)]


def test_a_newer_format_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    table = LandingTable(tmp_path)
    run(table, 0)
    path = tmp_path / "_penstock" / "manifests" / WRITER / f"{0:020d}.json"
    whole = json.loads(path.read_text())
    for text, why in [
        (json.dumps(whole | {"formatVersion": 2}), "format version 2; this release reads up to 1"),
        (json.dumps(whole | {"files": [{}]}), "damaged: KeyError"),
        ("{", "damaged: "),
        ("[]", "no formatVersion"),
    ]:
        path.write_text(text)
        with pytest.raises(DecodeError, match=why):
            list(table.files())
    (tmp_path / "_penstock" / "table.json").write_text('{"formatVersion": 1}')
    with pytest.raises(DecodeError, match=r"table\.json is damaged"):
        table.layout()


def test_a_file_that_was_deleted_is_named(tmp_path: Path) -> None:
    table = LandingTable(tmp_path)
    run(table, 0)
    victim = sorted(tmp_path.rglob("*.parquet"))[0]
    victim.unlink()
    with pytest.raises(StorageError, match=f"{victim.name} is missing, which a manifest names"):
        by_manifest(tmp_path)
    run(table, 1)  # what users delete does not stop a query
    assert set(plainly(tmp_path)) > set(range(10, 20))


@pytest.mark.parametrize("writer", ["", ".", "..", "a/b", "a b", "x" * 201, ".hidden"])
def test_names_of_writers(writer: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="writer"):
        LandingTable(tmp_path).commit(writer, 0, LAYOUT, [])
