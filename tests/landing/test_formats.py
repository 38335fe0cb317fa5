"""Tests of adding landed files to Delta and Iceberg tables with their own libraries: each batch once."""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog

from penstock.errors import ConfigError, MissingDependencyError, StorageError
from penstock.landing.delta import DeltaRegister
from penstock.landing.files import FileSettings, TaskFiles
from penstock.landing.iceberg import IcebergRegister
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import LandedFile, Manifest
from penstock.landing.table import LandingTable

COLUMNS = (
    ("n", "bigint"),
    ("kind", "string"),
    ("timestamp", "timestamp"),
    ("extensions", "map<string,string>"),
)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Killed(BaseException):
    """An exception that simulates the end of the process at that point."""


class Lake:
    """A Delta or Iceberg table: functions add batches to it, and read it with the format's library."""

    def __init__(self, kind: str, root: Path, partition_by: tuple[str, ...] = ("kind",)) -> None:
        self.kind = kind
        self.table = LandingTable(root / "data")
        self.layout = TableLayout(COLUMNS, partition_by, format=kind)
        self.properties = {
            "type": "sql",
            "uri": f"sqlite:///{root}/catalog.db",
            "warehouse": f"file://{root}",
        }
        self.name = "lake.orders"

    def register(self) -> Callable[[Manifest], None]:
        if self.kind == "delta":
            return DeltaRegister(self.table.root, self.layout)
        return IcebergRegister(self.table.root, self.layout, self.name, None, self.properties)

    def files(self, batch: int, kinds: list[str | None], writer: str = "w") -> list[LandedFile]:
        """Write the data files of one task, and return them."""
        settings = FileSettings(all_statistics=self.kind == "iceberg")
        files = TaskFiles(
            self.table.root, self.table.staging(writer, batch), self.layout, f"{batch:03d}", settings
        )
        count = len(kinds)
        moment = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
        rows = pa.record_batch(
            {
                "n": pa.array(range(batch * 10, batch * 10 + count), pa.int64()),
                "kind": pa.array(kinds, pa.string()),
                "timestamp": pa.array([moment] * count, pa.timestamp("us", "UTC")),
                "extensions": pa.array([[("a", "b")]] * count, pa.map_(pa.string(), pa.string())),
            }
        )
        return [*files.add(rows), *files.finish()]

    def commit(self, batch: int, *kinds: str | None, register: Any = None, writer: str = "w") -> Manifest:
        files = self.files(batch, list(kinds) or ["a", "b"], writer)
        return self.table.commit(writer, batch, self.layout, files, (), register or self.register())

    def read(self) -> pa.Table:
        if self.kind == "delta":
            return DeltaTable(str(self.table.root)).to_pyarrow_table()
        return load_catalog(None, **self.properties).load_table(self.name).scan().to_arrow()

    def numbers(self) -> list[int]:
        return sorted(self.read()["n"].to_pylist())


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def test_batches_add_up_and_again_have_no_effect(lake: Lake) -> None:
    for batch in range(3):
        lake.commit(batch)
        lake.commit(batch)
    assert lake.numbers() == [0, 1, 10, 11, 20, 21]
    assert not list(lake.table.root.rglob("*.unfinished"))
    assert len(list(lake.table.root.rglob("*.parquet"))) == 6


def test_an_end_before_the_table_has_the_files_or_before_spark_has_the_batch(lake: Lake) -> None:
    def killed_before(batch: int) -> Callable[[Manifest], None]:
        def register(manifest: Manifest) -> None:
            if manifest.batch == batch:
                raise Killed
            lake.register()(manifest)

        return register

    def killed_after(manifest: Manifest) -> None:
        lake.register()(manifest)
        if manifest.batch == 2:
            raise Killed

    lake.commit(0)
    with pytest.raises(Killed):
        lake.commit(1, register=killed_before(1))
    assert lake.numbers() == [0, 1]
    lake.commit(1)
    assert lake.numbers() == [0, 1, 10, 11]
    with pytest.raises(Killed):
        lake.commit(2, register=killed_after)
    lake.commit(2)
    assert lake.numbers() == [0, 1, 10, 11, 20, 21]
    # A job that is not run again, but followed by the next one of its name, is completed by that.
    with pytest.raises(Killed):
        lake.commit(3, register=killed_before(3))
    lake.commit(4)
    assert lake.numbers() == [0, 1, 10, 11, 20, 21, 30, 31, 40, 41]


