"""Errors of a connection: mistakes of the peer, and mistakes of the code that drives the object."""

from __future__ import annotations

from penstock.errors import DecodeError, PenstockError


class FrameSizeError(DecodeError):
    """A frame announces a size that is negative, too small for a header, or above the limit.

    No more frames can be read, because the start of the next frame is unknown. `size` is the announced size
    in bytes.
    """

    def __init__(self, message: str, size: int) -> None:
        super().__init__(message)
        self.size = size

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.args[0], self.size))

    @property
    def beginning(self) -> bytes:
        """The four bytes that were read as a size; they may reveal the peer's protocol."""
        return self.size.to_bytes(4, "big", signed=True)


class UnexpectedFrameError(DecodeError):
    """A broker sent a frame while no request was in flight."""


class CorrelationError(DecodeError):
    """A broker answered a request that is not the oldest one in flight; answers must keep the order."""


class ConnectionStateError(PenstockError, RuntimeError):
    """A method was called in a state that does not allow it: a bug of the calling code, not of the peer."""
