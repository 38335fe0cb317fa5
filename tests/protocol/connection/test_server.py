"""Tests of a broker connection without I/O: single requests, ordered responses, and memory limits."""

from __future__ import annotations

from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.connection.server import BACKLOG_BYTES_MAX, FRAME_START_BYTES, ServerConnection
from penstock.protocol.framing import ConnectionStateError, FrameSizeError

SCRATCH_BYTES = 64 << 10


class Pool:
    """A memory pool that counts what is borrowed; with `refuses` it lends nothing."""

    def __init__(self) -> None:
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.lent: list[int] = []
        self.out = 0
        self.refuses = False

    def lend(self, size: int) -> bytearray | None:
        if self.refuses:
            return None
        self.lent.append(size)
        self.out += 1
        return bytearray(b"\xaa" * (size + 10))

    def give_back(self, buffer: bytearray) -> None:
        self.out -= 1
        buffer[:] = b"\xee" * len(buffer)


def opened(frame_bytes_max: int = 1 << 20) -> tuple[ServerConnection, Pool]:
    pool = Pool()
    return ServerConnection(pool.scratch, pool, frame_bytes_max), pool


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def put(connection: ServerConnection, data: bytes) -> bytes:
    """Pass as much of `data` to the connection as its buffer takes; return the remaining bytes."""
    buffer = connection.get_buffer()
    size = min(len(buffer), len(data))
    buffer[:size] = data[:size]
    connection.received(size)
    return data[size:]


def echoed(connection: ServerConnection, data: bytes, *, asks_for_one: bool = False) -> bytes:
    """Answer every request with its own bytes, and return the responses.

    With `asks_for_one`, try `only_request`, the fast path, before `received`.
    """
    sent = b""
    while data:
        buffer = connection.get_buffer()
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        data = data[size:]
        if asks_for_one and (only := connection.only_request(size)) is not None:
            connection.complete()
            sent += only
            continue
        connection.received(size)
        while (frame := connection.next_request()) is not None:
            connection.respond(bytes(frame))
        sent += connection.data_to_send()
    return sent


SIZES = st.sampled_from((1, 2, 3, 100, 5000, SCRATCH_BYTES - 4, SCRATCH_BYTES, 200_000))


@given(st.lists(SIZES, max_size=8), st.lists(st.integers(1, 70_000), max_size=25), st.booleans())
def test_any_split_gives_the_same_requests(sizes: list[int], steps: list[int], asks_for_one: bool) -> None:
    frames = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    stream = framed(*frames)
    connection, pool = opened()
    sent = b""
    for step in [*steps, len(stream)]:
        sent += echoed(connection, stream[:step], asks_for_one=asks_for_one)
        stream = stream[step:]
        assert pool.out == connection.holds_buffer
    assert sent == b"".join(frames)
    assert (pool.out, connection.pending_bytes) == (0, 0)


def test_byte_by_byte() -> None:
    connection, _ = opened()
    stream = framed(b"one", b"2", b"three")
    assert b"".join(echoed(connection, stream[i : i + 1]) for i in range(len(stream))) == b"one2three"


def received_as_one(connection: ServerConnection, pool: Pool, data: bytes) -> bytes | None:
    """Return the request that the fast path finds in the scratch buffer, or None."""
    pool.scratch[: len(data)] = data
    found = connection.only_request(len(data))
    return None if found is None else bytes(found)


def test_one_whole_request_can_be_taken_at_once() -> None:
    connection, pool = opened(frame_bytes_max=100)
    assert received_as_one(connection, pool, framed(b"x" * 100)) == b"x" * 100
    assert connection.is_open
    connection.respond(b"answer")
    assert received_as_one(connection, pool, framed(b"2")) == b"2"


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\0", framed(b""), framed(b"two")[:-1], framed(b"1", b"2"), framed(b"x" * 101)]
)
def test_whatever_is_not_one_whole_request_is_left_to_the_longer_way(data: bytes) -> None:
    connection, pool = opened(frame_bytes_max=100)
    assert received_as_one(connection, pool, data) is None
    assert (connection.pending_bytes, connection.is_open) == (0, False)


def test_a_request_behind_others_is_never_taken_before_them() -> None:
    connection, pool = opened()
    put(connection, framed(b"first"))
    assert bytes(connection.next_request() or b"") == b"first"
    assert received_as_one(connection, pool, framed(b"second")) is None, "one is open"
    put(connection, framed(b"second"))
    assert connection.next_request() is None
    connection.complete()
    assert received_as_one(connection, pool, framed(b"third")) is None, "one is in the backlog"
    assert bytes(connection.next_request() or b"") == b"second"
    connection.complete()
    put(connection, framed(b"fourth")[:6])
    assert connection.next_request() is None
    assert received_as_one(connection, pool, framed(b"urth")) is None, "one is arriving"
    connection.end()
    assert received_as_one(connection, pool, framed(b"fifth")) is None, "the connection has ended"


