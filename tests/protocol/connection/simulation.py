"""A simulation of clients and brokers that exchange messages over an unreliable network without sockets.

One seed determines all random events and the clock. Bytes are split, delayed and joined, and connections are
cut. Clients send requests that exceed the broker's size limit. Brokers send responses that are too large or
belong to another request or to none, and sometimes have no memory for a request. All broker connections read
into one scratch buffer, which is overwritten whenever none of them may use it.

`World(seed).run()` raises AssertionError with the seed if a message is changed, lost, duplicated or
reordered, if a connection holds more memory than its limits, or if an error is not the expected one.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from penstock.errors import DecodeError
from penstock.protocol.codec import codec_for
from penstock.protocol.connection.client import ClientConnection, CorrelationError, UnexpectedFrameError
from penstock.protocol.connection.server import BACKLOG_BYTES_MAX, FRAME_START_BYTES, ServerConnection
from penstock.protocol.framing import (
    ConnectionStateError,
    FrameSizeError,
    decode_request_header,
    encode_response,
)
from penstock.protocol.messages.fetch_request import FetchRequest
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse

SCRATCH_BYTES = 20_000
REQUEST_BYTES_MAX = 150_000
ANSWER_BYTES_MAX = 200_000
LINKS = 3
IN_FLIGHT_MAX = 6
CHAOS_S = 60.0
NO_ANSWER = "no answer"
"""The prefix of group ids that mark requests to which the broker sends no response."""

REQUEST_SIZES = (0, 1, 30, 500, 5_000, SCRATCH_BYTES - 60, SCRATCH_BYTES, 70_000, 140_000)
ANSWER_SIZES = (0, 1, 30, 2_000, 16_300, 17_000, 70_000, 190_000)
FETCH, HEARTBEAT = 12, 4
"""The versions of the two simulated requests, which carry long strings and records."""


def records_of(token: int, size: int) -> bytes:
    """Return the records with which the broker answers a Fetch; each token gives different bytes."""
    return (token.to_bytes(4, "big") * (size // 4 + 1))[:size]


class Pool:
    """The memory that broker connections borrow for large requests. Returned memory is overwritten."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.loans: dict[int, int] = {}

    def lend(self, size: int) -> bytearray | None:
        assert size <= max(REQUEST_BYTES_MAX, FRAME_START_BYTES), f"{size} bytes are lent for one frame"
        if self.world.chance("memory", 0.02):
            self.world.note("refused memory")
            return None
        buffer = bytearray(b"\xaa" * size)
        self.loans[id(buffer)] = size
        return buffer

    def give_back(self, buffer: bytearray) -> None:
        del self.loans[id(buffer)]
        buffer[:] = b"\xee" * len(buffer)


class Direction:
    """The bytes under way to one end of a connection, as a queue of pieces that arrive in order."""

    def __init__(self, link: Link, arrive: Callable[[bytes], bytes]) -> None:
        self.link = link
        self.arrive = arrive
        self.pieces: deque[bytes] = deque()
        self.is_scheduled = False

    def write(self, data: bytes) -> None:
        world = self.link.world
        position = 0
        while position < len(data):
            size = world.dice("splits").choice((1, 2, 3, 4, 5, 100, 4_000, 30_000, 1 << 20))
            self.pieces.append(data[position : position + size])
            position += size
        self.schedule()

    def schedule(self) -> None:
        if not self.is_scheduled:
            self.is_scheduled = True
            world = self.link.world
            world.after(world.dice("delays").choice((0.0, 0.0, 0.001, 0.05, 0.5)), self.deliver)

    def deliver(self) -> None:
        """Deliver the next piece or several joined ones; bytes that the receiver cannot take stay queued."""
        self.is_scheduled = False
        link, world = self.link, self.link.world
        if link.is_cut or not self.pieces:
            return
        together = world.dice("splits").choice((1, 1, 1, 2, 5, 50))
        data = b"".join(self.pieces.popleft() for _ in range(min(together, len(self.pieces))))
        rest = self.arrive(data)
        if rest:
            self.pieces.appendleft(rest)
        if self.pieces and not link.is_cut:
            self.schedule()


