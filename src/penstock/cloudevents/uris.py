"""RFC 3986: is a text a URI or a URI-reference (rules T5, T6)? The grammar is in `grammar`."""

from __future__ import annotations

import re

from penstock.cloudevents.grammar import RELATIVE_REFERENCE, URI
from penstock.cloudevents.outcome import InvalidEventError, shown
from penstock.cloudevents.repeats import remembered

_matches_uri = re.compile(URI).fullmatch
_matches_relative = re.compile(RELATIVE_REFERENCE).fullmatch


@remembered(maxsize=4096)
def is_uri(text: str) -> bool:
    """Return whether `text` is a well-formed URI with a scheme."""
    return _matches_uri(text) is not None


@remembered(maxsize=4096)
def is_uri_reference(text: str) -> bool:
    """Return whether `text` is a well-formed URI, with a scheme or relative."""
    return _matches_uri(text) is not None or _matches_relative(text) is not None


def check_uri_reference(name: str, text: str) -> None:
    """Raises: InvalidEventError: T6, `text` is no URI-reference."""
    if not is_uri_reference(text):
        raise InvalidEventError("T6", f"{name} is not a URI-reference: {shown(text)}")


def check_uri(name: str, text: str) -> None:
    """Raises: InvalidEventError: T5, `text` is no URI with a scheme."""
    if not is_uri(text):
        raise InvalidEventError("T5", f"{name} is not an absolute URI: {shown(text)}")
