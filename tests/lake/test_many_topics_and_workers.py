"""Tests of one process that lands many topics, and of several group members that land one topic.

Each record is landed once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lake.places import Place, place
from lake.s3_server import Store
from penstock import Admin, write_topic
from penstock.errors import ConfigError
from penstock.lake import shared_reading
from penstock.lake.contract import OtherWriterError, OvertakenError, Positions, TableSettings, on_top
from penstock.lake.credentials import StoreOptions
from penstock.lake.fleet import Fleet, TopicTables
from penstock.lake.lander import Lander, LandSettings
from penstock.lake.targets import dead_letters_of, dead_settings, open_table

PARTITIONS = 4


def counted(first: int, rows: int) -> pa.Table:
    return pa.table(
        {
            "value": [b"%d" % n for n in range(first, first + rows)],
            "partition": pa.array([n % PARTITIONS for n in range(first, first + rows)], pa.int32()),
        }
    )


def opened(there: Place, *, shares: bool) -> Callable[[str], TopicTables]:
    """Return a function that opens the tables of a topic, each at its own location."""

    def tables(topic: str) -> TopicTables:
        where = there.where.replace("orders", topic)
        settings = TableSettings(topic, shares=shares)
        options = StoreOptions(there.options)
        return TopicTables(
            open_table(where, topic, settings, options),
            lambda: open_table(dead_letters_of(where), topic, dead_settings(settings), options),
        )

    return tables


def values_of(there: Place, topic: str) -> list[int]:
    rows = replace(there, where=there.where.replace("orders", topic)).rows()
    return sorted(map(int, rows.column("value").to_pylist()))


def test_topics_share_a_consumer_and_have_tables_of_their_own(
    servers: str, store: Store, tmp_path: Path
) -> None:
    there = place("directory", store, tmp_path)
    topics = [f"t{number}" for number in range(12)]
    for number, topic in enumerate(topics):
        write_topic(pa.table({"value": [b"%d" % number] * (number + 1)}), topic, bootstrap_servers=servers)
    settings = LandSettings("", servers, commit_every_s=3600)
    for _ in range(2):
        with Fleet(settings, topics, opened(there, shares=False)) as fleet:
            fleet.run(follow=False)
    for number, topic in enumerate(topics):
        assert values_of(there, topic) == [number] * (number + 1)
    assert fleet.written.rows == 0
    write_topic(pa.table({"value": [b"7"]}), "t7", bootstrap_servers=servers)
    seen: list[str] = []
    with Fleet(settings, topics, opened(there, shares=False)) as fleet:
        fleet.run(follow=False, committed=lambda lander: seen.append(lander.positions.topic))
        assert fleet.records == 1
    assert seen == ["t7"]
    with pytest.raises(ConfigError, match="no topic fits"):
        Fleet(settings, [], opened(there, shares=False))


def test_a_commit_of_one_worker_goes_on_top_of_anothers() -> None:
    before = Positions("t", "id", {0: 5, 1: 5, 2: 0}, 3)
    after = replace(before, offsets={0: 9, 1: 5, 2: 0}, batch=4)
    found = Positions("t", "id", {0: 5, 1: 8, 2: 0, 3: 1}, 6)
    merged = on_top(found, before, after)
    assert merged is not None
    assert (merged.offsets, merged.batch) == ({0: 9, 1: 8, 2: 0, 3: 1}, 7)
    assert merged.token == after.token
    # Both have read partition 0; the topic is another one; there is no table any more.
    assert on_top(replace(found, offsets={0: 6}), before, after) is None
    assert on_top(replace(found, topic_id="other"), before, after) is None
    assert on_top(None, before, after) is None


@pytest.mark.parametrize("kind", ["object", "delta", "iceberg"])
def test_two_workers_commit_beside_each_other_and_never_the_same_records(
    kind: str, servers: str, store: Store, tmp_path: Path
) -> None:
    there = place(kind, store, tmp_path)
    with Admin(servers) as admin:
        admin.create_topic("orders", partitions=2)
        topic_id = admin.describe_topics(["orders"])[0].topic_id

    def rows(first: int, partition: int) -> pa.RecordBatch:
        return pa.record_batch(
            {"value": [b"%d" % first], "partition": pa.array([partition], pa.int32()), "offset": [0]}
        )

    tables = [there.table(shares=True) for _ in range(3)]
    begun = Positions("orders", topic_id, {0: 0, 1: 0}, -1)
    for number, table in enumerate(tables):
        assert table.positions() is None
        table.prepare(rows(0, 0).schema)
        table.write(rows(number, number % 2))
    first = replace(begun, offsets={0: 1, 1: 0}, batch=0, token="a" * 32)
    tables[0].commit(begun, first)
    second = replace(begun, offsets={0: 0, 1: 1}, batch=0, token="b" * 32)
    with pytest.raises(OvertakenError) as caught:
        tables[1].commit(begun, second)
    merged = on_top(caught.value.found, begun, second)
    assert merged is not None
    assert caught.value.found is not None
    # The files are those that were written before the first attempt.
    assert tables[1].commit(caught.value.found, merged).rows == 1
    with pytest.raises(OvertakenError) as caught:
        tables[2].commit(begun, replace(begun, offsets={0: 1, 1: 0}, batch=0))
    assert on_top(caught.value.found, begun, replace(begun, offsets={0: 1, 1: 0}, batch=0)) is None
    tables[2].abandon()
    assert values_of(there, "orders") == [0, 1]
    position = there.table().positions()
    assert position is not None
    assert (position.offsets, position.batch) == ({0: 1, 1: 1}, 1)


@pytest.mark.parametrize("kind", ["object"])
def test_workers_of_a_group_land_each_record_once(
    kind: str, servers: str, store: Store, tmp_path: Path
) -> None:
    there = place(kind, store, tmp_path)
    with Admin(servers) as admin:
        admin.create_topic("orders", partitions=PARTITIONS)
    write_topic(counted(0, 200), "orders", bootstrap_servers=servers)
    settings = LandSettings("", servers, commit_every_s=0.01)
    failures: list[BaseException] = []
    enough, early = threading.Event(), threading.Event()

    def done() -> bool:
        position = there.table().positions()
        return position is not None and sum(position.offsets.values()) >= 400

    def work(stop: threading.Event, fleet: Fleet) -> None:
        try:
            with fleet:
                fleet.run(follow=True, stopped=lambda: stop.is_set() or enough.is_set())
        except BaseException as error:
            failures.append(error)
            enough.set()

    def begin(stop: threading.Event) -> tuple[threading.Thread, Fleet]:
        fleet = Fleet(settings, ["orders"], opened(there, shares=True), group="landers")
        thread = threading.Thread(target=work, args=(stop, fleet))
        thread.start()
        return thread, fleet

    first, second = begin(early), begin(enough)
    while not enough.is_set() and not there.table().positions():
        enough.wait(0.05)
    # The first worker leaves, the second one and a third one go on.
    early.set()
    write_topic(counted(200, 200), "orders", bootstrap_servers=servers)
    third = begin(enough)
    while not enough.is_set() and not done():
        enough.wait(0.05)
    enough.set()
    for thread, _ in (first, second, third):
        thread.join()
    assert not failures
    assert values_of(there, "orders") == [*range(400)]


def test_a_group_and_a_single_writer_are_told_apart(servers: str, store: Store, tmp_path: Path) -> None:
    there = place("object", store, tmp_path)
    with Admin(servers) as admin:
        admin.create_topic("orders", partitions=PARTITIONS)
    write_topic(counted(0, 40), "orders", bootstrap_servers=servers)
    alone = Lander(LandSettings("orders", servers), there.table())
    with alone:
        # Another process lands everything between this one's look at the table and its commit.
        with Lander(LandSettings("orders", servers), there.table()) as other:
            other.run(follow=False)
        with pytest.raises(OtherWriterError):
            alone.run(follow=False)
    assert values_of(there, "orders") == [*range(40)]
    with pytest.raises(ConfigError, match="one writer for each name"):
        opened(place("directory", store, tmp_path), shares=True)("orders")
    fleet = Fleet(LandSettings("", servers), ["orders"], opened(there, shares=True), group="g")
    with fleet, pytest.raises(ConfigError, match="follow their topics"):
        fleet.run(follow=False)


@pytest.mark.parametrize(
    ("kind", "group"), [("directory", None), ("delta", "landers"), ("iceberg", "landers")]
)
def test_partitions_that_are_added_are_landed_meanwhile(
    kind: str,
    group: str | None,
    servers: str,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_reading, "LOOK_EVERY_S", 0.05)
    there = place(kind, store, tmp_path)
    if kind == "delta":
        there = replace(there, where=f"delta://{tmp_path}/orders")
    for topic in ("orders", "other"):
        write_topic(pa.table({"value": [b"0", b"1"]}), topic, bootstrap_servers=servers)
    later = pa.table({"value": [b"2", b"3"], "partition": pa.array([2, 2], pa.int32())})
    settings = LandSettings("", servers, commit_every_s=0.01, config={"metadata.max.age.ms": 100})
    seen: set[str] = set()

    def committed(lander: Lander) -> None:
        if lander.positions.topic == "orders" and not seen:
            with Admin(servers) as admin:
                admin.create_partitions("orders", 3)
            write_topic(later, "orders", bootstrap_servers=servers)
        seen.add(lander.positions.topic)

    def is_done(rows: int) -> bool:
        return "orders" in fleet.landers and sum(fleet.landers["orders"].positions.offsets.values()) >= rows

    opens = opened(there, shares=group is not None)
    with Fleet(settings, ["orders", "other"], opens, group=group) as fleet:
        fleet.run(follow=True, stopped=lambda: is_done(4) and len(seen) == 2, committed=committed)
    assert values_of(there, "orders") == [0, 1, 2, 3]
    assert values_of(there, "other") == [0, 1]
    # Started again, the table says where those are.
    write_topic(later, "orders", bootstrap_servers=servers)
    with Fleet(settings, ["orders", "other"], opens, group=group) as fleet:
        fleet.run(follow=True, stopped=lambda: is_done(6))
    assert values_of(there, "orders") == [0, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("kind", ["object", "delta", "iceberg"])
def test_offsets_of_partitions_between_may_be_missing(kind: str, store: Store, tmp_path: Path) -> None:
    table = place(kind, store, tmp_path).table(shares=True)
    rows = pa.record_batch({"value": [b"1"]})
    table.prepare(rows.schema)
    table.write(rows)
    begun = Positions("orders", "BZCV756mTQS0BWDJk0Rv_g", {0: 5, 1: 7, 4: 0}, -1)
    table.commit(begun, replace(begun, offsets={0: 6, 4: 3}, batch=0, token="a" * 32))
    found = table.positions()
    assert found is not None
    assert (found.offsets[0], found.offsets[4]) == (6, 3)


def test_a_topic_that_is_created_anew_while_it_is_landed_is_said(
    servers: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_reading, "LOOK_EVERY_S", 3600)
    there = place("directory", store, tmp_path)
    write_topic(pa.table({"value": [b"0"]}), "orders", bootstrap_servers=servers)
    settings = LandSettings("", servers, commit_every_s=0.01, config={"metadata.max.age.ms": 100})

    def anew(lander: Lander) -> None:
        with Admin(servers) as admin:
            admin.delete_topics(["orders"])
            admin.create_topic("orders")

    for many in (True, False):
        expected = pytest.raises(ConfigError, match="Land the present one under another --name")
        if many:
            with Fleet(settings, ["orders"], opened(there, shares=False)) as fleet, expected:
                fleet.run(follow=True, committed=anew)
        else:
            place_anew = replace(there, where=f"{there.where}-alone")
            with Lander(replace(settings, topic="orders"), place_anew.table()) as lander, expected:
                lander.run(follow=True, committed=anew)
        write_topic(pa.table({"value": [b"0"]}), "orders", bootstrap_servers=servers)
