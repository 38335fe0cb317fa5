"""The loop that reads JSON values into columns, controlled by tables made from the shape of the values.

`penstock.registry.json_schema.program` makes the tables. Numbers are stored at ``store[base[column] +
filled[group]]``, as in the Avro loop; null and missing values stay zero. The loop reads the common forms of
values. A row with anything else (another type, a number with many digits, a repeated name, invalid JSON) gets
the reason code `ODD`. The caller then reads the row with Python's parser.
"""

from __future__ import annotations

from penstock.records.kernels.compiled import (
    Bytes,
    Ints,
    byte_at,
    first_marked,
    kernel,
    put_byte,
    word_at,
    wrap64,
)
from penstock.registry.columns.avro_kernel import undo_row
from penstock.registry.columns.number_kernels import number_bits, read_number
from penstock.registry.columns.span_kernels import is_utf8

NODE = 9
"""The number of integers that describe one node (column) in the table of nodes. `KIND` and the following
constants are their indices.
"""

KIND, COLUMN, GROUP, VALID, ITEMS, CHILD, COUNT, SLOTS, MASK = range(NODE)

OBJECT, LIST, MAP, INTEGER, NUMBER, STRING, BOOLEAN, TEXT, NOTHING = range(9)

FIELD = 5
"""The number of integers that describe one property in a table: start and size of its name, its node, the
name's first eight bytes, and the mask for them.
"""

FRAME_NUMBERS = 4
"""The number of integers on the stack for each open value: its node, its first item, its serial number, and
the next field."""

SKIPPED_DEPTH_MAX = 60
"""The greatest nesting depth of a value that is skipped because no column has it; deeper values are left to
Python's parser."""

MAP_ENTRIES_MAX = 24
"""The most entries of a map that are compared to find equal keys; a larger map is left to Python's parser."""

SCRATCH, SERIAL = range(2)
"""Indices of numbers that are kept between rows: the used bytes of the scratch buffer, and the count of
opened objects."""

ODD = 1
"""The reason code of a row that is left to Python's parser."""


@kernel
def space_end(data: Bytes, at: int, end: int) -> int:
    """Return the position after the white space that begins at position `at`."""
    while at < end:
        byte = byte_at(data, at)
        if byte > 32 or byte not in (32, 10, 13, 9):
            break
        at += 1
    return at


@kernel
def hex_at(data: Bytes, at: int, end: int) -> int:
    """Return the number that four hexadecimal digits stand for, or -1 if there are no four digits."""
    if end - at < 4:
        return -1
    number = 0
    for step in range(4):
        byte = byte_at(data, at + step)
        if 48 <= byte <= 57:
            number = number * 16 + byte - 48
        elif 97 <= byte <= 102:
            number = number * 16 + byte - 87
        elif 65 <= byte <= 70:
            number = number * 16 + byte - 55
        else:
            return -1
    return number


@kernel
def put_code(scratch: Bytes, to: int, code: int) -> int:
    """Write a code point as UTF-8; return the position after its bytes."""
    if code < 0x80:
        put_byte(scratch, to, code)
        return to + 1
    if code < 0x800:
        put_byte(scratch, to, 0xC0 | (code >> 6))
        put_byte(scratch, to + 1, 0x80 | (code & 0x3F))
        return to + 2
    if code < 0x10000:
        put_byte(scratch, to, 0xE0 | (code >> 12))
        put_byte(scratch, to + 1, 0x80 | ((code >> 6) & 0x3F))
        put_byte(scratch, to + 2, 0x80 | (code & 0x3F))
        return to + 3
    put_byte(scratch, to, 0xF0 | (code >> 18))
    put_byte(scratch, to + 1, 0x80 | ((code >> 12) & 0x3F))
    put_byte(scratch, to + 2, 0x80 | ((code >> 6) & 0x3F))
    put_byte(scratch, to + 3, 0x80 | (code & 0x3F))
    return to + 4


