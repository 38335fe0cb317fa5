"""Tests of splitting a byte stream into frames, with the bytes divided in every possible way."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.errors import DecodeError
from penstock.protocol.framing import (
    GROWTH_START_BYTES,
    SCRATCH_BYTES,
    ConnectionStateError,
    FrameReader,
    FrameSizeError,
)

STREAM = b"\0\0\0\2hi" + b"\0\0\0\0" + b"\0\0\0\3you"


def framed(frames: list[bytes]) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def fed(reader: FrameReader, data: bytes) -> list[bytes]:
    """Pass all bytes to a frame reader, as many at once as its buffers take; return the complete frames."""
    found = []
    while data:
        buffer = reader.get_buffer()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        reader.received(count)
        data = data[count:]
        while (frame := reader.next_frame()) is not None:
            found.append(bytes(frame))
    return found


@for_each(range(1, len(STREAM) + 1))
def test_any_chunking_gives_the_same_frames(step: int) -> None:
    reader = FrameReader(16)
    chunks = (STREAM[i : i + step] for i in range(0, len(STREAM), step))
    assert [frame for chunk in chunks for frame in fed(reader, chunk)] == [b"hi", b"", b"you"]
    assert reader.pending_bytes == 0


def test_every_pair_of_splits() -> None:
    for first in range(len(STREAM) + 1):
        for second in range(first, len(STREAM) + 1):
            reader = FrameReader(16)
            parts = STREAM[:first], STREAM[first:second], STREAM[second:]
            assert [frame for part in parts for frame in fed(reader, part)] == [b"hi", b"", b"you"]


SIZES = st.one_of(
    st.integers(0, 40),
    st.integers(SCRATCH_BYTES - 8, SCRATCH_BYTES + 8),
    st.sampled_from((GROWTH_START_BYTES - 1, GROWTH_START_BYTES, GROWTH_START_BYTES + 1, 300_000)),
)


@given(st.lists(SIZES, max_size=8), st.lists(st.integers(1, 70_000), max_size=30), st.booleans())
def test_chance_chunkings_of_frames_of_all_sizes(sizes: list[int], steps: list[int], grows: bool) -> None:
    frames = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    stream = framed(frames)
    reader, found = FrameReader(300_000, grows=grows), []
    for step in [*steps, len(stream)]:
        found += fed(reader, stream[:step])
        stream = stream[step:]
    assert found == frames
    assert reader.pending_bytes == 0
    assert not reader.is_receiving_long_frame


@pytest.mark.parametrize("size", [b"\0\0\0\x11", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\1"])
def test_a_size_beyond_the_limits_ends_the_stream_after_the_good_frames(size: bytes) -> None:
    reader = FrameReader(16, size_min=2)
    buffer = reader.get_buffer()
    buffer[:10] = b"\0\0\0\2ab" + size
    reader.received(10)
    assert bytes(reader.next_frame() or b"") == b"ab"
    for _ in range(2):
        with pytest.raises(FrameSizeError, match="2 to 16 are allowed") as caught:
            reader.next_frame()
        assert isinstance(caught.value, DecodeError)
        assert caught.value.beginning == size


def test_no_memory_is_taken_for_a_size_beyond_the_limit() -> None:
    taken: list[int] = []

    def take(size: int) -> memoryview:
        taken.append(size)
        return memoryview(bytearray(size))

    reader = FrameReader(1 << 20, take=take, grows=False)
    with pytest.raises(FrameSizeError):
        fed(reader, b"\0\x10\0\1" + bytes(100))
    assert taken == []
    assert fed(FrameReader(1 << 20, take=take, grows=False), b"\0\x10\0\0" + bytes(100)) == []
    assert taken == [1 << 20]


def test_memory_grows_with_what_has_arrived() -> None:
    taken: list[int] = []

    def take(size: int) -> memoryview:
        taken.append(size)
        return memoryview(bytearray(size))

    reader = FrameReader(100 << 20, take=take)
    size = 50 << 20
    fed(reader, size.to_bytes(4, "big") + b"x" * 10)
    assert taken == [GROWTH_START_BYTES]
    assert reader.is_receiving_long_frame
    fed(reader, b"x" * (GROWTH_START_BYTES - 10))
    assert taken == [GROWTH_START_BYTES, 2 * GROWTH_START_BYTES]
    assert reader.pending_bytes == 4 + GROWTH_START_BYTES
    assert fed(reader, b"x" * (size - GROWTH_START_BYTES)) == [b"x" * size]
    assert taken[-1] == size


def test_a_long_frame_is_the_buffer_that_was_lent() -> None:
    memory = bytearray(SCRATCH_BYTES)
    reader = FrameReader(1 << 20, take=lambda size: memoryview(memory)[:size], grows=False)
    fed(reader, SCRATCH_BYTES.to_bytes(4, "big"))
    rest = reader.get_buffer()
    assert len(rest) == SCRATCH_BYTES
    rest[:] = b"r" * SCRATCH_BYTES
    reader.received(SCRATCH_BYTES)
    frame = reader.next_frame()
    assert frame is not None
    assert frame.obj is memory


@pytest.mark.parametrize("count", [-1, SCRATCH_BYTES + 1])
def test_more_than_was_lent_cannot_be_received(count: int) -> None:
    with pytest.raises(ConnectionStateError, match="the lent buffer cannot hold"):
        FrameReader().received(count)
    reader = FrameReader(1 << 20, grows=False)
    fed(reader, (1 << 20).to_bytes(4, "big") + b"x")
    with pytest.raises(ConnectionStateError, match="the lent buffer cannot hold"):
        reader.received(-5 if count < 0 else 1 << 20)


class FramesOf(asyncio.BufferedProtocol):
    """An asyncio protocol that collects the frames that its transport receives."""

    def __init__(self) -> None:
        self.reader = FrameReader()
        self.frames: list[bytes] = []

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.reader.received(nbytes)
        while (frame := self.reader.next_frame()) is not None:
            self.frames.append(bytes(frame))


def test_asyncio_fills_the_lent_buffer() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        protocol = FramesOf()
        server = await loop.create_server(lambda: protocol, "127.0.0.1", 0)
        async with server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            frames = [b"a", b"b" * 100_000, b"", b"c" * 20_000]
            writer.write(framed(frames))
            while len(protocol.frames) < len(frames):
                await asyncio.sleep(0.001)
            assert protocol.frames == frames
            writer.close()
            await writer.wait_closed()

    asyncio.run(scenario())