class Link:
    """One simulated connection, with a client that sends requests and a broker that answers them."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.taken: list[int] = []
        self.client: ClientConnection[int] = ClientConnection(
            f"client {number}", frame_bytes_max=ANSWER_BYTES_MAX, take=self.take
        )
        self.server = ServerConnection(world.scratch, world.pool, REQUEST_BYTES_MAX)
        self.to_server = Direction(self, self.arrives_at_server)
        self.to_client = Direction(self, self.arrives_at_client)
        self.is_cut = False
        self.asked: deque[tuple[Any, int]] = deque()
        """The requests, with correlation ids, that the broker has not processed yet, in order."""
        self.due: deque[tuple[int, Any]] = deque()
        """The tokens of the requests in flight, each with the expected response, in order."""
        self.open: tuple[Any, int] | None = None
        """The request that the broker is processing, with its correlation id; None without one."""
        self.error_due: type[Exception] | None = None
        """The exception that the client must raise for the last bytes the broker sent; None for no error."""
        self.oversize_request = False

    def take(self, size: int) -> memoryview:
        assert size <= ANSWER_BYTES_MAX, f"{size} bytes are taken for an answer beyond the limit"
        self.taken.append(size)
        return memoryview(bytearray(size))

    # --- the application -------------------------------------------------------------------------------

    def ask(self) -> None:
        """Send a request, if the connection is alive and few requests are in flight."""
        world = self.world
        ends = self.is_cut or self.oversize_request or self.error_due is UnexpectedFrameError
        if ends or self.client.requests_in_flight >= IN_FLIGHT_MAX:
            return
        token = next(world.tokens)
        kind = world.dice("requests").random()
        size = world.dice("requests").choice(REQUEST_SIZES)
        if world.chance("oversize", 0.01):
            world.note("request beyond the limit")
            size, self.oversize_request = REQUEST_BYTES_MAX, True
        message: FetchRequest | HeartbeatRequest
        if kind < 0.4 and not self.oversize_request:
            answer_size = world.dice("requests").choice(ANSWER_SIZES)
            message = FetchRequest(max_wait_ms=token, min_bytes=answer_size)
            partition = PartitionData(records=memoryview(records_of(token, answer_size)))
            answer: Any = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
            chunks = self.client.request(message, FETCH, token)
            self.due.append((token, answer))
        elif kind < 0.9:
            message = HeartbeatRequest(group_id="g" * size, generation_id=token)
            chunks = self.client.request(message, HEARTBEAT, token)
            self.due.append((token, HeartbeatResponse(throttle_time_ms=token)))
        else:
            message = HeartbeatRequest(group_id=NO_ANSWER + "g" * size, generation_id=token)
            chunks = self.client.request_without_answer(message, HEARTBEAT)
        self.asked.append((message, self.client.requests_sent))
        self.to_server.write(b"".join(chunks))

    def arrives_at_client(self, data: bytes) -> bytes:
        client = self.client
        while data and not self.is_cut:
            buffer = client.get_buffer()
            assert buffer, "the client's end lends no buffer"
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            data = data[size:]
            client.received(size)
            assert client.get_buffer().nbytes <= ANSWER_BYTES_MAX
            try:
                while (found := client.next_answer()) is not None:
                    assert self.due, "an answer that is not due"
                    assert found == self.due.popleft(), "another answer than the one that is due"
                    self.world.note("answer")
            except DecodeError as error:
                self.client_fails(error)
                return b""
        return data

    def client_fails(self, error: DecodeError) -> None:
        """Check that the client's error is the expected one, and that the client stops after the error."""
        assert type(error) is self.error_due, f"{error!r} instead of {self.error_due}"
        self.world.note(type(error).__name__)
        for call in (self.client.next_answer, lambda: self.client.request(FetchRequest(), FETCH, -1)):
            try:
                call()
            except (type(error), ConnectionStateError):
                continue
            raise AssertionError("the client's end goes on after an error")
        self.error_due = None
        self.cut()

    # --- the broker ------------------------------------------------------------------------------------

    def arrives_at_server(self, data: bytes) -> bytes:
        server, world = self.server, self.world
        while data and not server.is_full and not self.is_cut:
            buffer = server.get_buffer()
            assert buffer, "the broker's end lends no buffer"
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            data = data[size:]
            frame = server.only_request(size) if world.chance("shortcuts", 0.5) else None
            if frame is None:
                server.received(size)
            else:
                self.handle(bytes(frame))
            self.take_requests()
            world.check_memory()
        return data

    def take_requests(self) -> None:
        """Process requests until the broker must wait; answer each at once or later."""
        world, server = self.world, self.server
        is_paused = world.chance("pauses", 0.1)
        if is_paused:
            world.after(0.1, self.go_on)
        while not self.is_cut:
            try:
                frame = server.next_request(is_paused)
            except FrameSizeError as error:
                self.refuse(error.size)
                return
            if frame is None:
                break
            self.handle(bytes(frame))
        assert server.rest is None, "the shared buffer is still in use"
        world.scratch[:] = b"\xdd" * SCRATCH_BYTES
        if not (server.get_buffer() or server.is_full):
            raise AssertionError("no room, and not full")
        self.flush()

    def refuse(self, size: int) -> None:
        """Check that the broker was right to refuse a frame by its size, and cut the connection."""
        assert self.oversize_request, "a request within the limit is refused"
        assert size > REQUEST_BYTES_MAX
        assert len(self.asked) == 1, "a request before the one that is too large was not given out"
        self.world.note("request refused")
        self.flush()
        self.cut()

    def handle(self, frame: bytes) -> None:
        assert self.open is None, "two requests are open"
        header, position = decode_request_header(memoryview(frame))
        message, correlation_id = self.asked.popleft()
        assert header.correlation_id == correlation_id, "requests come in another order than they were sent"
        assert header.client_id == f"client {self.number}"
        version = FETCH if isinstance(message, FetchRequest) else HEARTBEAT
        assert codec_for(type(message), version).decode(frame, position) == (message, len(frame))
        self.open = (message, correlation_id)
        self.world.note("request")
        if self.world.chance("waits", 0.3):
            self.world.after(self.world.dice("waits").uniform(0, 2), self.answer_later)
        else:
            self.answer()

    def answer_later(self) -> None:
        if not self.is_cut:
            self.answer()
            self.go_on()

    def go_on(self) -> None:
        """Process requests that have arrived meanwhile, and continue reading."""
        if not self.is_cut:
            self.take_requests()
            if self.to_server.pieces:
                self.to_server.schedule()

    def answer(self) -> None:
        assert self.open is not None
        world, server = self.world, self.server
        (message, correlation_id), self.open = self.open, None
        if isinstance(message, HeartbeatRequest) and message.group_id.startswith(NO_ANSWER):
            server.complete()
            return
        if isinstance(message, FetchRequest):
            token, size = message.max_wait_ms, message.min_bytes
            partition = PartitionData(records=memoryview(records_of(token, size)))
            answer: Any = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
            version = FETCH
        else:
            answer = HeartbeatResponse(throttle_time_ms=message.generation_id)
            version = HEARTBEAT
        data = b"".join(encode_response(answer, version, correlation_id))
        if self.error_due is None and world.chance("bad answers", 0.02):
            data = self.bad_answer(data, correlation_id)
        server.respond(data)

    def bad_answer(self, good: bytes, correlation_id: int) -> bytes:
        """Return an invalid response instead of a good one, for which the client must raise an error."""
        kind = self.world.dice("bad answers").choice(("another", "large", "small"))
        self.world.note(f"bad answer: {kind}")
        if kind == "another":
            self.error_due = CorrelationError
            return good[:4] + (correlation_id + 1).to_bytes(4, "big") + good[8:]
        self.error_due = FrameSizeError
        size = ANSWER_BYTES_MAX + 1 if kind == "large" else 3
        return size.to_bytes(4, "big") + good[4:]

    def send_unasked(self) -> None:
        """Send a frame to the client that answers no request."""
        quiet = not (self.due or self.asked or self.to_client.pieces or self.to_server.pieces)
        if quiet and not self.is_cut and self.error_due is None and self.client.requests_in_flight == 0:
            self.world.note("unasked")
            self.error_due = UnexpectedFrameError
            self.to_client.write(b"\0\0\0\4abcd")

    def flush(self) -> None:
        data = self.server.data_to_send()
        assert self.server.queued_bytes == 0
        if data and not self.is_cut:
            self.to_client.write(data)
        if not (self.is_cut or self.server.holds_buffer) and self.has_ended:
            self.cut()

    @property
    def has_ended(self) -> bool:
        """True if the broker ended the connection because it was refused memory."""
        return self.server._has_ended

    # --- the end ---------------------------------------------------------------------------------------

    def cut(self) -> None:
        """Cut the connection: all bytes under way are lost."""
        if self.is_cut:
            return
        self.is_cut = True
        self.world.note("cut")
        assert self.client.abandon() == [token for token, _ in self.due], "requests in flight are forgotten"
        assert self.client.requests_in_flight == 0
        self.server.end()
        assert not self.server.holds_buffer
        assert self.server.pending_bytes == 0
        self.to_client.pieces.clear()
        self.to_server.pieces.clear()
        self.world.reconnect(self)


