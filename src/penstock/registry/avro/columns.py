"""Reads Avro values of one writer's schema into Arrow columns; collects reasons for undecodable rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from penstock.errors import DecodeError
from penstock.records.kernels.compiled import Bytes, Ints
from penstock.registry.avro.program import AvroProgram, arrow_type, compile_program
from penstock.registry.avro.schema import parse_avro
from penstock.registry.columns.avro_kernel import DEPTH_MAX, read_avro
from penstock.registry.columns.gathering import Gathering
from penstock.registry.columns.nodes import LoopStore
from penstock.registry.columns.span_kernels import REASONS
from penstock.registry.schemas import Schema

ROWS = 1 << 13
"""The number of rows that are read before they are converted to Arrow arrays: so many fit into a CPU
cache.
"""

STORE_NUMBERS_MAX = 1 << 25
"""The capacity of a store, in 64-bit numbers, at which the rows read so far are converted to Arrow arrays. It
takes 256 MiB.
"""


def read_columns(
    program: AvroProgram, data: Bytes, starts: Ints, ends: Ints, reasons: Bytes
) -> tuple[pa.Array, Ints]:
    """Decode rows from bytes, and return their values and the indices of the decoded rows.

    Row `i` is ``data[starts[i] : ends[i]]``. The function sets ``reasons[i]`` to a code of `REASONS` if the
    row cannot be decoded.

    Raises:
        DecodeError: one row takes more memory than allowed, or a column more than an Arrow array can hold.
    """
    gathering = Gathering(program.root, len(starts))
    places: list[Ints] = []
    stack = np.zeros(DEPTH_MAX + 2, dtype=np.int64)
    row, count = 0, len(starts)
    store = LoopStore(program.layout, min(ROWS, count))
    while row < count:
        last = min(row + ROWS, count)
        store.clear()
        begin = row
        while row < last:
            row, full = read_avro(
                data,
                starts[:last],
                ends[:last],
                row,
                program.ops,
                program.tables,
                store.base,
                store.caps,
                store.group_of,
                store.numbers,
                store.filled,
                store.saved,
                stack,
                reasons,
            )
            if full >= 0:
                if store.size > STORE_NUMBERS_MAX:
                    if row == begin:
                        raise DecodeError("one value has more items than memory allows for a batch")
                    break
                store.grow(full)
        rows = begin + np.flatnonzero(reasons[begin:row] == 0)
        if len(rows):
            gathering.add(store, data)
            places.append(rows)
        if store.size > STORE_NUMBERS_MAX:  # the next rows may need other groups
            store = LoopStore(program.layout, min(ROWS, count))
    return gathering.array(), np.concatenate(places) if places else np.zeros(0, dtype=np.int64)


class AvroFormat:
    """The Avro implementation of `penstock.registry.decoding.ValueFormat`, with a reader's schema."""

    def __init__(self, schema: Schema, referenced: Mapping[str, Schema]) -> None:
        """Parse the reader's schema, with the schemas that it refers to.

        Raises:
            SchemaError: the text is not an Avro schema.
        """
        self._reader = parse_avro(schema.text, [each.text for each in referenced.values()])
        self.type = arrow_type(self._reader)

    def reading(self, writer: Schema, referenced: Mapping[str, Schema], path: tuple[int, ...]) -> AvroReading:
        """Return an object that reads the values of a writer's schema into columns of the reader's schema.

        Raises:
            SchemaError: the text is not an Avro schema, or cannot be resolved into the reader's schema.
        """
        parsed = parse_avro(writer.text, [each.text for each in referenced.values()])
        return AvroReading(compile_program(parsed, self._reader))


class AvroReading:
    """Reads Avro values of one writer's schema into columns of the reader's schema."""

    def __init__(self, program: AvroProgram) -> None:
        self._program = program

    def read(self, data: Bytes, starts: Ints, ends: Ints) -> tuple[pa.Array, Ints, Mapping[int, str]]:
        """Return (decoded values as an array, indices of their rows, a reason for each undecodable row)."""
        reasons = np.zeros(len(starts), dtype=np.uint8)
        array, rows = read_columns(self._program, data, starts, ends, reasons)
        dead = {int(row): REASONS[int(reasons[row])] for row in np.flatnonzero(reasons)}
        return array, rows, dead
