"""Partitioners for whole columns of keys, compiled: the same results as those of `partitioner`.

A key takes a few nanoseconds. This module needs numpy.
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
    """Return the partition of every key as a Python function returns it; `UNDECIDED` for None."""
    partitions = np.full(rows, UNDECIDED, dtype=np.int32)
    for row in range(rows):
        chosen = partitioner(None if keys is None else keys[row], count)
        if chosen is not None:
            partitions[row] = chosen
    return partitions


def spread(partitions: Int32s, available: Sequence[int], rows_each: int, first: int) -> int:
    """Replace `UNDECIDED`: `rows_each` such rows get one partition, the next as many get the next.

    `first` is the index in `available` to begin with; returns the index for the next call.
    """
    undecided: Ints = np.flatnonzero(partitions == UNDECIDED)
    if not len(undecided):
        return first
    turns = np.arange(len(undecided)) // max(1, rows_each) + first
    partitions[undecided] = np.asarray(available, dtype=np.int32)[turns % len(available)]
    return int(turns[-1] + 1) % len(available)


def rows_by_partition(partitions: Int32s, count: int) -> list[tuple[int, Ints | None]]:
    """Return each partition with its rows in order; None instead of rows if one partition has all."""
    first = int(partitions[0])
    if bool((partitions == first).all()):
        return [(first, None)]
    # Numbers of 16 bits are sorted by radix: several times as fast as by comparing.
    narrow = partitions.astype(np.int16) if count <= 1 << 15 else partitions
    order = np.argsort(narrow, kind="stable")
    ends = np.cumsum(np.bincount(partitions, minlength=count)).tolist()
    starts = [0, *ends[:-1]]
    return [
        (partition, order[start:end])
        for partition, (start, end) in enumerate(zip(starts, ends, strict=True))
        if end > start
    ]


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