@kernel
def unescaped(data: Bytes, at: int, end: int, scratch: Bytes, to: int) -> tuple[int, int]:
    """Decode a string with escapes into `scratch`; return the positions after the string in both buffers.

    The first position is -1 if the string is invalid.
    """
    begin = to
    while at < end:
        byte = byte_at(data, at)
        at += 1
        if byte == 34:
            if not is_utf8(scratch, begin, to):
                return -1, to
            return at, to
        if byte < 32:
            return -1, to
        if byte != 92:
            put_byte(scratch, to, byte)
            to += 1
            continue
        if at >= end:
            return -1, to
        byte = byte_at(data, at)
        at += 1
        if byte == 117:
            code = hex_at(data, at, end)
            at += 4
            if 0xD800 <= code < 0xDC00 and end - at >= 6:
                if byte_at(data, at) != 92 or byte_at(data, at + 1) != 117:
                    return -1, to
                low = hex_at(data, at + 2, end)
                if low < 0xDC00 or low > 0xDFFF:
                    return -1, to
                code = 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00
                at += 6
            elif code < 0 or 0xD800 <= code < 0xE000:
                return -1, to
            to = put_code(scratch, to, code)
            continue
        if byte == 110:
            byte = 10
        elif byte == 116:
            byte = 9
        elif byte == 114:
            byte = 13
        elif byte == 98:
            byte = 8
        elif byte == 102:
            byte = 12
        elif byte not in (34, 92, 47):
            return -1, to
        put_byte(scratch, to, byte)
        to += 1
    return -1, to


@kernel
def read_string(data: Bytes, at: int, end: int, scratch: Bytes, to: int) -> tuple[int, int, int, int]:
    """Read the string whose opening quote is before `at`; return (start, size, end position, new `to`).

    A string with escapes is decoded into `scratch` at `to`. Its start is then negative: -1 stands for the
    first byte of `scratch`. The end is -1 if there is no valid string.
    """
    begin = at
    is_plain = True
    while at < end:
        if at + 8 <= end:
            word = word_at(data, at)
            quotes = word ^ 0x2222222222222222
            slashes = word ^ 0x5C5C5C5C5C5C5C5C
            marks = wrap64(
                (
                    (wrap64(quotes - 0x0101010101010101) & ~quotes)
                    | (wrap64(slashes - 0x0101010101010101) & ~slashes)
                    | wrap64(word - 0x2020202020202020)
                    | word
                )
                & -9187201950435737472
            )
            if marks == 0:
                at += 8
                continue
            at += first_marked(marks)
        byte = byte_at(data, at)
        if byte == 34:
            if not is_plain and not is_utf8(data, begin, at):
                return 0, 0, -1, to
            return begin, at - begin, at + 1, to
        if byte == 92:
            at, after = unescaped(data, begin, end, scratch, to)
            return -1 - to, after - to, at, after
        if byte < 32:
            return 0, 0, -1, to
        if byte >= 128:
            is_plain = False
        at += 1
    return 0, 0, -1, to


@kernel
def literal_end(data: Bytes, at: int, end: int) -> int:
    """Return the position after the null, true or false that begins at `at`, or -1 if there is none."""
    if end - at >= 4:
        byte = byte_at(data, at)
        second, third, fourth = byte_at(data, at + 1), byte_at(data, at + 2), byte_at(data, at + 3)
        if byte == 110 and second == 117 and third == 108 and fourth == 108:
            return at + 4
        if byte == 116 and second == 114 and third == 117 and fourth == 101:
            return at + 4
        is_false = byte == 102 and second == 97 and third == 108 and fourth == 115
        if is_false and end - at >= 5 and byte_at(data, at + 4) == 101:
            return at + 5
    return -1


