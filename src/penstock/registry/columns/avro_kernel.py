"""The loop that reads Avro values into columns, by running a program of small operations for each row.

`penstock.registry.avro.program` makes the program from the writer's and the reader's schema. Every number is
stored at ``store[base[column] + filled[group]]``; a group is the rows themselves, or the items of one list.
Nulls stay zero. If a row does not fit its schema, its numbers are removed again, and the reason is stored.
"""

from __future__ import annotations

from penstock.records.kernels.compiled import (
    Bytes,
    Ints,
    byte_at,
    double_bits,
    kernel,
    widened,
    word_at,
    wrap64,
)
from penstock.registry.columns.span_kernels import is_utf8, unsigned_varint

WIDTH = 6
"""The number of integers that encode one operation of a program: the operation code, and up to five
operands.
"""

END = 0
INT = 1
LONG = 2
FLOAT = 3
DOUBLE = 4
BOOLEAN = 5
TEXT = 6
BINARY = 7
FIXED = 8
OPTION = 9
UNION = 10
ENUM = 11
LIST = 12
NEXT = 13
STEP = 14
CLOSE = 15
JUMP = 16
SET = 17
CALL = 18
RETURN = 19
MARK = 20
MARKED = 21
DECIMAL = 22
INT_AS_DOUBLE = 23
INT_AS_FLOAT = 24
FLOAT_AS_DOUBLE = 25
ADD = 26
SIZED = 27

DEPTH_MAX = 256
"""The number of entries of the loop's stack. A list being read takes two entries, a call of a subroutine
one.
"""

FREE_ITEMS = 1024
"""The number of list items that a row may have beyond one per byte, since null and empty records take no
bytes."""


@kernel
def undo_row(group_of: Ints, base: Ints, store: Ints, filled: Ints, saved: Ints, caps: Ints) -> None:
    """Set all numbers that a row has stored back to zero, and remove its list items."""
    for column in range(len(base)):
        group = group_of[column]
        last = min(filled[group] + 1, caps[group])
        for index in range(saved[group], last):
            store[base[column] + index] = 0
    for group in range(len(filled)):
        filled[group] = saved[group]


