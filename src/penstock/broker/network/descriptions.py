"""Descriptions of requests and of the first bytes of connections, for the log."""

from __future__ import annotations

from penstock.common.suggestions import short_repr


def wrong_protocol(data: bytes) -> str:
    """Return a phrase for the log if a connection's first bytes are TLS or HTTP, otherwise ""."""
    if data[:2] == b"\x16\x03":
        return ": a client with TLS at a listener without TLS"
    if data in (b"GET ", b"POST", b"HEAD", b"PUT "):
        return ": an HTTP request"
    return ""


def described(frame: memoryview) -> str:
    """Return a description of the request in a frame, by API key and version, for the log."""
    if len(frame) < 4:
        return "a request"
    key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
    return f"a request with API key {key}, version {version},"


def caller(peer: str, client_id: str | None) -> str:
    """Return the sender of a request as text for the log: the address, and the client id if there is one."""
    return peer if client_id is None else f"{peer}, client id {short_repr(client_id)}"
