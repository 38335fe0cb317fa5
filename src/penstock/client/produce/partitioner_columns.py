"""Partitioners for whole columns of keys, compiled. They return the partitions that `partitioner` returns.

They take a few nanoseconds for each key. This module needs numpy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.client.config import Partitioner
from penstock.client.produce.partitioner import MASK32, MURMUR2_M, MURMUR2_SEED
from penstock.records.columns import NO_BYTES, BytesColumn
from penstock.records.kernels.compiled import Bytes, Int32s, Ints, byte_at, kernel

UNDECIDED = -1


def partitions_by_murmur2(keys: BytesColumn, count: int, *, null_is_empty: bool) -> Int32s:
    """Return the partition of every key as Java's client computes it.

    A null key gets `UNDECIDED`, or the partition of an empty key if `null_is_empty`.
    """
    partitions = np.empty(len(keys), dtype=np.int32)
    has_nulls = keys.validity is not None and not null_is_empty
    validity = keys.validity if has_nulls and keys.validity is not None else NO_BYTES
    data, ends = keys.data[:], keys.offsets[:]
    for array in (data, ends, validity := validity[:]):
        array.flags.writeable = False
    _murmur2_partitions(data, ends, validity, keys.validity_offset, count, partitions)
    return partitions


def partitions_by_call(keys: BytesColumn | None, rows: int, count: int, partitioner: Partitioner) -> Int32s:
    """Return the partition of every row as the function `partitioner` returns it; `UNDECIDED` for None."""
    partitions = np.full(rows, UNDECIDED, dtype=np.int32)
    for row in range(rows):
        chosen = partitioner(None if keys is None else keys[row], count)
        if chosen is not None:
            partitions[row] = chosen
    return partitions


def spread(partitions: Int32s, available: Sequence[int], rows_each: int, first: int) -> int:
    """Assign rows that are `UNDECIDED` to the `available` partitions in turn, `rows_each` rows at a time.

    `first` is the index in `available` of the first partition to use. Returns the index for the next call.
    """
    return _fill_turns(partitions, np.asarray(available, dtype=np.int32), max(1, rows_each), first)


def rows_by_partition(partitions: Int32s, count: int) -> list[tuple[int, Ints | None]]:
    """Return each partition that has rows, with the indices of its rows.

    If one partition has all rows, the result has None instead of their indices.
    """
    first = int(partitions[0])
    if bool((partitions == first).all()):
        return [(first, None)]
    order: Ints = np.empty(len(partitions), dtype=np.int64)
    ends: Ints = np.zeros(count, dtype=np.int64)
    if not _order_rows(np.ascontiguousarray(partitions), ends, order):
        raise ValueError(f"a partition is not within 0 to {count - 1}")
    starts = [0, *ends[:-1].tolist()]
    return [
        (partition, order[start:end])
        for partition, (start, end) in enumerate(zip(starts, ends.tolist(), strict=True))
        if end > start
    ]


@kernel
def _fill_turns(partitions: Int32s, available: Int32s, rows_each: int, first: int) -> int:
    """Assign `UNDECIDED` rows to available partitions in turn: the compiled loop of `spread`."""
    place, left, found = first % len(available), rows_each, 0
    for row in range(len(partitions)):
        if partitions[row] == UNDECIDED:
            if left == 0:
                place, left = (place + 1) % len(available), rows_each
            partitions[row] = available[place]
            left -= 1
            found = 1
    return (place + 1) % len(available) if found else first


@kernel
def _order_rows(partitions: Int32s, ends: Ints, order: Ints) -> bool:
    """Sort row indices by partition into `order`; set each item of `ends` to where its partition's rows end.

    `ends` has a zero for each partition. Returns False if a partition number is outside `ends`.
    """
    for row in range(len(partitions)):
        partition = int(partitions[row])
        if partition < 0 or partition >= len(ends):
            return False
        ends[partition] += 1
    before = 0
    for partition in range(len(ends)):
        rows = ends[partition]
        ends[partition] = before
        before += rows
    for row in range(len(partitions)):
        partition = int(partitions[row])
        order[ends[partition]] = row
        ends[partition] += 1
    return True


@kernel
def _murmur2_partitions(
    data: Bytes, ends: Int32s, validity: Bytes, first_bit: int, count: int, partitions: Int32s
) -> None:
    """Write murmur2 of every key, without its sign, modulo `count`. An empty `validity` means no nulls."""
    for row in range(len(partitions)):
        if len(validity):
            bit = row + first_bit
            if (byte_at(validity, bit >> 3) >> (bit & 7)) & 1 == 0:
                partitions[row] = UNDECIDED
                continue
        position = int(ends[row])
        end = int(ends[row + 1])
        h = MURMUR2_SEED ^ (end - position)
        while end - position >= 4:
            k = (
                byte_at(data, position)
                | byte_at(data, position + 1) << 8
                | byte_at(data, position + 2) << 16
                | byte_at(data, position + 3) << 24
            )
            k = (k * MURMUR2_M) & MASK32
            k = ((k ^ (k >> 24)) * MURMUR2_M) & MASK32
            h = ((h * MURMUR2_M) & MASK32) ^ k
            position += 4
        if position < end:
            shift = 0
            while position < end:
                h ^= byte_at(data, position) << shift
                shift += 8
                position += 1
            h = (h * MURMUR2_M) & MASK32
        h = ((h ^ (h >> 13)) * MURMUR2_M) & MASK32
        h ^= h >> 15
        partitions[row] = (h & 0x7FFFFFFF) % count
