"""The loop that writes columns as Avro values, by running a program of small operations for each row.

`penstock.registry.avro.writing` makes the program from the schema and the type of the column. Numbers are
read from ``store[base[column] + at_item[group]]``; a group is the rows themselves, or the items of one list,
in the order in which they are written. The caller has checked that every number fits its type, and that the
target has room for the longest encoding of every value.
"""

from __future__ import annotations

from penstock.records.kernels.compiled import (
    Bytes,
    Int32s,
    Ints,
    byte_at,
    copy_bytes,
    kernel,
    put_byte,
)

WIDTH = 5
"""The number of integers that encode one operation of a program: the operation code, and up to four
operands.
"""

END = 0
NUMBER = 1
DOUBLE = 2
FLOAT = 3
BOOLEAN = 4
TEXT = 5
FIXED = 6
DECIMAL = 7
OPTION = 8
CONSTANT = 9
LIST = 10
NEXT = 11

VARINT_BYTES = 10
DECIMAL_BYTES = 17


@kernel
def put_varint(target: Bytes, at: int, number: int) -> int:
    """Write a number as a zig-zag varint; return the position after the varint."""
    rest = (number << 1) ^ (number >> 63)
    while rest & -128:
        put_byte(target, at, (rest & 0x7F) | 0x80)
        rest = (rest >> 7) & 0x01FFFFFFFFFFFFFF
        at += 1
    put_byte(target, at, rest)
    return at + 1


@kernel
def put_span(target: Bytes, at: int, data: Bytes, start: int, size: int) -> int:
    """Copy `size` bytes to the output; return the position after these bytes."""
    if size > 16:
        copy_bytes(target, at, data, start, size)
    else:
        for step in range(size):
            put_byte(target, at + step, byte_at(data, start + step))
    return at + size


@kernel
def put_decimal(target: Bytes, at: int, low: int, high: int) -> int:
    """Write a 16-byte integer as Avro's decimal: a length and the fewest bytes; return the next position."""
    sign = high >> 63
    size = 16
    while size > 1:
        shift = (size - 1) * 8
        byte = ((high >> (shift - 64)) if shift >= 64 else (low >> shift)) & 0xFF
        shift -= 8
        below = ((high >> (shift - 64)) if shift >= 64 else (low >> shift)) & 0x80
        if byte != (sign & 0xFF) or below != (sign & 0x80):
            break
        size -= 1
    put_byte(target, at, size << 1)
    at += 1
    for step in range(size):
        shift = (size - 1 - step) * 8
        put_byte(target, at + step, ((high >> (shift - 64)) if shift >= 64 else (low >> shift)) & 0xFF)
    return at + size


@kernel
def write_avro(
    data: Bytes,
    prefix: Bytes,
    present: Bytes,
    ops: Ints,
    base: Ints,
    store: Ints,
    at_item: Ints,
    stack: Ints,
    ends: Int32s,
    target: Bytes,
) -> int:
    """Write the value of each row that is not null, and store each row's end; return the number of bytes."""
    at = 0
    for row in range(len(present)):
        if byte_at(present, row):
            at = put_span(target, at, prefix, 0, len(prefix))
            pc = 0
            depth = 0
            while True:
                op = ops[pc]
                if op == END:
                    break
                index = at_item[ops[pc + 2]]
                number = store[base[ops[pc + 1]] + index]
                if op == NUMBER:
                    at = put_varint(target, at, number)
                elif op == TEXT:
                    size = store[base[ops[pc + 1] + 1] + index]
                    at = put_varint(target, at, size)
                    at = put_span(target, at, data, number, size)
                elif op == OPTION:
                    if number:
                        at = put_varint(target, at, ops[pc + 3])
                    else:
                        at = put_varint(target, at, 1 - ops[pc + 3])
                        pc = ops[pc + 4]
                        continue
                elif op == DOUBLE:
                    for step in range(8):
                        put_byte(target, at + step, (number >> (8 * step)) & 0xFF)
                    at += 8
                elif op == FLOAT:
                    for step in range(4):
                        put_byte(target, at + step, (number >> (8 * step)) & 0xFF)
                    at += 4
                elif op == BOOLEAN:
                    put_byte(target, at, number)
                    at += 1
                elif op == FIXED:
                    at = put_span(target, at, data, number, store[base[ops[pc + 1] + 1] + index])
                elif op == DECIMAL:
                    at = put_decimal(target, at, number, store[base[ops[pc + 1] + 1] + index])
                elif op == CONSTANT:
                    at = put_varint(target, at, ops[pc + 3])
                elif op == LIST:
                    if number == 0:
                        put_byte(target, at, 0)
                        at += 1
                        pc = ops[pc + 4]
                        continue
                    at = put_varint(target, at, number)
                    stack[depth] = number
                    depth += 1
                else:
                    group = ops[pc + 3]
                    at_item[group] += 1
                    stack[depth - 1] -= 1
                    if stack[depth - 1]:
                        pc = ops[pc + 4]
                        continue
                    depth -= 1
                    put_byte(target, at, 0)
                    at += 1
                pc += WIDTH
        at_item[0] += 1
        ends[row + 1] = at
    return at
