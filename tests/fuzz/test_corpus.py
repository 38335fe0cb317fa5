"""Tests that run all fuzz targets on the corpus, on their initial inputs and on mutations of these."""

from __future__ import annotations

import random

from for_each import for_each
from fuzz.seeds import seeds
from fuzz.targets import CORPUS, TARGETS, kept


@for_each(TARGETS)
def test_what_is_kept_raises_nothing_unexpected(name):
    for data in kept(name):
        TARGETS[name](data)


@for_each(TARGETS)
def test_valid_inputs_and_chance_mutations_of_them(name):
    chance = random.Random(name)
    for data in chance.sample(beginnings := seeds(name), min(40, len(beginnings))):
        TARGETS[name](data)
        for _ in range(5):
            TARGETS[name](mutated(data, chance))


def test_every_kept_file_has_a_target():
    assert {path.stem for path in CORPUS.glob("*.hex")} <= TARGETS.keys()


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return the data with one to three random changes: bytes replaced, removed or inserted."""
    made = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(made) + 1)
        piece = chance.choice((b"\0", b"\xff", b"\x80", b"\x7f\xff\xff\xff", bytes([chance.randrange(256)])))
        made[place : place + chance.randrange(3)] = piece
    return bytes(made)