class World:
    """The simulation: its clock, its connections and its random events, all determined by one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0.0
        self.seen: Counter[str] = Counter()
        self.trace: list[tuple[float, str]] = []
        self.tokens = count(1)
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.pool = Pool(self)
        self._streams: dict[str, Random] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self.is_chaotic = True
        self.links = [Link(self, number) for number in range(LINKS)]

    def dice(self, kind: str) -> Random:
        """Return the random generator for one kind of event.

        Each kind has its own, so that changes to one kind leave the others' numbers unchanged.
        """
        if kind not in self._streams:
            self._streams[kind] = Random(f"{self.seed} {kind}")
        return self._streams[kind]

    def chance(self, kind: str, probability: float) -> bool:
        return self.dice(kind).random() < probability and self.is_chaotic

    def note(self, what: str) -> None:
        self.seen[what] += 1
        self.trace.append((self.now, what))

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), call))

    def reconnect(self, link: Link) -> None:
        """Replace a connection that was cut with a new one."""
        self.links[link.number] = Link(self, link.number)

    def check_memory(self) -> None:
        """Check that no broker connection holds more than one frame and a backlog.

        A connection returns borrowed memory as soon as its frame is processed.
        """
        lent = [link for link in self.links if link.server.holds_buffer]
        assert len(self.pool.loans) == len(lent), "a loan that no end knows of"
        for link in self.links:
            held = link.server.pending_bytes
            assert held <= BACKLOG_BYTES_MAX + SCRATCH_BYTES + REQUEST_BYTES_MAX + 8, f"{held} bytes are held"

    def live(self) -> None:
        """Run one step of the clients, with random faults."""
        link = self.dice("links").choice(self.links)
        link.ask()
        if self.chance("cuts", 0.01):
            link.cut()
        for each in list(self.links):
            if self.chance("unasked", 0.05):
                each.send_unasked()
        if self.now < CHAOS_S:
            self.after(self.dice("asks").expovariate(6), self.live)

    def run(self) -> None:
        """Run the simulation with faults, then without: by its end, all requests must be answered."""
        try:
            self.after(0.0, self.live)
            while self._events:
                self.now, _, call = heapq.heappop(self._events)
                if self.now > CHAOS_S:
                    self.is_chaotic = False
                call()
            for link in self.links:
                assert not link.due, f"{len(link.due)} requests have no answer"
                assert not link.asked, f"{len(link.asked)} requests did not arrive"
                assert link.server.pending_bytes == 0
                assert not link.client.is_receiving
            self.check_memory()
            assert not self.pool.loans
        except Exception as error:
            raise AssertionError(f"seed {self.seed}, after {self.now:.3f} s: {error!r}") from error