@kernel
def read_avro(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    row: int,
    ops: Ints,
    tables: Ints,
    base: Ints,
    caps: Ints,
    group_of: Ints,
    store: Ints,
    filled: Ints,
    saved: Ints,
    stack: Ints,
    reasons: Bytes,
) -> tuple[int, int]:
    """Read values from `row` on, until all are read or a group of the store is full.

    Returns the row at which the loop stopped, and the number of the full group, or -1 after the last row.
    """
    groups = len(filled)
    while row < len(starts):
        at = starts[row]
        end = ends[row]
        for group in range(groups):
            saved[group] = filled[group]
        left = end - at + FREE_ITEMS
        pc = 0
        depth = 0
        reason = 0
        full = -1
        while True:
            op = ops[pc]
            a = ops[pc + 1]
            b = ops[pc + 2]
            c = ops[pc + 3]
            if op in (TEXT, BINARY, DECIMAL):
                size, at = unsigned_varint(data, at, end)
                if at < 0:
                    reason = -at
                    break
                if size & 1:
                    reason = 9
                    break
                size = (size >> 1) & 0x7FFFFFFFFFFFFFFF
                if size > end - at:
                    reason = 1
                    break
                if op == TEXT:
                    if not is_utf8(data, at, at + size):
                        reason = 4
                        break
                elif op == DECIMAL and size > 16:
                    reason = 11
                    break
                if a >= 0:
                    index = filled[b]
                    store[base[a] + index] = at
                    store[base[a + 1] + index] = size
                at += size
            elif op in (LONG, INT, INT_AS_DOUBLE, INT_AS_FLOAT):
                raw, at = unsigned_varint(data, at, end)
                if at < 0:
                    reason = -at
                    break
                number = ((raw >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(raw & 1)
                if c == 1 and (number < -2147483648 or number > 2147483647):
                    reason = 2
                    break
                if c > 1 and (number < 0 or number >= c):
                    reason = 13
                    break
                if a >= 0:
                    if op == INT_AS_DOUBLE:
                        number = double_bits(number, 8)
                    elif op == INT_AS_FLOAT:
                        number = double_bits(number, 4)
                    store[base[a] + filled[b]] = number
            elif op == DOUBLE:
                if end - at < 8:
                    reason = 1
                    break
                if a >= 0:
                    store[base[a] + filled[b]] = word_at(data, at)
                at += 8
            elif op in (FLOAT, FLOAT_AS_DOUBLE):
                if end - at < 4:
                    reason = 1
                    break
                number = (
                    byte_at(data, at)
                    | (byte_at(data, at + 1) << 8)
                    | (byte_at(data, at + 2) << 16)
                    | (byte_at(data, at + 3) << 24)
                )
                if a >= 0:
                    store[base[a] + filled[b]] = widened(number) if op == FLOAT_AS_DOUBLE else number
                at += 4
            elif op == BOOLEAN:
                if at >= end:
                    reason = 1
                    break
                number = byte_at(data, at)
                if number > 1:
                    reason = 10
                    break
                if a >= 0:
                    store[base[a] + filled[b]] = number
                at += 1
            elif op in (OPTION, UNION, ENUM):
                raw, at = unsigned_varint(data, at, end)
                if at < 0:
                    reason = -at
                    break
                number = ((raw >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(raw & 1)
                if number < 0 or number >= ops[pc + 5]:
                    reason = 3
                    break
                if op == OPTION:
                    if number == c:
                        pc = ops[pc + 4]
                        continue
                    if a >= 0:
                        store[base[a] + filled[b]] = 1
                else:
                    number = tables[c + number]
                    if number < 0:
                        reason = 8
                        break
                    if op == UNION:
                        pc = number
                        continue
                    if a >= 0:
                        store[base[a] + filled[b]] = number
            elif op == SET:
                store[base[a] + filled[b]] = c
            elif op == FIXED:
                if end - at < c:
                    reason = 1
                    break
                if a >= 0:
                    index = filled[b]
                    store[base[a] + index] = at
                    store[base[a + 1] + index] = c
                at += c
            elif op == JUMP:
                pc = a
                continue
            elif op == LIST:
                if depth + 2 > DEPTH_MAX:
                    reason = 5
                    break
                stack[depth] = 0
                stack[depth + 1] = filled[a] if a >= 0 else 0
                depth += 2
            elif op == NEXT:
                if stack[depth - 2] == 0:
                    raw, at = unsigned_varint(data, at, end)
                    if at < 0:
                        reason = -at
                        break
                    number = ((raw >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(raw & 1)
                    if number == 0:
                        pc = b
                        continue
                    if number < 0:
                        number = wrap64(-number)
                        raw, at = unsigned_varint(data, at, end)
                        if at < 0:
                            reason = -at
                            break
                    if number < 0 or number > left:
                        reason = 7
                        break
                    left -= number
                    stack[depth - 2] = number
                stack[depth - 2] -= 1
                if a >= 0 and filled[a] >= caps[a]:
                    full = a
                    break
            elif op == STEP:
                if a >= 0:
                    filled[a] += 1
                pc = b
                continue
            elif op == CLOSE:
                depth -= 2
                if a >= 0:
                    store[base[a] + filled[b]] = filled[c] - stack[depth + 1]
            elif op == ADD:
                if filled[a] >= caps[a]:
                    full = a
                    break
                filled[a] += 1
            elif op == SIZED:
                if a >= 0 and filled[a] >= caps[a]:
                    full = a
                    break
            elif op == CALL:
                if depth + 1 > DEPTH_MAX:
                    reason = 5
                    break
                stack[depth] = pc + WIDTH
                depth += 1
                pc = a
                continue
            elif op == RETURN:
                depth -= 1
                pc = stack[depth]
                continue
            elif op == MARK:
                store[base[a] + filled[b]] = at
            elif op == MARKED:
                index = filled[b]
                store[base[a + 1] + index] = at - store[base[a] + index]
            else:
                if at != end:
                    reason = 6
                break
            pc += WIDTH
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
