"""Tests that cut or change a message at every byte: decoding gives a message or `DecodeError`.

It takes little time and memory. `test_codec_laws` tests some positions of each message; this module tests
all, and takes minutes.
"""

from __future__ import annotations

import contextlib
import random
import time
import tracemalloc

import pytest

from penstock.errors import DecodeError
from penstock.protocol.codec import codec_for
from protocol.catalogue import NAMES, versions
from protocol.samples import sample

SECONDS_MAX = 2.0
"""The most time in seconds for decoding one message of a few kilobytes on a slow machine.

It usually takes less than a millisecond.
"""

BYTES_MAX = 16 << 20


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_every_cut_and_every_changed_byte(name: str) -> None:
    chance = random.Random(name)
    for message_class, definition, version in versions(name):
        codec = codec_for(message_class, version)
        data = codec.encode(sample(message_class, definition, version, 5))[:1500]
        is_measured = version == message_class.VERSIONS[1]
        if is_measured:
            tracemalloc.start()
        for place in range(len(data)):
            inputs = [data[:place]]
            for change in {0x80, chance.randrange(1, 256)}:
                broken = bytearray(data)
                broken[place] ^= change
                inputs.append(bytes(broken))
            for each in inputs:
                begun = time.process_time()
                with contextlib.suppress(DecodeError):
                    codec.decode(each)
                assert time.process_time() - begun < SECONDS_MAX
        if is_measured:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < BYTES_MAX, (version, peak)
