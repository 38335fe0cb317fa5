"""Converts decimal numbers to the nearest double, exactly.

The algorithm is Daniel Lemire's ("Number Parsing at a Gigabyte per Second", 2021): one or two products with a
table of powers of five. The few numbers that the algorithm cannot round with certainty, and those that
`POWERS` does not cover, are left to the caller.
"""

from __future__ import annotations

import numpy as np

from penstock.records.kernels.compiled import (
    Bytes,
    Ints,
    byte_at,
    high_product,
    kernel,
    leading_zeros,
    wrap64,
)

POWER_MIN = -120
POWER_MAX = 120
INT64_MIN = -(1 << 63)


def _powers() -> Ints:
    """Return the first 128 bits of each power of five, as two lists of high and low 64-bit words."""
    found = []
    for power in range(POWER_MIN, POWER_MAX + 1):
        if power >= 0:
            number = 5**power
            size = number.bit_length()
            bits = number << (128 - size) if size <= 128 else number >> (size - 128)
        else:
            number = 5**-power
            size = number.bit_length()
            bits = (
                (1 << (size + 127)) // number + 1 if power >= -27 else (1 << (2 * size + 128)) // number + 1
            )
            while bits >= 1 << 128:
                bits >>= 1
        found += [wrap64(bits >> 64), wrap64(bits & ((1 << 64) - 1))]
    return np.array(found, dtype=np.int64)


POWERS = _powers()


@kernel
def read_number(data: Bytes, at: int, end: int) -> tuple[int, int, int, int]:
    """Return a JSON number's digits as an integer, its power of ten, the position after it, and its sign.

    The sign is 0, or -1 for a negative number; for a number without point and exponent, 2 is added. The
    position is -1 if there is no JSON number, if it has more than eighteen digits, or if the data ends with
    the number.
    """
    sign = 0
    if at < end and byte_at(data, at) == 45:
        sign = -1
        at += 1
    begin = at
    number = 0
    while at < end:
        digit = byte_at(data, at) - 48
        if digit < 0 or digit > 9:
            break
        if number > 99999999999999999:
            return 0, 0, -1, 0
        number = number * 10 + digit
        at += 1
    if at == begin or at >= end or (at > begin + 1 and byte_at(data, begin) == 48):
        return 0, 0, -1, 0
    power = 0
    byte = byte_at(data, at)
    if byte not in (46, 69, 101):
        return number, 0, at, sign + 2
    if byte == 46:
        at += 1
        begin = at
        while at < end:
            digit = byte_at(data, at) - 48
            if digit < 0 or digit > 9:
                break
            if number > 99999999999999999:
                return 0, 0, -1, 0
            number = number * 10 + digit
            at += 1
        power = begin - at
        if power == 0 or at >= end:
            return 0, 0, -1, 0
        byte = byte_at(data, at)
    if byte in (69, 101):
        at += 1
        minus = 0
        if at < end and byte_at(data, at) in (43, 45):
            minus = 1 if byte_at(data, at) == 45 else 0
            at += 1
        begin = at
        more = 0
        while at < end and at < begin + 5:
            digit = byte_at(data, at) - 48
            if digit < 0 or digit > 9:
                break
            more = more * 10 + digit
            at += 1
        if at == begin or at >= end or at == begin + 5:
            return 0, 0, -1, 0
        power += -more if minus else more
    return number, power, at, sign


@kernel
def number_bits(number: int, power: int, sign: int, powers: Ints) -> tuple[int, int]:
    """Return (bits, 1) for the double nearest to ``number * 10**power``, or (0, 0) if that is uncertain.

    `sign` is the one that `read_number` returns: an integer -0 has no sign, as in Python's parser.
    """
    if number == 0:
        return (INT64_MIN if sign == -1 else 0), 1
    if power < POWER_MIN or power > POWER_MAX:
        return 0, 0
    zeros = leading_zeros(number)
    wide = wrap64(number << zeros)
    place = (power - POWER_MIN) * 2
    high = high_product(wide, powers[place])
    low = wrap64(wide * int(powers[place]))
    if high & 0x1FF == 0x1FF:
        more = high_product(wide, powers[place + 1])
        before = low
        low = wrap64(low + more)
        if (low ^ INT64_MIN) < (before ^ INT64_MIN):
            high = wrap64(high + 1)
    if low == -1 and (power < -27 or power > 55):
        return 0, 0
    upper = (high >> 63) & 1
    shift = upper + 9
    fraction = (high >> shift) & (0x7FFFFFFFFFFFFFFF >> (shift - 1))
    exponent = ((217706 * power) >> 16) + 63 + upper - zeros + 1023
    if exponent <= 0 or exponent >= 2046:
        return 0, 0
    if 0 <= low <= 1 and -4 <= power <= 23 and fraction & 3 == 1 and wrap64(fraction << shift) == high:
        fraction = fraction & -2
    fraction += fraction & 1
    fraction = fraction >> 1
    if fraction >= 1 << 53:
        fraction = 1 << 52
        exponent += 1
    fraction = fraction & 0xFFFFFFFFFFFFF
    found = fraction | (exponent << 52)
    return (found | INT64_MIN if sign & 1 else found), 1