@kernel
def skipped_value(data: Bytes, at: int, end: int, scratch: Bytes, to: int) -> int:
    """Skip a value of any type; return the position after it, or -1 if Python's parser must read the row."""
    depth = 0
    objects = 0
    while True:
        at = space_end(data, at, end)
        if at >= end:
            return -1
        byte = byte_at(data, at)
        if byte in (123, 91):
            if depth >= SKIPPED_DEPTH_MAX:
                return -1
            depth += 1
            objects = (objects << 1) | (1 if byte == 123 else 0)
            at = space_end(data, at + 1, end)
            if at >= end:
                return -1
            if byte_at(data, at) == byte + 2:
                at += 1
                depth -= 1
                objects = objects >> 1
            elif byte == 123:
                at = skipped_name(data, at, end, scratch, to)
                if at < 0:
                    return -1
                continue
            else:
                continue
        elif byte == 34:
            _, _, at, _ = read_string(data, at + 1, end, scratch, to)
        elif byte == 45 or 48 <= byte <= 57:
            begin = at
            _, _, at, _ = read_number(data, at, end)
            if at < 0:
                at = long_number_end(data, begin, end)
        else:
            at = literal_end(data, at, end)
        if at < 0:
            return -1
        while depth > 0:
            at = space_end(data, at, end)
            if at >= end:
                return -1
            byte = byte_at(data, at)
            if byte == 44:
                break
            if byte != (125 if objects & 1 else 93):
                return -1
            at += 1
            depth -= 1
            objects = objects >> 1
        if depth == 0:
            return at
        at += 1
        if objects & 1:
            at = skipped_name(data, space_end(data, at, end), end, scratch, to)
            if at < 0:
                return -1


@kernel
def skipped_name(data: Bytes, at: int, end: int, scratch: Bytes, to: int) -> int:
    """Return the position after a member's name and its colon, or -1 if there is no valid name."""
    if at >= end or byte_at(data, at) != 34:
        return -1
    _, _, at, _ = read_string(data, at + 1, end, scratch, to)
    if at < 0:
        return -1
    at = space_end(data, at, end)
    if at >= end or byte_at(data, at) != 58:
        return -1
    return at + 1


@kernel
def long_number_end(data: Bytes, at: int, end: int) -> int:
    """Return the position after a number of up to 300 characters, or -1 if there is no valid number."""
    stop = min(end, at + 300)
    if at < stop and byte_at(data, at) == 45:
        at += 1
    begin = at
    while at < stop and 48 <= byte_at(data, at) <= 57:
        at += 1
    if at == begin or (at > begin + 1 and byte_at(data, begin) == 48):
        return -1
    if at < stop and byte_at(data, at) == 46:
        at += 1
        begin = at
        while at < stop and 48 <= byte_at(data, at) <= 57:
            at += 1
        if at == begin:
            return -1
    if at < stop and byte_at(data, at) in (69, 101):
        at += 1
        if at < stop and byte_at(data, at) in (43, 45):
            at += 1
        begin = at
        while at < stop and 48 <= byte_at(data, at) <= 57:
            at += 1
        if at == begin:
            return -1
    return at if at < stop or stop == end else -1


@kernel
def name_hash(data: Bytes, start: int, size: int) -> int:
    """Return the hash of a member's name for the table of properties."""
    found = int(size)
    for index in range(size):
        found = wrap64(found * 31 + byte_at(data, start + index))
    return found ^ (found >> 17)


@kernel
def is_same(one: Bytes, start: int, other: Bytes, other_start: int, size: int) -> bool:
    """Return True if two spans of bytes are equal."""
    index = 0
    while index < size and byte_at(one, start + index) == byte_at(other, other_start + index):
        index += 1
    return index == size


@kernel
def field_named(
    data: Bytes,
    start: int,
    size: int,
    names: Bytes,
    fields: Ints,
    slots: Ints,
    first_slot: int,
    mask: int,
) -> int:
    """Return the index of the property with the given name in an object's table, or -1 if there is none."""
    if mask < 0:
        return -1
    slot = name_hash(data, start, size) & mask
    while slots[first_slot + slot] >= 0:
        field = int(slots[first_slot + slot])
        if fields[field * FIELD + 1] == size and is_same(data, start, names, fields[field * FIELD], size):
            return field
        slot = (slot + 1) & mask
    return -1


