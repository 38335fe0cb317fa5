"""How long a call waits for memory."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from client.produce.test_accumulator import T0, accumulator, put
from penstock.client.config import ProducerConfig
from penstock.client.produce.sender import Sender


@pytest.mark.parametrize(("used", "has_room"), [(3_500, True), (4_096, False)])
def test_a_wait_for_ample_room_ends_with_what_room_there_is(used: int, has_room: bool) -> None:
    """A record that fits is no error because less than a quarter of the memory is free in time."""

    async def wait() -> bool:
        config = ProducerConfig.parse({"bootstrap.servers": "x:1"}, {"buffer_memory": 4_096})
        box = accumulator(buffer_memory=4_096)
        sender = Sender(cast(Any, None), config, box)
        sender._is_woken = True  # nothing is sent
        put(box, T0, b"x" * (used - 36))
        assert not box.has_ample_room
        return await sender.room(0.001)

    assert asyncio.run(wait()) == has_room
