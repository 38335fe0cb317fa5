"""Tests of landing topics in all table formats: each record once; the table itself stores the offsets."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

from lake.places import KINDS, land, place, polled
from lake.s3_server import Store
from penstock import Producer, write_topic
from penstock.client.blocking.admin import Admin
from penstock.errors import ConfigError, StorageError
from penstock.lake.contract import OtherWriterError, Positions
from penstock.lake.kinds import iceberg_upkeep as upkeep
from penstock.lake.lander import Lander, LandSettings
from penstock.lake.shapes import ShapeSettings

JSON = ShapeSettings("json")


def fill(servers: str, first: int, count: int) -> None:
    rows = range(first, first + count)
    values = [b"no JSON" if i % 50 == 7 else json.dumps({"n": i, "s": "x" * (i % 3)}).encode() for i in rows]
    keys = [b"k%d" % (i % 10) for i in rows]
    write_topic(pa.table({"key": keys, "value": values}), "orders", bootstrap_servers=servers)


@pytest.mark.parametrize("kind", KINDS)
def test_each_record_is_landed_once(kind: str, store: Store, servers: str, tmp_path: Path) -> None:
    fill(servers, 0, 200)
    there = place(kind, store, tmp_path)
    assert land(there, servers, JSON).written.rows == 196
    assert land(there, servers, JSON).written.commits == 0
    fill(servers, 200, 100)
    again = land(there, servers, JSON)
    assert (again.written.rows, again.dead, again.lag) == (98, 2, 0)
    rows = there.rows()
    assert sorted(rows.column("n").to_pylist()) == [i for i in range(300) if i % 50 != 7]
    assert sorted(rows.column("offset").to_pylist()) == [i for i in range(300) if i % 50 != 7]
    dead = there.rows(dead=True).sort_by("offset").to_pylist()
    assert [row["offset"] for row in dead] == [i for i in range(300) if i % 50 == 7]
    assert dead[0]["value"] == b"no JSON"
    assert dead[0]["reason"] == "the value is no JSON object"
    state = there.table().state()
    assert state.positions is not None
    assert (state.positions.offsets, state.rows, state.positions.batch) == ({0: 300}, 294, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_two_writers_of_one_name_are_told_apart(
    kind: str, store: Store, servers: str, tmp_path: Path
) -> None:
    fill(servers, 0, 20)
    there = place(kind, store, tmp_path)
    settings = LandSettings("orders", servers, JSON)
    with Lander(settings, there.table(), there.dead) as slow:
        slow._take(polled(slow))
        land(there, servers, JSON)
        with pytest.raises(OtherWriterError, match="another process writes into"):
            slow.run(follow=False)
    assert there.rows().num_rows == 19
    state = there.table().state()
    assert (state.files, state.rows) == (1, 19)
    named = {name for name in there.files() if "dead" not in name}
    assert len(named) == 1


@pytest.mark.parametrize("kind", ["directory", "object", "delta", "iceberg"])
def test_a_topic_that_was_created_anew_is_noticed(
    kind: str, store: Store, servers: str, tmp_path: Path
) -> None:
    fill(servers, 0, 10)
    there = place(kind, store, tmp_path)
    land(there, servers, JSON)
    with Admin(servers) as admin:
        admin.delete_topics(["orders"])
    fill(servers, 0, 30)
    with pytest.raises(ConfigError, match="deleted and created anew"):
        land(there, servers, JSON)
    assert there.rows().num_rows == 9


@pytest.mark.parametrize("kind", ["object", "iceberg"])
def test_records_that_were_removed_unread_are_no_silence(
    kind: str, store: Store, servers: str, tmp_path: Path
) -> None:
    fill(servers, 0, 5)
    there = place(kind, store, tmp_path)
    land(there, servers, JSON)
    fill(servers, 10, 20)
    with Admin(servers) as admin:
        admin.delete_records({("orders", 0): 15})
    with pytest.raises(ConfigError, match="removed before they were read"):
        land(there, servers, JSON)
    assert land(there, servers, JSON, takes_losses=True).written.rows == 10


@pytest.mark.parametrize("kind", ["object", "delta", "iceberg"])
def test_partitions_that_come_later_are_landed_whole(
    kind: str, store: Store, servers: str, tmp_path: Path
) -> None:
    fill(servers, 0, 5)
    there = place(kind, store, tmp_path)
    land(there, servers, JSON)
    with Admin(servers) as admin:
        admin.create_partitions("orders", 3)
    fill(servers, 10, 40)
    land(there, servers, JSON)
    values = there.rows().column("n").to_pylist()
    assert sorted(values) == [*range(5), *range(10, 50)]


def test_only_what_is_committed_is_landed(store: Store, servers: str, tmp_path: Path) -> None:
    there = place("iceberg", store, tmp_path)
    with Producer(servers, transactional_id="t") as producer:
        for part in range(4):
            producer.begin_transaction()
            producer.send("orders", b'{"n": %d}' % part)
            if part % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    # The last offsets are an aborted record and markers, behind which the end is.
    assert land(there, servers, JSON).lag == 0
    assert sorted(there.rows().column("n").to_pylist()) == [0, 2]
    assert land(there, servers, JSON).written.commits == 0


def test_a_record_that_does_not_fit_ends_a_landing_without_dead_letters(
    store: Store, servers: str, tmp_path: Path
) -> None:
    fill(servers, 0, 20)
    there = place("iceberg", store, tmp_path)
    with (
        Lander(LandSettings("orders", servers, JSON), there.table()) as lander,
        pytest.raises(StorageError, match="offset 7 of orders-0 does not fit"),
    ):
        lander.run(follow=False)
    assert there.table().positions() is None


def test_a_store_without_conditional_writes_is_refused(store: Store, servers: str, tmp_path: Path) -> None:
    from penstock.lake.credentials import StoreOptions
    from penstock.lake.kinds.objects import Objects

    fill(servers, 0, 3)
    store.has_conditions = False
    with pytest.raises(StorageError, match="the store ignores conditions"):
        land(place("object", store, tmp_path), servers, JSON)
    with pytest.raises(ConfigError, match="HDFS has no request that creates a file whole"):
        Objects("hdfs://node/orders", {})
    with pytest.raises(ConfigError, match="ftp:// is no store of tables"):
        Objects("ftp://node/orders", StoreOptions({}).values())


@pytest.mark.parametrize("kind", ["delta", "iceberg", "delta-s3", "iceberg-s3"])
def test_a_table_is_tidied(kind: str, store: Store, servers: str, tmp_path: Path) -> None:
    there = place(kind, store, tmp_path)
    for part in range(3):
        fill(servers, 10 * part, 7)
        land(there, servers, JSON)
    assert there.table().state().files == 3
    done = there.table().tidy(small_bytes=1 << 20, keep_snapshots_s=0, orphan_s=0)
    assert (done.compacted_files, done.compacted_into) == (3, 1)
    assert done.orphans >= 3
    assert sum("dead" not in name for name in there.files()) == 1
    assert sorted(there.rows().column("n").to_pylist()) == sorted([*range(7), *range(10, 17), *range(20, 27)])
    # The positions outlive their snapshots.
    assert land(there, servers, JSON).written.commits == 0
    fill(servers, 30, 3)
    assert land(there, servers, JSON).written.rows == 3


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_files_put_together_have_the_size_that_is_asked_for(
    kind: str, store: Store, servers: str, tmp_path: Path
) -> None:
    there = place(kind, store, tmp_path)
    noise = random.Random(kind)
    for _ in range(9):
        text = noise.randbytes(20_000).hex()
        write_topic(
            pa.table({"value": [json.dumps({"s": text}).encode()]}), "orders", bootstrap_servers=servers
        )
        land(there, servers, JSON)
    before = there.table().state()
    each = before.size_bytes // 9
    asked = 4 * each + each // 2
    done = there.table(file_bytes=asked).tidy(small_bytes=2 * each, keep_snapshots_s=0, orphan_s=0)
    assert (done.compacted_files, done.compacted_into) == (8, 2)
    after = there.table().state()
    assert after.files == 3
    assert after.rows == 9
    sizes = sorted(Path(name).stat().st_size for name in there.files())
    assert [0.75 * asked < size <= asked for size in sizes] == [False, True, True]


def test_files_are_put_together_while_others_append(store: Store, servers: str, tmp_path: Path) -> None:
    there = place("iceberg", store, tmp_path)
    for part in range(3):
        fill(servers, 10 * part, 7)
        land(there, servers, JSON)
    table = there.table()
    tidied = upkeep._put_together

    def slowly(*words: object) -> list[object]:
        made: list[object] = tidied(*words)
        fill(servers, 30, 7)
        land(there, servers, JSON)
        return made

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(upkeep, "_put_together", slowly)
        done = table.tidy(small_bytes=1 << 20, keep_snapshots_s=0, orphan_s=0)
    assert (done.compacted_files, done.compacted_into) == (3, 1)
    assert there.table().state().files == 2
    expected = [10 * part + n for part in range(4) for n in range(7)]
    assert sorted(there.rows().column("n").to_pylist()) == expected


def test_files_that_others_replace_are_not_put_together(store: Store, servers: str, tmp_path: Path) -> None:
    there = place("iceberg", store, tmp_path)
    for part in range(3):
        fill(servers, 10 * part, 7)
        land(there, servers, JSON)
    tidied = upkeep._put_together

    def slowly(*words: object) -> list[object]:
        made: list[object] = tidied(*words)
        with pytest.MonkeyPatch.context() as as_before:
            as_before.setattr(upkeep, "_put_together", tidied)
            assert there.table().tidy(small_bytes=1 << 20, keep_snapshots_s=9, orphan_s=9).compacted_into == 1
        return made

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(upkeep, "_put_together", slowly)
        done = there.table().tidy(small_bytes=1 << 20, keep_snapshots_s=0, orphan_s=9)
    assert (done.compacted_files, done.compacted_into) == (0, 0)
    assert len(there.files()) == 4  # three that are young orphans, and the other one's
    assert len(there.rows()) == 21


def test_positions_are_read_as_they_were_written() -> None:
    found = Positions("orders", "id", {0: 5, 11: 7}, 3)
    assert Positions.from_json(found.to_json()) == found
