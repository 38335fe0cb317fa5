from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.produce import partitioner_columns
from penstock.client.produce.partitioner import (
    PARTITIONERS,
    StickyChoice,
    fnv1a,
    murmur2,
    plain_fnv1a,
    plain_murmur2,
)
from penstock.client.produce.partitioner_columns import (
    UNDECIDED,
    partitions_by_murmur2,
    rows_by_partition,
    spread,
)
from penstock.records.arrow import from_arrow
from penstock.records.kernels.compiled import KERNELS

JAVA = [
    # key, murmur2, modulo 6, modulo 12 (protocol facts, section 9)
    (b"", 275646681, 3, 9),
    (b"21", -973932308, 0, 0),
    (b"foobar", -790332482, 0, 6),
    (b"a-little-bit-long-string", -985981536, 2, 8),
    (b"a-little-bit-longer-string", -1486304829, 5, 11),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971, 5, 5),
    (b"abc", 479470107, 3, 3),
    (b"key", -1079937367, 1, 1),
]
CRC_MOD_6 = {b"": 0, b"21": 4, b"foobar": 5, b"a-little-bit-long-string": 0, b"abc": 0, b"key": 1}


@pytest.mark.parametrize(("key", "hashed", "of_6", "of_12"), JAVA)
def test_murmur2_is_javas(key: bytes, hashed: int, of_6: int, of_12: int) -> None:
    assert murmur2(key) == hashed
    for name in ("murmur2", "murmur2_random"):
        assert (PARTITIONERS[name](key, 6), PARTITIONERS[name](key, 12)) == (of_6, of_12)


@pytest.mark.parametrize(("key", "of_6"), CRC_MOD_6.items())
def test_consistent_is_a_crc(key: bytes, of_6: int) -> None:
    assert PARTITIONERS["consistent"](key, 6) == of_6


@given(st.binary(max_size=40))
def test_hashes_are_the_same_compiled_and_in_python(key: bytes) -> None:
    assert murmur2(key) == plain_murmur2(key)
    assert fnv1a(key) == plain_fnv1a(key)


def test_fnv1a_is_never_negative() -> None:
    assert all(0 <= fnv1a(b"%d" % n) < 1 << 31 for n in range(2000))


@pytest.mark.parametrize(
    ("name", "null", "empty"),
    [
        ("murmur2_random", None, 3),
        ("murmur2", 3, 3),
        ("consistent_random", None, None),
        ("consistent", 0, 0),
        ("fnv1a_random", None, fnv1a(b"") % 6),
        ("fnv1a", fnv1a(b"") % 6, fnv1a(b"") % 6),
    ],
)
def test_no_key_and_an_empty_one(name: str, null: int | None, empty: int | None) -> None:
    assert (PARTITIONERS[name](None, 6), PARTITIONERS[name](b"", 6)) == (null, empty)


@contextmanager
def uncompiled() -> Iterator[None]:
    """Replace the compiled partitioner functions with their Python source for the length of a block."""
    with pytest.MonkeyPatch.context() as patch:
        for kernel in KERNELS:
            if kernel.__module__ == partitioner_columns.__name__:
                patch.setattr(partitioner_columns, kernel.__name__, kernel)
        yield


KEYS = st.lists(st.one_of(st.none(), st.binary(max_size=40)), max_size=60)


@given(keys=KEYS, count=st.integers(1, 50), skipped=st.integers(0, 5), plain=st.booleans())
def test_columns_go_where_single_keys_go(
    keys: list[bytes | None], count: int, skipped: int, plain: bool
) -> None:
    table = pa.record_batch({"key": pa.array([b"skipped"] * skipped + keys, pa.binary())}).slice(skipped)
    column = from_arrow(table).key
    assert column is not None
    with uncompiled() if plain else nullcontext():
        found = partitions_by_murmur2(column, count, null_is_empty=False).tolist()
        as_empty = partitions_by_murmur2(column, count, null_is_empty=True).tolist()
    single = [PARTITIONERS["murmur2_random"](key, count) for key in keys]
    assert found == [UNDECIDED if partition is None else partition for partition in single]
    assert as_empty == [PARTITIONERS["murmur2"](key, count) for key in keys]


@given(
    wanted=st.lists(st.integers(-1, 4), min_size=1, max_size=50),
    rows_each=st.integers(1, 9),
    first=st.integers(0, 2),
    plain=st.booleans(),
)
def test_spreading_decides_what_is_undecided(
    wanted: list[int], rows_each: int, first: int, plain: bool
) -> None:
    import numpy as np

    partitions = np.array(wanted, dtype=np.int32)
    undecided = wanted.count(UNDECIDED)
    with uncompiled() if plain else nullcontext():
        following = spread(partitions, [0, 2, 4], rows_each, first)
        groups = rows_by_partition(partitions, 5)
    last_turn = (undecided - 1) // rows_each + first
    assert following == ((last_turn + 1) % 3 if undecided else first)
    for before, after in zip(wanted, partitions.tolist(), strict=True):
        assert after == before if before >= 0 else after in (0, 2, 4)
    grouped = {p: list(range(len(wanted))) if rows is None else rows.tolist() for p, rows in groups}
    assert grouped == {
        p: [row for row, q in enumerate(partitions.tolist()) if q == p]
        for p in sorted(set(partitions.tolist()))
    }


@pytest.mark.parametrize("wrong", [-1, 2, 1 << 30])
def test_rows_of_partitions_that_are_not_there_have_no_order(wrong: int) -> None:
    import numpy as np

    with pytest.raises(ValueError, match="not within 0 to 1"):
        rows_by_partition(np.array([0, wrong, 1], dtype=np.int32), 2)


def test_spreading_goes_round() -> None:
    import numpy as np

    partitions = np.full(7, UNDECIDED, dtype=np.int32)
    assert spread(partitions, [5, 6], 2, 1) == 1
    assert partitions.tolist() == [6, 6, 5, 5, 6, 6, 5]


def test_unkeyed_records_stay_together_for_a_batch() -> None:
    sticky = StickyChoice(1000, random.Random(1).random)
    partitions = [0, 1, 2]
    chosen = [sticky.choose(partitions, 100) for _ in range(3000)]
    runs = [chosen[i : i + 10] for i in range(0, 3000, 10)]
    assert all(len(set(run)) == 1 for run in runs)
    assert all(a != b for a, b in zip(chosen[9::10], chosen[10::10], strict=False))
    assert min(Counter(chosen).values()) > 800


def test_a_partition_that_lost_its_leader_is_left() -> None:
    sticky = StickyChoice(1000, random.Random(1).random)
    first = sticky.choose([0, 1, 2], 1)
    rest = [p for p in (0, 1, 2) if p != first]
    assert sticky.choose(rest, 1) in rest
    assert sticky.choose([first], 1) == first