@kernel
def has_twin(data: Bytes, store: Ints, starts: int, sizes: int, first: int, last: int) -> bool:
    """Return True if a map has equal keys, or has too many or escaped keys, which are not compared."""
    if last - first > MAP_ENTRIES_MAX:
        return True
    for index in range(first, last):
        start = store[starts + index]
        if start < 0:
            return True
        size = store[sizes + index]
        for other in range(first, index):
            if store[sizes + other] == size and is_same(data, store[starts + other], data, start, size):
                return True
    return False


@kernel
def is_expected(data: Bytes, at: int, end: int, names: Bytes, fields: Ints, field: int) -> bool:
    """Return True if the name that begins at `at`, after its quote, is the name of property `field`."""
    size = fields[field * FIELD + 1]
    if end - at <= size:
        return False
    if end - at >= 8:
        if word_at(data, at) & fields[field * FIELD + 4] != fields[field * FIELD + 3]:
            return False
        if size < 8:
            return True
        for index in range(8, size):
            if byte_at(data, at + index) != byte_at(names, fields[field * FIELD] + index):
                return False
        return byte_at(data, at + size) == 34
    return byte_at(data, at + size) == 34 and is_same(data, at, names, fields[field * FIELD], size)


@kernel
def read_json(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    row: int,
    nodes: Ints,
    fields: Ints,
    names: Bytes,
    slots: Ints,
    powers: Ints,
    base: Ints,
    caps: Ints,
    group_of: Ints,
    store: Ints,
    filled: Ints,
    saved: Ints,
    seen: Ints,
    stack: Ints,
    scratch: Bytes,
    state: Ints,
    reasons: Bytes,
) -> tuple[int, int]:
    """Read values from `row` on, until all are read or a group of the store is full.

    Returns the row at which the loop stopped, and the number of the full group, or -1 after the last row.
    """
    groups = len(filled)
    while row < len(starts):
        end = ends[row]
        for group in range(groups):
            saved[group] = filled[group]
        to = state[SCRATCH]
        at = space_end(data, starts[row], end)
        node = 0
        depth = 0
        odd = True
        full = -1
        while at < end:
            # A value of `node`.
            byte = byte_at(data, at)
            kind = nodes[node + KIND]
            column = nodes[node + COLUMN]
            place = filled[nodes[node + GROUP]]
            valid = nodes[node + VALID]
            is_opened = False
            if byte == 110:
                at = literal_end(data, at, end)
                if at < 0 or depth == 0:
                    break
                valid = -1
            elif kind == STRING:
                if byte != 34:
                    break
                start, size, at, to = read_string(data, at + 1, end, scratch, to)
                if at < 0:
                    break
                store[base[column] + place] = start
                store[base[column + 1] + place] = size
            elif kind == INTEGER:
                sign = 0
                if byte == 45:
                    sign = -1
                    at += 1
                begin = at
                number = 0
                while at < end:
                    digit = byte_at(data, at) - 48
                    if digit < 0 or digit > 9:
                        break
                    if number > 922337203685477579:
                        at = end
                        break
                    number = number * 10 + digit
                    at += 1
                # A value that ends in digits is no object and no list: Python's parser reads it.
                if at == begin or at >= end or (at > begin + 1 and byte_at(data, begin) == 48):
                    break
                if byte_at(data, at) in (46, 69, 101):
                    break
                store[base[column] + place] = (number ^ sign) - sign
            elif kind == NUMBER:
                number, power, at, sign = read_number(data, at, end)
                if at < 0:
                    break
                bits, is_exact = number_bits(number, power, sign, powers)
                if not is_exact:
                    break
                store[base[column] + place] = bits
            elif kind == BOOLEAN:
                if byte not in (116, 102):
                    break
                at = literal_end(data, at, end)
                if at < 0:
                    break
                store[base[column] + place] = 1 if byte == 116 else 0
            elif kind == TEXT:
                begin = at
                at = skipped_value(data, at, end, scratch, to)
                if at < 0:
                    break
                store[base[column] + place] = begin
                store[base[column + 1] + place] = at - begin
            elif kind == NOTHING:
                break
            else:
                if byte != (91 if kind == LIST else 123):
                    break
                stack[depth] = node
                stack[depth + 1] = filled[nodes[node + ITEMS]] if kind != OBJECT else 0
                state[SERIAL] += 1
                stack[depth + 2] = state[SERIAL]
                stack[depth + 3] = nodes[node + CHILD]
                depth += FRAME_NUMBERS
                at = space_end(data, at + 1, end)
                is_opened = True
            if valid >= 0:
                store[base[valid] + place] = 1
            # What is behind a value: the end of what is open, or the next value.
            node = -1
            while depth > 0:
                if at < end and byte_at(data, at) == 32:
                    at += 1
                at = space_end(data, at, end)
                if at >= end:
                    break
                byte = byte_at(data, at)
                top = stack[depth - FRAME_NUMBERS]
                kind = nodes[top + KIND]
                items = nodes[top + ITEMS]
                if kind != OBJECT and not is_opened:
                    filled[items] += 1
                if byte == (93 if kind == LIST else 125):
                    at += 1
                    depth -= FRAME_NUMBERS
                    if kind != OBJECT:
                        first = stack[depth + 1]
                        if kind == MAP and has_twin(
                            data,
                            store,
                            base[nodes[top + SLOTS]],
                            base[nodes[top + SLOTS] + 1],
                            first,
                            filled[items],
                        ):
                            node = -2
                            break
                        store[base[nodes[top + COLUMN]] + filled[nodes[top + GROUP]]] = filled[items] - first
                    is_opened = False
                    continue
                if not is_opened:
                    if byte != 44:
                        break
                    at += 1
                    if at < end and byte_at(data, at) == 32:
                        at += 1
                    at = space_end(data, at, end)
                    if at >= end:
                        break
                if kind != OBJECT and filled[items] >= caps[items]:
                    full = items
                    break
                if kind == LIST:
                    node = nodes[top + CHILD]
                    break
                if byte_at(data, at) != 34:
                    break
                at += 1
                if kind == MAP:
                    start, size, at, to = read_string(data, at, end, scratch, to)
                    if at < 0:
                        break
                    store[base[nodes[top + SLOTS]] + filled[items]] = start
                    store[base[nodes[top + SLOTS] + 1] + filled[items]] = size
                    field = -1
                    node = nodes[top + CHILD]
                else:
                    field = stack[depth - 1]
                    if field < nodes[top + CHILD] + nodes[top + COUNT] and is_expected(
                        data, at, end, names, fields, field
                    ):
                        at += fields[field * FIELD + 1] + 1
                    else:
                        start, size, at, _ = read_string(data, at, end, scratch, to)
                        if at < 0:
                            break
                        if start >= 0:
                            field = field_named(
                                data, start, size, names, fields, slots, nodes[top + SLOTS], nodes[top + MASK]
                            )
                        else:
                            field = field_named(
                                scratch,
                                -1 - start,
                                size,
                                names,
                                fields,
                                slots,
                                nodes[top + SLOTS],
                                nodes[top + MASK],
                            )
                at = space_end(data, at, end)
                if at >= end or byte_at(data, at) != 58:
                    node = -2
                    break
                at += 1
                if at < end and byte_at(data, at) == 32:
                    at += 1
                at = space_end(data, at, end)
                if kind == MAP:
                    break
                if field >= 0:
                    if seen[field] == stack[depth - 2]:
                        break
                    seen[field] = stack[depth - 2]
                    stack[depth - 1] = field + 1
                    node = fields[field * FIELD + 2]
                    break
                at = skipped_value(data, at, end, scratch, to)
                if at < 0:
                    break
                is_opened = False
            if node >= 0:
                continue
            if node == -1 and depth == 0 and at >= 0:
                odd = space_end(data, at, end) != end
            break
        if full >= 0:
            undo_row(group_of, base, store, filled, saved, caps)
            return row, full
        if odd:
            reasons[row] = ODD
            undo_row(group_of, base, store, filled, saved, caps)
        else:
            filled[0] += 1
            state[SCRATCH] = to
        row += 1
    return row, -1
