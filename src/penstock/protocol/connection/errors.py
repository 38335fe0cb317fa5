"""Errors of a connection: what the peer did wrong, and what the driver of the object did wrong."""

from __future__ import annotations

from penstock.errors import DecodeError, PenstockError


class FrameSizeError(DecodeError):
    """A frame announces a size that is negative, too small for a header, or above the limit.

    The stream cannot go on: where the next frame begins is not known. `size` is the announced number of
    bytes.
    """

    def __init__(self, message: str, size: int) -> None:
        super().__init__(message)
        self.size = size

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.args[0], self.size))

    @property
    def beginning(self) -> bytes:
        """The four bytes that were read as a size; they may show the peer's protocol."""
        return self.size.to_bytes(4, "big", signed=True)


class UnexpectedFrameError(DecodeError):
    """A broker sent a frame while no request was in flight."""


class CorrelationError(DecodeError):
    """A broker answered another request than the oldest one in flight. Brokers answer in request order."""


class ConnectionStateError(PenstockError, RuntimeError):
    """The object was called in a state that does not allow it: a bug of its driver, not of the peer."""
