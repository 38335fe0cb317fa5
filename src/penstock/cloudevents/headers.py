"""Headers of Kafka records: the forms that clients use, and which headers belong to an event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from penstock.cloudevents.event import SPECVERSION

Mode = Literal["binary", "structured"]
HeaderPairs = Iterable[tuple[str, Any]]
Headers = HeaderPairs | Mapping[str, Any] | None

PREFIX = "ce_"
CONTENT_TYPE = "content-type"
STRUCTURED_PREFIX = b"application/cloudevents"
SPECVERSION_BYTES = SPECVERSION.encode()


def other_headers(headers: Headers) -> list[tuple[str, Any]]:
    """Return the headers that are not part of an event, unchanged (rules D7, C23).

    `to_record` accepts them as `headers`. Names such as ``CE_ID``, which a lenient reader takes for an
    attribute, are left out.
    """
    return [(name, value) for name, value in header_pairs(headers) if not _could_pass_for_a_part(name)]


def _could_pass_for_a_part(name: str) -> bool:
    """Return True if some reader may take a header for a part of the event, ignoring case or white space."""
    folded = name.strip().lower()
    return folded.startswith(PREFIX) or folded == CONTENT_TYPE


def header_pairs(headers: Headers) -> HeaderPairs:
    """Return headers of any accepted type as pairs of name and value."""
    if headers.__class__ is list or headers.__class__ is tuple:  # an isinstance of Mapping takes longer
        return headers
    if headers is None:
        return ()
    return headers.items() if isinstance(headers, Mapping) else headers


def is_structured(content_type: bytes | None) -> bool:
    return content_type is not None and content_type[:23].lower() == STRUCTURED_PREFIX
