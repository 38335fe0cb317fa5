"""Validation of URIs and URI-references by RFC 3986 (rules T5, T6). `grammar` contains the patterns."""

from __future__ import annotations

import re

from penstock.cloudevents.grammar import RELATIVE_REFERENCE, URI
from penstock.cloudevents.outcome import InvalidEventError, shown
from penstock.cloudevents.repeats import remembered

_matches_uri = re.compile(URI).fullmatch
_matches_relative = re.compile(RELATIVE_REFERENCE).fullmatch


@remembered(maxsize=4096)
def is_uri(text: str) -> bool:
    """Return True if `text` is a well-formed URI with a scheme."""
    return _matches_uri(text) is not None


@remembered(maxsize=4096)
def is_uri_reference(text: str) -> bool:
    """Return True if `text` is a well-formed URI, with a scheme or relative."""
    return _matches_uri(text) is not None or _matches_relative(text) is not None


def check_uri_reference(name: str, text: str) -> None:
    """Check that a text is a URI-reference.

    Raises:
        InvalidEventError: T6, `text` is not a URI-reference.
    """
    if not is_uri_reference(text):
        raise InvalidEventError("T6", f"{name} is not a URI-reference: {shown(text)}")


def check_uri(name: str, text: str) -> None:
    """Check that a text is a URI with a scheme.

    Raises:
        InvalidEventError: T5, `text` is not a URI with a scheme.
    """
    if not is_uri(text):
        raise InvalidEventError("T5", f"{name} is not an absolute URI: {shown(text)}")