def test_two_drivers_add_a_batch_at_the_same_time(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower driver reads the table's state before the faster one commits."""
    lake.commit(0)
    files = lake.files(1, ["a"])
    manifest = lake.table.commit("w", 1, lake.layout, files)
    late = lake.register()
    found = late._table  # type: ignore[attr-defined]

    def overtaken(given: Manifest) -> Any:
        table = found(given)
        lake.register()(given)
        return table

    monkeypatch.setattr(late, "_table", overtaken)
    late(manifest)
    assert lake.numbers() == [0, 1, 10]


def test_other_writers_do_not_count(lake: Lake) -> None:
    lake.commit(5)
    lake.commit(0, writer="another")
    lake.commit(0, writer="another")
    assert lake.numbers() == [0, 1, 50, 51]


def test_odd_values_of_partitions(lake: Lake) -> None:
    odd: list[str | None] = ["a/b", "..", "%41", "ü 日本", "a=b", None, "x'y\"", "a\nb"]
    lake.commit(0, *odd)
    table = lake.read()
    found = dict(zip(table["n"].to_pylist(), table["kind"].to_pylist(), strict=True))
    assert found == dict(enumerate(odd))


def test_dates_and_hours(lake: Lake, tmp_path: Path) -> None:
    by_time = Lake(lake.kind, tmp_path / "t", ("date", "hour"))
    by_time.commit(0)
    assert by_time.numbers() == [0, 1]
    if lake.kind == "delta":
        found = by_time.read()
        assert set(zip(map(str, found["date"].to_pylist()), found["hour"].to_pylist(), strict=True)) == {
            ("2026-01-31", 23)
        }
    else:
        table = load_catalog(None, **by_time.properties).load_table(by_time.name)
        assert [str(field.transform) for field in table.spec().fields] == ["hour"]
        assert table.scan(row_filter="timestamp >= '2026-01-31T23:00:00+00:00'").to_arrow().num_rows == 2


def test_a_snapshot_says_which_batch_it_is(tmp_path: Path) -> None:
    lake = Lake("iceberg", tmp_path)
    lake.commit(7)
    snapshot = load_catalog(None, **lake.properties).load_table(lake.name).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert (snapshot.summary["penstock.writer"], snapshot.summary["penstock.batch"]) == ("w", "7")


def test_a_table_with_other_columns_is_refused(lake: Lake) -> None:
    lake.commit(0)
    lake.layout = TableLayout(COLUMNS[:3], ("kind",), format=lake.kind)
    manifest = lake.table.newest("w")
    assert manifest is not None
    with pytest.raises(
        ConfigError, match=r"table .* has columns .*extensions.* by .*kind.*, this query lands"
    ):
        lake.register()(manifest)


def test_a_table_that_cannot_be_written_is_one_clear_error(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"penstock.landing.{lake.kind}.ATTEMPTS_MAX", 0)
    with pytest.raises(StorageError, match=r"cannot add batch 0 to .*: other writers were faster 0 times"):
        lake.commit(0)
    monkeypatch.undo()
    lake.commit(0)
    assert lake.numbers() == [0, 1]


def test_a_catalog_that_does_not_open(tmp_path: Path) -> None:
    lake = Lake("iceberg", tmp_path)
    lake.properties = {"type": "sql", "uri": "sqlite:////nowhere/at/all.db"}
    with pytest.raises((ConfigError, StorageError), match=r"nowhere|unable to open|cannot open"):
        lake.commit(0)
    lake.properties = {"type": "none-of-these"}
    with pytest.raises(ConfigError, match="cannot open the Iceberg catalog: "):
        lake.commit(0)


@pytest.mark.parametrize(("kind", "library"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_a_library_that_is_missing(
    kind: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, library, None)
    for name in [name for name in sys.modules if name.startswith(f"{library}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    expected = rf"landing\.format = {kind} needs {library}: pip install 'penstock\[{kind}\]'"
    with pytest.raises(MissingDependencyError, match=expected):
        Lake(kind, tmp_path).register()


class Failing:
    """A patch that makes one call of a library fail, before or after its effect."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, owner: Any, names: tuple[str, ...], effect: str
    ) -> None:
        self.count, self.at = 0, -1
        self._effect = effect
        for name in names:
            plain = inspect.getattr_static(owner, name)
            is_bound = isinstance(plain, (classmethod, staticmethod))
            call = getattr(owner, name) if is_bound else plain
            monkeypatch.setattr(
                owner, name, staticmethod(self._counted(call)) if is_bound else self._counted(call)
            )

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            fails = self.count == self.at
            if fails and self._effect == "before":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            found = call(*args, **kwargs)
            if fails:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return found

        return counted

    def arm(self, at: int) -> None:
        self.count, self.at = 0, at


LIBRARIES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "delta": (
        DeltaTable,
        ("create", "transaction_version", "create_write_transaction", "schema", "metadata"),
    ),
    "iceberg": (
        SqlCatalog,
        (
            "load_table",
            "create_namespace_if_not_exists",
            "create_table_transaction",
            "commit_table",
            "_write_metadata",
        ),
    ),
}


@pytest.mark.parametrize("effect", ["before", "after"])
@pytest.mark.parametrize("batch", [0, 1])
def test_a_call_of_the_library_that_fails_is_taken_up(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, effect: str, batch: int
) -> None:
    """Each call fails once, before or after its effect; a retry leaves each batch in the table once."""
    failing = Failing(monkeypatch, *LIBRARIES[lake.kind], effect)
    first, failures = 0, 0
    while failing.count >= first:
        first += 1
        table = Lake(lake.kind, tmp_path / f"{first}")
        table.table.root.mkdir(parents=True)
        for before in range(batch):
            table.commit(before)
        failing.arm(first)
        try:
            table.commit(batch)
        except (StorageError, ConfigError):
            failures += 1
            failing.at = -1
            table.commit(batch)
        reached = failing.count
        failing.at = -1
        table.commit(batch + 1)
        expected = [10 * number + each for number in range(batch + 2) for each in (0, 1)]
        assert table.numbers() == expected, first
        failing.count = reached
    assert failures >= 3
