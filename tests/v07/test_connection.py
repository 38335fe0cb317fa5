"""Tests of closing a connection to a 0.7 broker from another thread, at each point of a request."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from penstock.errors import EncodeError, NetworkError
from penstock.v07.connection import Connection07
from penstock.v07.wire import FetchPart, ProducePart

PART = FetchPart("t", 0, 0, 100)
PATIENCE_S = 20.0
FAR_S = 600.0
"""A socket timeout in seconds that is too long for any test to wait for."""


@contextlib.contextmanager
def asked(connection: Connection07) -> Iterator[Callable[[], BaseException]]:
    """Start a Fetch in a thread; yield a function that waits for the thread and returns its exception."""
    raised: list[BaseException] = []

    def fetch() -> None:
        try:
            connection.fetch(PART)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()

    def result() -> BaseException:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the fetch goes on"
        (error,) = raised
        return error

    yield result


def test_a_thread_that_waits_for_an_answer_is_woken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = Connection07("127.0.0.1", silent.getsockname()[1], timeout_s=FAR_S)
        with asked(connection) as result:
            accepted, _ = silent.accept()
            with accepted:
                assert accepted.recv(1)  # the request is on its way: its sender waits, or is about to
                connection.close()
                assert isinstance(result(), NetworkError)
                while accepted.recv(1 << 16):
                    pass  # and the socket is closed


def test_a_thread_that_connects_is_woken() -> None:
    """The server's queue is full, so that connecting would otherwise wait until the timeout."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        connection = Connection07("127.0.0.1", full.getsockname()[1], timeout_s=FAR_S)
        result = stack.enter_context(asked(connection))
        while connection._socket is None:
            pass
        connection.close()
        assert isinstance(result(), NetworkError)


def test_the_socket_of_a_request_is_closed_by_its_own_thread_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another socket could otherwise get the same descriptor before the thread reads from it."""
    at_read, go_on = threading.Event(), threading.Event()
    receive = Connection07._receive
    used: list[socket.socket] = []

    def late(self: Connection07, connected: socket.socket, size: int) -> memoryview:
        used.append(connected)
        at_read.set()
        assert go_on.wait(PATIENCE_S)
        return receive(self, connected, size)

    monkeypatch.setattr(Connection07, "_receive", late)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = Connection07("127.0.0.1", silent.getsockname()[1], timeout_s=FAR_S)
        with asked(connection) as result:
            assert at_read.wait(PATIENCE_S)
            connection.close()
            assert used[0].fileno() >= 0
            go_on.set()
            assert isinstance(result(), NetworkError)
            assert [each.fileno() for each in used] == [-1]


def test_a_request_that_ends_well_while_it_is_closed_leaves_no_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread has already read the response when the connection is closed.

    It closes the socket when its request is done.
    """
    exchange = Connection07._exchange
    connection = Connection07("127.0.0.1", 1)
    used: list[socket.socket | None] = []

    def closed_behind(self: Connection07, frame: bytes) -> memoryview:
        answer = exchange(self, frame)
        used.append(self._socket)
        self.close()
        return answer

    monkeypatch.setattr(Connection07, "_exchange", closed_behind)
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = Connection07("127.0.0.1", server.getsockname()[1])

        def answer() -> None:
            accepted, _ = server.accept()
            with accepted:
                accepted.recv(1 << 16)
                accepted.sendall(b"\0\0\0\2\0\0")
                accepted.recv(1)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        assert len(connection.fetch(PART).checked()) == 0
        assert used[0] is not None
        assert used[0].fileno() == -1
        thread.join(PATIENCE_S)
        with pytest.raises(NetworkError, match="this client has closed the connection"):
            connection.fetch(PART)


def test_topics_that_are_produced_to_are_ascii() -> None:
    """The protocol requires ASCII.

    Release 0.7.2 accepts other topics, but its own clients miscount their bytes.
    """
    connection = Connection07("127.0.0.1", 1)
    with pytest.raises(EncodeError, match="ASCII"):
        connection.produce([ProducePart("gr\u00fcn", 0, b"")])


def test_a_connection_that_is_idle_is_closed_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = Connection07("127.0.0.1", server.getsockname()[1])
        thread = threading.Thread(target=lambda: connection.fetch(PART), daemon=True)
        thread.start()
        accepted, _ = server.accept()
        with accepted:
            accepted.recv(1 << 16)
            accepted.sendall(b"\0\0\0\2\0\0")
            thread.join(PATIENCE_S)
            connection.close()
            accepted.settimeout(PATIENCE_S)
            assert accepted.recv(1) == b""
