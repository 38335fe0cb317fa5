"""Tests of buffers for responses, which are reused, also for other clients, once nothing refers to them."""

from __future__ import annotations

from collections.abc import Callable

from penstock.common.reused_buffers import LEFT_BYTES_MAX, LeftBuffers, ReusedMemory


def test_a_closed_client_leaves_its_buffers_to_the_next_one_for_a_while() -> None:
    left = LeftBuffers()
    later: list[tuple[float, Callable[[], None]]] = []
    first = ReusedMemory()
    seen = first.take(100_000)
    held, free = seen.obj, first.take(100_000).obj
    first.leave(left, lambda seconds, action: later.append((seconds, action)))
    second = ReusedMemory()
    second.take_over(left)
    assert second.take(100_000).obj is free
    assert second.take(100_000).obj is not held
    seen.release()
    assert second.take(100_000).obj is held
    other = first.take(100_000).obj
    assert other is not held
    assert other is not free
    second.leave(left, lambda seconds, action: later.append((seconds, action)))
    for _, action in later:
        action()
    assert left.take() == []


def test_what_is_left_by_closed_clients_has_a_limit() -> None:
    left = LeftBuffers()
    for _ in range(9):
        memory = ReusedMemory()
        memory.take(4 << 20)
        memory.leave(left, lambda *_: None)
    assert sum(map(len, left.take())) == LEFT_BYTES_MAX


def test_a_buffer_fits_an_answer_that_is_a_little_longer() -> None:
    memory = ReusedMemory()
    first = memory.take(3_400_000)
    buffer = first.obj
    first.release()
    second = memory.take(4_020_000)
    assert second.obj is buffer
    assert len(second) == 4_020_000
