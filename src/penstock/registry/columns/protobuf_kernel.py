"""The loop that reads Protobuf messages into columns, with tables of fields made from the schema.

Numbers are stored at ``store[base[column] + filled[group]]``, as in the Avro loop. Missing fields stay zero.
If a field is repeated, its last value counts; the parts of an embedded message are merged.
"""

from __future__ import annotations

from penstock.records.kernels.compiled import Bytes, Ints, byte_at, kernel, word_at
from penstock.registry.columns.avro_kernel import undo_row
from penstock.registry.columns.span_kernels import is_utf8, unsigned_varint

ENTRY = 12
"""The number of integers that describe one field in the table of fields. `NUMBER` and the following constants
are their indices.
"""

NUMBER, WIRE, KIND, COLUMN, GROUP, VALID, ITEMS, SIZES, FRAME, ONEOF, ONEOF_COUNT, PACKABLE = range(ENTRY)

VARINT64 = 0
INT32 = 1
UINT32 = 2
ZIGZAG = 3
BOOL = 4
FIXED64 = 5
FIXED32 = 6
TEXT = 7
BINARY = 8
MESSAGE = 9
WHOLE = 10
"""The field kind of a message that is stored as a span of bytes. Its fields are checked nevertheless."""

FRAME_NUMBERS = 4
"""The number of integers on the stack for each open message: its end, its table of fields, its list, and the
position to return to.
"""

DEPTH_MAX = 100
"""The greatest nesting depth of messages, as in Google's own parsers."""


@kernel
def entry_of(entries: Ints, first: int, count: int, hint: int, number: int) -> int:
    """Return the position of a field's entry among `count` entries sorted by field number, or -1."""
    if hint < count and entries[(first + hint) * ENTRY] == number:
        return hint
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if entries[(first + middle) * ENTRY] < number:
            low = middle + 1
        else:
            high = middle
    if low < count and entries[(first + low) * ENTRY] == number:
        return low
    return -1


