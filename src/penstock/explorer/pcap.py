"""Reads capture files of tcpdump and Wireshark: pcap and pcapng, packet by packet, down to TCP.

Supported are Ethernet (with VLAN tags), Linux cooked captures, loopback and raw IP; IPv4 and IPv6. Fragments
of IP packets and protocols other than TCP are left out. A file that ends in the middle of a packet, because
its tcpdump was killed, yields the packets before.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from typing import NamedTuple

from penstock.errors import DecodeError

_PCAP_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1_000_000),
    b"\xa1\xb2\xc3\xd4": (">", 1_000_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1_000_000_000),
    b"\xa1\xb2\x3c\x4d": (">", 1_000_000_000),
}
_SECTION = 0x0A0D0D0A
_SECTION_BYTES = _SECTION.to_bytes(4, "big")
_INTERFACE, _PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 1, 2, 3, 6
_TIMESTAMP_RESOLUTION = 9
_YEAR_10000 = 253_402_300_800

NULL, ETHERNET, LOOP, LINUX_COOKED, LINUX_COOKED_2 = 0, 1, 108, 113, 276
_RAW = (12, 14, 101, 228, 229)
_IP, _IP6 = 0x0800, 0x86DD
_VLANS = (0x8100, 0x88A8, 0x9100)
_TCP = 6
_EXTENSIONS = (0, 43, 60, 135)
"""Headers of IPv6 that may stand before TCP: hop-by-hop, routing, destination, mobility."""

FIN, SYN, RST, ACK = 1, 2, 4, 16


class TcpSegment(NamedTuple):
    """One TCP segment. Addresses are ``host:port``; the time is in seconds since 1970."""

    time: float
    source: str
    destination: str
    sequence: int
    flags: int
    data: bytes


def is_capture(data: bytes) -> bool:
    """Return True if a file with this beginning is a capture."""
    return data[:4] in _PCAP_MAGICS or data[:4] == _SECTION_BYTES


def read_segments(data: bytes) -> Iterator[TcpSegment]:
    """Yield the TCP segments of a capture file, in the file's order.

    Raises:
        DecodeError: the data are not a capture file.
    """
    if data[:4] == _SECTION_BYTES:
        packets = _pcapng(data)
    elif data[:4] in _PCAP_MAGICS:
        packets = _pcap(data)
    else:
        raise DecodeError("neither pcap nor pcapng: capture with tcpdump -w FILE")
    for time, link, packet in packets:
        try:
            segment = _segment(time, link, packet)
        except (struct.error, IndexError, ValueError):
            continue  # cut short by the capture's own limit, or not what its header says
        if segment is not None:
            yield segment


def _pcap(data: bytes) -> Iterator[tuple[float, int, bytes]]:
    order, ticks = _PCAP_MAGICS[data[:4]]
    if len(data) < 24:
        raise DecodeError("a capture file whose header is cut short")
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    position = 24
    while position + 16 <= len(data):
        seconds, fraction, size, _ = struct.unpack_from(order + "IIII", data, position)
        position += 16
        if position + size > len(data):
            return
        yield seconds + fraction / ticks, link, data[position : position + size]
        position += size


def _pcapng(data: bytes) -> Iterator[tuple[float, int, bytes]]:
    order = "<"
    interfaces: list[tuple[int, float]] = []
    position = 0
    while position + 12 <= len(data):
        kind = struct.unpack_from(order + "I", data, position)[0]
        if kind == _SECTION:
            order = "<" if data[position + 8 : position + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
        size = struct.unpack_from(order + "I", data, position + 4)[0]
        if size < 12 or size % 4 or position + size > len(data):
            return
        body = data[position + 8 : position + size - 4]
        position += size
        if kind == _INTERFACE and len(body) >= 8:
            interfaces.append((struct.unpack_from(order + "H", body)[0], _tick(body, order)))
        elif kind in (_ENHANCED_PACKET, _PACKET) and len(body) >= 20:
            width = "I" if kind == _ENHANCED_PACKET else "H2x"
            number, high, low, captured = struct.unpack_from(f"{order}{width}III", body)
            if number < len(interfaces):
                link, tick = interfaces[number]
                time = ((high << 32) | low) * tick
                yield time if time < _YEAR_10000 else 0.0, link, body[20 : 20 + captured]
        elif kind == _SIMPLE_PACKET and len(body) >= 4 and interfaces:
            yield 0.0, interfaces[0][0], body[4 : 4 + struct.unpack_from(order + "I", body)[0]]


def _tick(body: bytes, order: str) -> float:
    """Return the unit of a capture interface's timestamps, in seconds."""
    position = 8
    while position + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, position)
        if code == _TIMESTAMP_RESOLUTION and size >= 1 and position + 4 < len(body):
            resolution = body[position + 4]
            exponent = resolution & 0x7F
            return float(2.0**-exponent if resolution & 0x80 else 10.0**-exponent)
        position += 4 + (size + 3) // 4 * 4
        if code == 0:
            break
    return 1e-6


