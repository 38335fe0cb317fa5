"""The subject of a certificate in Java's notation (RFC 2253), which is the name of the principal.

The parts of the subject are in reverse order. CN, OU, O, L, ST, C, STREET, DC and UID have short names; other
types are numbers with the value in hexadecimal. Neither `ssl` nor `cryptography` prints names in this way.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import DecodeError

NAME_BYTES_MAX = 16 << 10
"""The most bytes of a subject, which becomes part of log lines and of cache keys."""

KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.11": "OU",
    "2.5.4.10": "O",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.6": "C",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""The short names that RFC 2253 gives to attribute types, by object identifier."""

_SEQUENCE, _SET, _OID, _VERSION, _EXTENSIONS = 0x30, 0x31, 0x06, 0xA0, 0xA3
_ALTERNATIVE_NAMES = bytes((0x55, 0x1D, 0x11))
"""The object identifier 2.5.29.17 of the certificate extension with subject alternative names."""

_ENCODINGS = {
    12: "utf-8",
    19: "ascii",
    20: "latin-1",
    22: "ascii",
    27: "latin-1",
    28: "utf-32-be",
    30: "utf-16-be",
}
"""A dict from the tag of each ASN.1 string type to its text encoding."""

_ESCAPED = frozenset(',+"\\<>;')


class _Element(NamedTuple):
    tag: int
    start: int
    """The position in the DER bytes of the first byte of the element's value."""
    end: int


def subject_of(certificate: bytes) -> str:
    """Return the subject of an X.509 certificate in DER, in Java's notation.

    Raises:
        DecodeError: the bytes are not a certificate, or the subject exceeds `NAME_BYTES_MAX`.
    """
    outer = _element(certificate, 0, len(certificate), _SEQUENCE)
    body = _element(certificate, outer.start, outer.end, _SEQUENCE)
    fields = _elements(certificate, body)
    # version (optional), serial number, signature, issuer, validity, subject
    position = 5 if fields and fields[0].tag == _VERSION else 4
    if len(fields) <= position or fields[position].tag != _SEQUENCE:
        raise DecodeError("a certificate without a subject")
    subject = fields[position]
    if subject.end - subject.start > NAME_BYTES_MAX:
        raise DecodeError(f"the subject of a certificate has more than {NAME_BYTES_MAX} bytes")
    parts = [_relative_name(certificate, each) for each in _elements(certificate, subject)]
    return ",".join(reversed(parts))


def alternative_names_of(certificate: bytes) -> frozenset[bytes]:
    """Return the subject alternative names of an X.509 certificate in DER, each with its tag and length.

    Raises:
        DecodeError: the bytes are not a certificate.
    """
    outer = _element(certificate, 0, len(certificate), _SEQUENCE)
    body = _element(certificate, outer.start, outer.end, _SEQUENCE)
    names: set[bytes] = set()
    for field in _elements(certificate, body):
        if field.tag != _EXTENSIONS:
            continue
        for extension in _elements(certificate, _element(certificate, field.start, field.end, _SEQUENCE)):
            parts = _elements(certificate, extension)
            if parts and certificate[parts[0].start : parts[0].end] == _ALTERNATIVE_NAMES:
                value = _element(certificate, parts[-1].start, parts[-1].end, _SEQUENCE)
                position = value.start
                for name in _elements(certificate, value):
                    names.add(certificate[position : name.end])
                    position = name.end
    return frozenset(names)


def _relative_name(data: bytes, element: _Element) -> str:
    if element.tag != _SET:
        raise DecodeError("the subject of a certificate is malformed")
    return "+".join(_attribute(data, each) for each in _elements(data, element))


def _attribute(data: bytes, element: _Element) -> str:
    pair = _elements(data, element)
    if element.tag != _SEQUENCE or len(pair) != 2 or pair[0].tag != _OID:
        raise DecodeError("the subject of a certificate is malformed")
    kind = _object_identifier(data[pair[0].start : pair[0].end])
    value = pair[1]
    keyword, encoding = KEYWORDS.get(kind), _ENCODINGS.get(value.tag)
    if keyword is None or encoding is None:
        whole = data[pair[0].end : value.end]
        return f"{keyword or kind}=#{whole.hex()}"
    try:
        text = data[value.start : value.end].decode(encoding)
    except UnicodeDecodeError:
        raise DecodeError("the subject of a certificate has text that cannot be read") from None
    return f"{keyword}={_quoted(text)}"


def _quoted(text: str) -> str:
    characters = [f"\\{each}" if each in _ESCAPED else "\\00" if each == "\0" else each for each in text]
    if characters and text[0] in "# ":
        characters[0] = f"\\{text[0]}"
    if len(characters) > 1 and text[-1] == " ":
        characters[-1] = "\\ "
    return "".join(characters)


def _object_identifier(data: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise DecodeError("the subject of a certificate is malformed")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _elements(data: bytes, within: _Element) -> list[_Element]:
    found = []
    position = within.start
    while position < within.end:
        element = _element(data, position, within.end)
        found.append(element)
        position = element.end
    return found


def _element(data: bytes, position: int, end: int, tag: int | None = None) -> _Element:
    if end - position < 2 or (tag is not None and data[position] != tag):
        raise DecodeError("a certificate is malformed")
    found, length = data[position], data[position + 1]
    start = position + 2
    if length >= 0x80:
        size = length & 0x7F
        if not 1 <= size <= 4 or start + size > end:
            raise DecodeError("a certificate is malformed")
        length = int.from_bytes(data[start : start + size], "big")
        start += size
    if start + length > end:
        raise DecodeError("a certificate is cut short")
    return _Element(found, start, start + length)
