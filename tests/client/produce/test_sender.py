"""Tests of how long a send call waits for free buffer memory."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from client.produce.test_accumulator import T0, accumulator, put
from penstock.client.config import ProducerConfig
from penstock.client.produce.sender import Sender


@pytest.mark.parametrize(("used", "has_room"), [(3_500, True), (4_096, False)])
def test_a_wait_for_ample_room_ends_with_what_room_there_is(used: int, has_room: bool) -> None:
    """The wait is for a quarter of the buffer memory.

    At its timeout, a record that fits into the free memory is no error.
    """

    async def wait() -> bool:
        config = ProducerConfig.parse({"bootstrap.servers": "x:1"}, {"buffer_memory": 4_096})
        box = accumulator(buffer_memory=4_096)
        sender = Sender(cast(Any, None), config, box)
        sender._is_woken = True  # nothing is sent
        put(box, T0, b"x" * (used - 36))
        assert not box.has_ample_room
        return await sender.room(0.001)

    assert asyncio.run(wait()) == has_room
