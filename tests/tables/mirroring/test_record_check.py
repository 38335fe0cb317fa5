"""Tests of comparing a copy with its source: equal, missing and different records."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from penstock import Admin, Broker, Producer
from penstock.errors import ConfigError
from penstock.tables.mirroring.record_check import PartitionCheck, check_copy
from penstock.tables.topic_mirror import TopicMirror
from tables.mirroring.test_group_moves import KEEP, PARTITIONS, Source, end_of, put_batch, records, to_end


@pytest.fixture
def old() -> Iterator[str]:
    with Broker(log_retention_ms=-1) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def new() -> Iterator[str]:
    with Broker(log_retention_ms=-1) as broker:
        yield broker.bootstrap_servers


def fill(address: str, count: int = 6) -> None:
    with Producer(address) as producer:
        for number in range(count):
            producer.send("t", b"%d" % number, key=b"k", partition=0, headers=[("h", b"1")]).result()


def copy(old: str, new: str, *, keep_offsets: bool = False) -> None:
    with TopicMirror("t", old, new, keep_offsets=keep_offsets) as mirror:
        to_end(mirror)


def counts(check: PartitionCheck) -> tuple[int, int, int, int, int]:
    return check.same, check.only_source, check.only_target, check.not_in_map, check.different


@pytest.mark.parametrize("keep_offsets", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_random_logs_are_the_same(seed: int, keep_offsets: bool, old: str, new: str) -> None:
    source = Source(old, random.Random(seed))
    for _ in range(3):
        source.grow()
        copy(old, new, keep_offsets=keep_offsets)
    source.grow()  # what is not copied yet is not missing
    with Admin(new) as admin:
        before = [len(part) for part in records(new)]
        assert end_of(admin, 0) >= before[0]
    found = check_copy("t", old, new, keep_offsets=keep_offsets)
    assert [counts(each) for each in found] == [(count, 0, 0, 0, 0) for count in before]


def test_what_retention_has_removed_is_no_difference(old: str, new: str) -> None:
    Source(old, random.Random(1))
    fill(old)
    copy(old, new)
    with Admin(old) as admin:
        admin.delete_records({("t", 0): 2})
    (first,) = check_copy("t", old, new)
    assert counts(first) == (4, 0, 2, 0, 0)
    with Admin(new) as admin:
        admin.delete_records({("t", 0): 3})
    (first,) = check_copy("t", old, new)
    assert counts(first) == (3, 1, 0, 0, 0)


def test_what_was_copied_before_there_was_a_map_is_counted(old: str, new: str) -> None:
    Source(old, random.Random(1))
    fill(old)
    with TopicMirror("t", old, new) as mirror:
        to_end(mirror)
    with Admin(new) as admin:
        admin.alter_group_offsets(mirror.name, {("t", 0): 6})
    fill(old)
    copy(old, new)
    (first,) = check_copy("t", old, new)
    assert (first.same, first.not_in_map) == (6, 6)


def test_differences_are_named(old: str, new: str) -> None:
    """The test fills a target that keeps offsets with records that differ from the source's."""
    Source(old, random.Random(1))
    fill(old)
    with Admin(new) as admin:
        admin.create_topic("t", partitions=PARTITIONS, config={KEEP: "true"})
    copy(old, new, keep_offsets=True)
    with Admin(new) as admin:
        (name,) = [group.group_id for group in admin.list_groups()]
        admin.delete_topics(["t"])
        admin.create_topic("t", partitions=PARTITIONS, config={KEEP: "true"})
        admin.alter_group_offsets(name, {("t", 0): 6})
    rows = [(b"k", b"other", (("h", b"1"),), 5), (b"x", b"3", (), 5)]
    put_batch(new, 0, rows, 1, [0, 2])
    (first,) = check_copy("t", old, new, keep_offsets=True)
    assert (first.same, first.different) == (0, 6)
    assert [(one.source_offset, one.target_offset, one.what) for one in first.differences] == [
        (0, 0, "is missing in the target"),
        (1, 1, "another value and timestamp"),
        (2, 2, "is missing in the target"),
        (3, 3, "another key and headers and timestamp"),
        (4, 4, "is missing in the target"),
        (5, 5, "is missing in the target"),
    ]


def test_records_of_others_in_the_target_are_found(old: str, new: str) -> None:
    Source(old, random.Random(1))
    fill(old, 2)
    copy(old, new)
    with Producer(new) as producer:
        producer.send("t", b"foreign", partition=0).result()
    fill(old, 2)
    copy(old, new)
    (first,) = check_copy("t", old, new)
    assert counts(first) == (4, 0, 0, 0, 1)
    assert first.differences == [(None, 3, "is not of the copy")]


def test_a_copy_that_there_is_not_cannot_be_compared(old: str, new: str) -> None:
    Source(old, random.Random(1))
    with pytest.raises(ConfigError, match="nothing was copied from t into t under the name none"):
        check_copy("t", old, new, name="none")
