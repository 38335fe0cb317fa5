"""Tests of the byte offsets that a gateway gives to 0.7 readers.

A reader adds the sizes of messages to its offset, and must arrive at the next record.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from for_each import for_each
from penstock.gateway.v07.offsets import (
    PLACE_BITS,
    SLOT_BITS_MAX,
    SLOT_BITS_MIN,
    SLOT_BYTES_MIN,
    NoCodeError,
    ReaderPlace,
    place_at,
    slot_bits_of,
)
from penstock.gateway.v07.padding import PLAIN, WRAPPED, Value, pack
from penstock.v07.message_set import FetchSizeTooSmall, iter_messages


def test_offsets_in_slots_of_4_kib_are_multiples_of_4096() -> None:
    assert [ReaderPlace(offset).code for offset in (0, 1, 1000)] == [0, 4096, 4_096_000]


def test_a_code_says_offset_debt_and_slot_size() -> None:
    dice = random.Random(1)
    for _ in range(2000):
        bits = dice.randint(SLOT_BITS_MIN, SLOT_BITS_MAX)
        place = ReaderPlace(dice.randrange(1 << 38), dice.randrange(1 << bits), bits)
        assert 0 <= place.code < 1 << 63
        assert place_at(place.code) == place


@pytest.mark.parametrize("code", [-1, -(1 << 63), 15, 1 << PLACE_BITS + 3, (1 << 63) - 1 | 8 << PLACE_BITS])
def test_other_numbers_are_no_codes(code: int) -> None:
    assert place_at(code) is None


def test_what_has_no_code_says_so() -> None:
    with pytest.raises(NoCodeError, match="larger slots are needed"):
        ReaderPlace(1 << 50).code  # noqa: B018
    with pytest.raises(NoCodeError):
        ReaderPlace(0, 4095).after(1, 3 * SLOT_BYTES_MIN)


def test_slots_are_chosen_by_the_size_of_records() -> None:
    assert [slot_bits_of(size) for size in (0, 1, 4096, 4097, 1 << 19, 1 << 30)] == [12, 12, 12, 13, 19, 19]


class Log:
    """A partition with offset gaps, as transactions and compaction cause them, and values of many sizes."""

    def __init__(self, dice: random.Random, count: int, size_of: Callable[[random.Random], int]) -> None:
        self.values: list[Value] = []
        offset = dice.randrange(1000)
        for _ in range(count):
            offset += dice.choice([1] * 20 + [2, 3, dice.randrange(1, 40)])
            self.values.append(Value(offset, dice.randbytes(size_of(dice))))

    def after(self, place: ReaderPlace, count: int) -> list[Value]:
        return [value for value in self.values if value.offset >= place.offset][:count]


def read_all(
    log: Log, dice: random.Random, start: ReaderPlace, form: str = WRAPPED, size_max: int = 1 << 16
) -> list[bytes]:
    """Read a log as a 0.7 client does that stores only its offset; the gateway stores nothing."""
    found: list[bytes] = []
    code = start.code
    while True:
        place = place_at(code)
        assert place is not None
        values = log.after(place, dice.randrange(1, 60))
        if not values:
            return found
        data = pack(place, values, size_max, form).data
        assert len(data) <= size_max
        try:
            messages = list(iter_messages(data, code))
        except FetchSizeTooSmall as error:
            size_max = error.needed_bytes
            continue
        if dice.random() < 0.2 and messages:  # it ends behind some message, and another one goes on there
            boundaries = sorted({message.next_offset for message in messages})
            stop = dice.choice(boundaries)
            if stop > code:
                found += [message.payload for message in messages if message.offset < stop]
                code = stop
                continue
        found += [message.payload for message in messages]
        end = code
        position = 0
        while position + 4 <= len(data):
            size = 4 + int.from_bytes(data[position : position + 4], "big")
            if position + size > len(data):
                break
            position += size
        end += position
        assert end > code
        code = end


SIZES: dict[str, Callable[[random.Random], int]] = {
    "small": lambda dice: dice.randrange(200),
    "up to the slot": lambda dice: dice.randrange(4000, 4100),
    "few large ones": lambda dice: 20_000 if dice.random() < 0.02 else dice.randrange(300),
    "all larger than the slot": lambda dice: dice.randrange(4000, 30_000),
    "empty": lambda dice: 0,
}


@for_each([(sizes, seed) for seed in range(6) for sizes in SIZES])
def test_every_record_is_read_once_and_in_order(sizes: str, seed: int) -> None:
    dice = random.Random(f"{sizes}/{seed}")
    log = Log(dice, 300, SIZES[sizes])
    start = ReaderPlace(0, slot_bits=dice.choice([12, 13, 16]))
    assert read_all(log, dice, start) == [value.value for value in log.values]


@pytest.mark.parametrize("sizes", ["small", "up to the slot", "few large ones", "empty"])
def test_plain_messages_are_read_once_with_spaces_behind_them(sizes: str) -> None:
    dice = random.Random(f"plain/{sizes}")
    log = Log(dice, 300, lambda dice: max(SIZES[sizes](dice), 1))
    found = read_all(log, dice, ReaderPlace(log.values[0].offset), PLAIN, 1 << 20)
    assert [value.rstrip(b" ") for value in found] == [value.value.rstrip(b" ") for value in log.values]


def test_plain_messages_have_magic_0_and_do_not_cross_wide_gaps() -> None:
    packed = pack(ReaderPlace(0), [Value(0, b'{"a": 1}')], 1 << 16, PLAIN)
    assert packed.data[4] == 0
    assert [json.loads(message.payload) for message in iter_messages(packed.data)] == [{"a": 1}]
    with pytest.raises(NoCodeError, match="the next record has offset 1000") as raised:
        pack(ReaderPlace(1, 5), [Value(1000, b"far")], 1 << 20, PLAIN)
    assert raised.value.go_on == ReaderPlace(1000)


def test_a_debt_is_paid_back_by_small_records() -> None:
    values = [Value(0, random.Random(2).randbytes(100_000)), *(Value(at, b"small") for at in range(1, 100))]
    behind_large = pack(ReaderPlace(0), values[:1], 1 << 20)
    assert behind_large.place.debt == 24
    rest = pack(behind_large.place, values[1:], 1 << 20)
    assert rest.place == ReaderPlace(100, 0)
    assert rest.place.code == 100 * SLOT_BYTES_MIN


def test_records_of_one_slot_are_messages_of_their_own() -> None:
    values = [Value(at, b"%d" % at) for at in range(10)]
    found = list(iter_messages(pack(ReaderPlace(0), values, 1 << 20).data))
    assert [(message.offset, message.next_offset) for message in found] == [
        (4096 * at, 4096 * at + 4096) for at in range(10)
    ]


def test_a_gap_larger_than_the_fetch_is_crossed_by_messages_without_records() -> None:
    place, values, rounds = ReaderPlace(5), [Value(1005, b"behind the gap")], 0
    while place.offset <= 1005:
        packed = pack(place, values, 1 << 20)
        place, rounds = packed.place, rounds + 1
        assert [m.payload for m in iter_messages(packed.data)] == [b"behind the gap"][: packed.records]
    assert (place, rounds) == (ReaderPlace(1006), 4)


def test_a_gap_of_millions_takes_no_memory_for_a_small_fetch() -> None:
    packed = pack(ReaderPlace(0), [Value(1 << 40, b"far away")], 100)
    assert (len(packed.data), packed.place, packed.records) == (100, ReaderPlace(0), 0)


def test_a_record_that_is_too_large_for_any_code_is_refused() -> None:
    large = random.Random(3).randbytes(1 << 20)
    with pytest.raises(NoCodeError) as raised:
        pack(ReaderPlace(0, 4000), [Value(0, large)], 1 << 22)
    assert raised.value.go_on == ReaderPlace(0, 0, 16)