def _segment(time: float, link: int, packet: bytes) -> TcpSegment | None:
    position, kind = _network(link, packet)
    if kind == _IP:
        found = _ip4(packet, position)
    elif kind == _IP6:
        found = _ip6(packet, position)
    else:
        return None
    if found is None:
        return None
    source, destination, position, end = found
    source_port, destination_port, sequence, _, offset, flags = struct.unpack_from(
        ">HHIIBB", packet, position
    )
    data = packet[position + (offset >> 4) * 4 : end]
    return TcpSegment(
        time, f"{source}:{source_port}", f"{destination}:{destination_port}", sequence, flags, data
    )


def _network(link: int, packet: bytes) -> tuple[int, int]:
    """Return the position of the IP packet in a captured packet, and its EtherType."""
    if link == ETHERNET:
        position = 12
        kind = int.from_bytes(packet[position : position + 2], "big")
        while kind in _VLANS:
            position += 4
            kind = int.from_bytes(packet[position : position + 2], "big")
        return position + 2, kind
    if link == LINUX_COOKED:
        return 16, int.from_bytes(packet[14:16], "big")
    if link == LINUX_COOKED_2:
        return 20, int.from_bytes(packet[:2], "big")
    position = 4 if link in (NULL, LOOP) else 0
    if position == 0 and link not in _RAW:
        return 0, 0
    return position, {4: _IP, 6: _IP6}.get(packet[position] >> 4, 0)


def _ip4(packet: bytes, start: int) -> tuple[str, str, int, int] | None:
    length = int.from_bytes(packet[start + 2 : start + 4], "big")
    fragment = int.from_bytes(packet[start + 6 : start + 8], "big") & 0x3FFF
    if packet[start + 9] != _TCP or fragment:
        return None
    # Behind the packet there may be padding. A length of 0 is left to the network card to fill in.
    end = start + length if length else len(packet)
    source = str(ipaddress.IPv4Address(packet[start + 12 : start + 16]))
    destination = str(ipaddress.IPv4Address(packet[start + 16 : start + 20]))
    return source, destination, start + (packet[start] & 15) * 4, end


def _ip6(packet: bytes, start: int) -> tuple[str, str, int, int] | None:
    length = int.from_bytes(packet[start + 4 : start + 6], "big")
    end = start + 40 + length if length else len(packet)
    following, position = packet[start + 6], start + 40
    while following in _EXTENSIONS:
        following, position = packet[position], position + 8 * (packet[position + 1] + 1)
    if following != _TCP:
        return None
    source = ipaddress.IPv6Address(packet[start + 8 : start + 24])
    destination = ipaddress.IPv6Address(packet[start + 24 : start + 40])
    return f"[{source}]", f"[{destination}]", position, end