@kernel
def scalar(data: Bytes, at: int, end: int, kind: int) -> tuple[int, int]:
    """Read a number from a field; return (number, position after the number or a negative reason code)."""
    if kind == FIXED64:
        if end - at < 8:
            return 0, -1
        return word_at(data, at), at + 8
    if kind == FIXED32:
        if end - at < 4:
            return 0, -1
        low = byte_at(data, at) | (byte_at(data, at + 1) << 8)
        return low | (byte_at(data, at + 2) << 16) | (byte_at(data, at + 3) << 24), at + 4
    raw, at = unsigned_varint(data, at, end)
    if kind == INT32:
        raw = ((raw & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
    elif kind == UINT32:
        raw = raw & 0xFFFFFFFF
    elif kind == ZIGZAG:
        raw = ((raw >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(raw & 1)
    elif kind == BOOL:
        raw = 1 if raw != 0 else 0
    return raw, at


@kernel
def skipped(data: Bytes, at: int, end: int, wire: int) -> int:
    """Return the position after an unknown field, or a negative reason code if it cannot be read."""
    if wire == 0:
        _, at = unsigned_varint(data, at, end)
        return at
    if wire == 2:
        size, at = unsigned_varint(data, at, end)
        if at < 0:
            return at
        return at + size if 0 <= size <= end - at else -1
    if wire == 1:
        return at + 8 if end - at >= 8 else -1
    if wire == 5:
        return at + 4 if end - at >= 4 else -1
    return -12


@kernel
def read_protobuf(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    row: int,
    entries: Ints,
    firsts: Ints,
    counts: Ints,
    oneofs: Ints,
    base: Ints,
    caps: Ints,
    group_of: Ints,
    store: Ints,
    filled: Ints,
    saved: Ints,
    stack: Ints,
    reasons: Bytes,
) -> tuple[int, int]:
    """Read messages from `row` on, until all are read or a group of the store is full.

    Returns the row at which the loop stopped, and the number of the full group, or -1 after the last row.
    """
    groups = len(filled)
    while row < len(starts):
        at = starts[row]
        end = ends[row]
        for group in range(groups):
            saved[group] = filled[group]
        depth = 0
        frame = 0
        hint = 0
        reason = 0
        full = -1
        while True:
            if at >= end:
                if depth == 0:
                    break
                depth -= 1
                items = stack[depth * FRAME_NUMBERS + 2]
                if items >= 0:
                    filled[items] += 1
                end = stack[depth * FRAME_NUMBERS]
                frame = stack[depth * FRAME_NUMBERS + 1]
                hint = stack[depth * FRAME_NUMBERS + 3]
                continue
            tag, at = unsigned_varint(data, at, end)
            if at < 0:
                reason = -at
                break
            wire = tag & 7
            number = (tag >> 3) & 0x1FFFFFFFFFFFFFFF
            if number == 0 or number > 536870911:
                reason = 12
                break
            found = entry_of(entries, firsts[frame], counts[frame], hint, number)
            if found < 0:
                at = skipped(data, at, end, wire)
                if at < 0:
                    reason = -at
                    break
                continue
            entry = (firsts[frame] + found) * ENTRY
            column = entries[entry + 3]
            group = entries[entry + 4]
            items = entries[entry + 6]
            kind = entries[entry + 2]
            hint = found if items >= 0 else found + 1
            if items >= 0 and filled[items] >= caps[items]:
                full = items
                break
            place = filled[items] if items >= 0 else filled[group]
            if wire != entries[entry + 1]:
                if wire != 2 or items == -1 or entries[entry + 11] == 0:
                    reason = 12
                    break
                size, at = unsigned_varint(data, at, end)
                if at < 0:
                    reason = -at
                    break
                if size < 0 or size > end - at:
                    reason = 1
                    break
                stop = at + size
                before = place
                while at < stop:
                    if items >= 0 and filled[items] >= caps[items]:
                        full = items
                        break
                    value, at = scalar(data, at, stop, kind)
                    if at < 0:
                        reason = -at
                        break
                    if items >= 0:
                        store[base[column] + filled[items]] = value
                        filled[items] += 1
                if reason or full >= 0:
                    break
                if items >= 0:
                    sizes = base[entries[entry + 7]] + filled[group]
                    store[sizes] += filled[items] - before
                continue
            if kind >= TEXT:
                size, at = unsigned_varint(data, at, end)
                if at < 0:
                    reason = -at
                    break
                if size < 0 or size > end - at:
                    reason = 1
                    break
                if kind == TEXT and not is_utf8(data, at, at + size):
                    reason = 4
                    break
                if column >= 0 and kind != MESSAGE:
                    store[base[column] + place] = at
                    store[base[column + 1] + place] = size
            else:
                value, at = scalar(data, at, end, kind)
                if at < 0:
                    reason = -at
                    break
                size = 0
                if column >= 0:
                    store[base[column] + place] = value
            if entries[entry + 5] >= 0:
                for other in range(entries[entry + 10]):
                    store[base[oneofs[entries[entry + 9] + other]] + place] = 0
                store[base[entries[entry + 5]] + place] = 1
            if items >= 0:
                store[base[entries[entry + 7]] + filled[group]] += 1
            if kind >= MESSAGE:
                if depth >= DEPTH_MAX:
                    reason = 5
                    break
                stack[depth * FRAME_NUMBERS] = end
                stack[depth * FRAME_NUMBERS + 1] = frame
                stack[depth * FRAME_NUMBERS + 2] = items
                stack[depth * FRAME_NUMBERS + 3] = hint
                depth += 1
                end = at + size
                frame = entries[entry + 8]
                hint = 0
            else:
                at += size
                if items >= 0:
                    filled[items] += 1
        if full >= 0:
            undo_row(group_of, base, store, filled, saved, caps)
            return row, full
        if reason:
            reasons[row] = reason
            undo_row(group_of, base, store, filled, saved, caps)
        else:
            filled[0] += 1
        row += 1
    return row, -1
