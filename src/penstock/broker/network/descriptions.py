"""What a connection writes to the log about requests and first bytes."""

from __future__ import annotations

from penstock.common.suggestions import short_repr


def wrong_protocol(data: bytes) -> str:
    """Return what the first bytes of a connection are, where they are no size of a frame."""
    if data[:2] == b"\x16\x03":
        return ": a client with TLS at a listener without TLS"
    if data in (b"GET ", b"POST", b"HEAD", b"PUT "):
        return ": an HTTP request"
    return ""


def described(frame: memoryview) -> str:
    """Return which request a frame has, for the log."""
    if len(frame) < 4:
        return "a request"
    key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
    return f"a request with API key {key}, version {version},"


def caller(peer: str, client_id: str | None) -> str:
    """Return who has sent requests, for the log."""
    return peer if client_id is None else f"{peer}, client id {short_repr(client_id)}"