@given(st.lists(st.sampled_from((1, 50, 3000, 30_000)), min_size=1, max_size=12), st.integers(0, 1 << 30))
def test_answers_keep_the_order_of_requests_however_late_they_are(sizes: list[int], seed: int) -> None:
    """Another connection overwrites the shared scratch buffer between any two steps."""
    chance = Random(seed)
    frames = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    stream = framed(*frames)
    connection, pool = opened()
    asked, answered = 0, b""
    open_frame: bytes | None = None
    for _ in count():
        if open_frame is not None and (not stream or connection.is_full or chance.random() < 0.5):
            connection.respond(open_frame)
            open_frame = None
        elif stream and not connection.is_full:
            step = chance.randint(1, 40_000)
            stream = put(connection, stream[:step]) + stream[step:]
        frame = connection.next_request(is_paused=bool(stream) and chance.random() < 0.5)
        assert connection.rest is None or frame is not None
        if frame is not None:
            assert open_frame is None
            open_frame = bytes(frame)
            assert open_frame == frames[asked]
            asked += 1
            assert connection.next_request() is None
        answered += connection.data_to_send()
        pool.scratch[:] = bytes(SCRATCH_BYTES)
        if len(answered) == sum(sizes):
            break
    assert answered == b"".join(frames)
    assert pool.out == 0 or connection.holds_buffer


def test_requests_behind_an_open_one_wait_in_a_backlog_with_a_limit() -> None:
    connection, _ = opened()
    put(connection, framed(b"first", b"second"))
    assert bytes(connection.next_request() or b"") == b"first"
    assert connection.rest is not None
    assert connection.next_request() is None
    assert connection.rest is None
    assert not connection.is_full
    while connection.pending_bytes < BACKLOG_BYTES_MAX:
        put(connection, framed(b"x" * 996))
        assert connection.next_request() is None
    assert connection.is_full
    connection.complete()
    assert bytes(connection.next_request() or b"") == b"second"


@pytest.mark.parametrize("size", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\x10\0\1", b"\x7f\xff\xff\xff"])
def test_a_size_beyond_the_limits_is_refused_before_memory_is_taken(size: bytes) -> None:
    connection, pool = opened(1 << 20)
    put(connection, framed(b"good") + size + b"rest")
    assert bytes(connection.next_request() or b"") == b"good"
    connection.respond(b"answer")
    with pytest.raises(FrameSizeError, match="1 to 1048576 are allowed") as caught:
        connection.next_request()
    assert caught.value.beginning == size
    assert pool.lent == []
    assert connection.data_to_send() == b"answer"
    put(connection, framed(b"more"))
    assert connection.next_request() is None
    assert connection.pending_bytes == 0


def test_memory_grows_with_what_has_arrived_and_is_given_back() -> None:
    connection, pool = opened(100 << 20)
    frame = b"r" * (1 << 20)
    data = framed(frame)
    put(connection, data[:10])
    assert connection.next_request() is None
    assert pool.lent == [FRAME_START_BYTES]
    rest = data[10:]
    while rest:
        rest = put(connection, rest)
        assert pool.out == 1
        assert pool.lent[-1] <= max(FRAME_START_BYTES, 2 * (len(data) - len(rest)))
        found = connection.next_request()
    assert found is not None
    assert bytes(found) == frame
    assert pool.out == 1
    connection.respond(b"")
    assert connection.next_request() is None
    assert pool.out == 0
    # A connection that has sent so much once is lent as much at once.
    put(connection, data[:10])
    connection.next_request()
    assert pool.lent[-1] == 1 << 20


def test_a_connection_that_is_lent_nothing_ends() -> None:
    connection, pool = opened()
    pool.refuses = True
    put(connection, framed(b"x" * 1000)[:100])
    assert connection.next_request() is None
    put(connection, b"y" * 100)
    assert connection.next_request() is None
    assert (connection.pending_bytes, connection.holds_buffer) == (0, False)


def test_the_end_gives_memory_back() -> None:
    connection, pool = opened()
    put(connection, framed(b"x" * 1000)[:100])
    connection.next_request()
    assert connection.holds_buffer
    connection.end()
    assert pool.out == 0
    assert connection.next_request() is None


def test_illegal_events_have_a_typed_error() -> None:
    connection, _ = opened()
    for call in (connection.complete, connection.set_aside, lambda: connection.respond(b"")):
        with pytest.raises(ConnectionStateError, match="no request is open"):
            call()
    for size in (-1, SCRATCH_BYTES + 1):
        with pytest.raises(ConnectionStateError, match="the lent buffer cannot hold"):
            connection.received(size)
    put(connection, framed(b"a", b"b"))
    with pytest.raises(ConnectionStateError, match="the lent buffer cannot hold"):
        connection.received(1)
    assert connection.next_request() is not None
    connection.complete()
    with pytest.raises(ConnectionStateError, match="no request is open"):
        connection.complete()


def test_a_fault_on_purpose_lets_a_later_request_overtake() -> None:
    connection, _ = opened()
    put(connection, framed(b"1", b"2"))
    assert bytes(connection.next_request() or b"") == b"1"
    connection.set_aside()
    assert bytes(connection.next_request() or b"") == b"2"
    connection.respond(b"two")
    connection.respond(b"one")
    assert connection.data_to_send() == b"twoone"
    with pytest.raises(ConnectionStateError):
        connection.complete()


def test_a_loan_is_given_back_where_a_larger_one_is_refused() -> None:
    connection, pool = opened()
    size = 8 * FRAME_START_BYTES
    data = put(connection, framed(b"x" * size))
    assert connection.next_request() is None
    assert pool.out == 1
    pool.refuses = True
    while data and connection.holds_buffer:
        data = put(connection, data)
        assert connection.next_request() is None
    assert data, "the frame is not whole yet"
    assert (pool.out, connection.holds_buffer) == (0, False)
