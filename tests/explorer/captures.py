"""Functions that build pcap and pcapng captures from TCP segments, including unusual ones."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

FIN, SYN, ACK = 1, 2, 16
CLIENT, BROKER = ("10.0.0.1", 40000), ("10.0.0.2", 9092)

Place = tuple[str, int]


@dataclass
class Packet:
    """One TCP segment with its addresses, sequence number and flags."""

    source: Place
    destination: Place
    sequence: int
    data: bytes = b""
    flags: int = ACK
    time: float = 0.0


def stream(
    source: Place, destination: Place, data: bytes, *, first: int = 1000, size: int = 100, opens: bool = True
) -> Iterator[Packet]:
    """Yield the TCP segments that carry `data`, `size` bytes each, after a SYN if `opens` is set.

    The first byte has the sequence number `first`.
    """
    if opens:
        yield Packet(source, destination, (first - 1) % 2**32, flags=SYN)
    for position in range(0, len(data), size):
        yield Packet(source, destination, (first + position) % 2**32, data[position : position + size])


def timed(packets: Iterable[Packet], start: float = 1_700_000_000.0, step: float = 0.001) -> list[Packet]:
    return [replace(packet, time=start + number * step) for number, packet in enumerate(packets)]


def _tcp(packet: Packet) -> bytes:
    ports = (packet.source[1], packet.destination[1])
    # Twelve bytes of options, as every segment has that carries timestamps.
    return (
        struct.pack(">HHIIBBHHH", *ports, packet.sequence, 0, 8 << 4, packet.flags, 0, 0, 0)
        + b"\1" * 12
        + packet.data
    )


def ip(packet: Packet) -> bytes:
    """Return the IP packet of a segment; the addresses decide between IPv4 and IPv6."""
    tcp = _tcp(packet)
    source, destination = (
        ipaddress.ip_address(place[0]).packed for place in (packet.source, packet.destination)
    )
    if len(source) == 4:
        return (
            struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0) + source + destination + tcp
        )
    return struct.pack(">IHBB", 6 << 28, len(tcp) + 8, 60, 64) + source + destination + b"\6" + bytes(7) + tcp


def ethernet(packet: Packet, vlan: bool = False) -> bytes:
    """Return the Ethernet frame of a segment, padded to 60 bytes."""
    kind = b"\x08\x00" if "." in packet.source[0] else b"\x86\xdd"
    tag = b"\x81\x00\x00\x05" if vlan else b""
    return (bytes(12) + tag + kind + ip(packet)).ljust(60, b"\0")


def pcap(packets: Iterable[Packet], link: int = 1, order: str = "<", nanoseconds: bool = False) -> bytes:
    ticks = 1_000_000_000 if nanoseconds else 1_000_000
    out = [
        struct.pack(order + "IHHIIII", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4, 2, 4, 0, 0, 262144, link)
    ]
    for packet in packets:
        body = framed(packet, link)
        seconds = int(packet.time)
        fraction = round((packet.time - seconds) * ticks)
        out += [struct.pack(order + "IIII", seconds, fraction, len(body), len(body)), body]
    return b"".join(out)


def framed(packet: Packet, link: int) -> bytes:
    if link == 1:
        return ethernet(packet)
    kind = 0x0800 if "." in packet.source[0] else 0x86DD
    before = {
        0: struct.pack("<I", 2),
        101: b"",
        113: bytes(14) + kind.to_bytes(2, "big"),
        276: kind.to_bytes(2, "big") + bytes(18),
    }
    return before[link] + ip(packet)


def pcapng(packets: Iterable[Packet], order: str = "<") -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = len(body) + 12
        return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)

    # Timestamps in units of 2**-20 seconds.
    options = struct.pack(order + "HHB3xHH", 9, 1, 0x80 | 20, 0, 0)
    out = [
        block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack(order + "HHI", 1, 0, 0) + options),
        block(5, bytes(12)),
    ]
    for packet in packets:
        body = ethernet(packet, vlan=True)
        ticks = round(packet.time * 2**20)
        head = struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(body), len(body))
        out.append(block(6, head + body))
    return b"".join(out)
