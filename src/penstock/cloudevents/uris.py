"""RFC 3986: is a text a URI or a URI-reference (rules T5, T6)?

The whole grammar as one regular expression with possessive repetitions, so that no text takes more
than linear time. Only the inside of an IPv6 literal is left to `ipaddress`.
"""

from __future__ import annotations

import re

from penstock.cloudevents.outcome import InvalidEventError, shown
from penstock.cloudevents.repeats import remembered

_UNRESERVED = r"A-Za-z0-9\-._~"
_SUB_DELIMS = r"!$&'()*+,;="
_PERCENT = r"%[0-9A-Fa-f]{2}"


def _run(characters: str) -> str:
    return rf"(?:[{_UNRESERVED}{_SUB_DELIMS}{characters}]|{_PERCENT})"


_PATH_ROOTLESS = rf"{_run(':@')}++(?:/{_run(':@')}*+)*+"
_PATH_NOSCHEME = rf"{_run('@')}++(?:/{_run(':@')}*+)*+"
_AUTHORITY = (
    rf"(?:{_run(':')}*+@)?"
    rf"(?:\[(?:(?P<ipv6>[0-9A-Fa-f:.]+)|[vV][0-9A-Fa-f]+\.[{_UNRESERVED}{_SUB_DELIMS}:]+)\]|{_run('')}*+)"
    r"(?::[0-9]*+)?"
)
_REFERENCE = re.compile(
    rf"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*+:)?+"
    rf"(?://{_AUTHORITY}(?:/{_run(':@')}*+)*+"
    rf"|/(?:{_PATH_ROOTLESS})?+"
    rf"|(?(scheme)(?:{_PATH_ROOTLESS})?+|(?:{_PATH_NOSCHEME})?+))"
    rf"(?:\?{_run(':@/?')}*+)?+"
    rf"(?:\#{_run(':@/?')}*+)?+"
)


@remembered(maxsize=4096)
def _scheme_of(text: str) -> str | None:
    """The scheme with its colon, "" for a relative reference, None where the text is neither."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        return None
    if match["ipv6"] is not None and not _is_ipv6(match["ipv6"]):
        return None
    return match["scheme"] or ""


def _is_ipv6(text: str) -> bool:
    from ipaddress import AddressValueError, IPv6Address

    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def check_uri_reference(name: str, text: str) -> None:
    """Raises: InvalidEventError: T6, `text` is no URI-reference."""
    if _scheme_of(text) is None:
        raise InvalidEventError("T6", f"{name} is not a URI-reference: {shown(text)}")


def is_uri(text: str) -> bool:
    """Has it a scheme, and is it well-formed?"""
    return bool(_scheme_of(text))


def check_uri(name: str, text: str) -> None:
    """A fragment is accepted (the JSON Schema of the format allows it).

    Raises:
        InvalidEventError: T5, `text` is no URI with a scheme.
    """
    if not is_uri(text):
        raise InvalidEventError("T5", f"{name} is not an absolute URI: {shown(text)}")
