"""Media types (RFC 2046): validation, and the kind of data that they stand for."""

from __future__ import annotations

import re

from penstock.cloudevents.grammar import MEDIA_TYPE, TOKEN
from penstock.cloudevents.outcome import InvalidEventError, shown
from penstock.cloudevents.repeats import remembered

_is_media_type = re.compile(MEDIA_TYPE).fullmatch
_CHARSET = re.compile(rf';[ \t]*charset=(?:"([^"\\]*)"|({TOKEN}))', re.IGNORECASE)


@remembered(maxsize=1024)
def is_media_type(text: str) -> bool:
    """Return True if a text is ``type/subtype``, with well-formed parameters if any."""
    return _is_media_type(text) is not None


def check_media_type(name: str, text: str) -> None:
    """Check that `text` is a media type.

    Raises:
        InvalidEventError: C13, `text` is not a media type.
    """
    if not is_media_type(text):
        raise InvalidEventError("C13", f"{name} is not a media type: {shown(text)}")


def essence(text: str) -> str:
    """Return the type and subtype of a media type in lower case, without parameters."""
    return text.partition(";")[0].strip(" \t").lower()


@remembered(maxsize=1024)
def is_json(text: str) -> bool:
    """Return True for a media type with the subtype ``json`` or suffix ``+json`` (rule J7)."""
    subtype = essence(text).partition("/")[2]
    return subtype == "json" or subtype.endswith("+json")


@remembered(maxsize=1024)
def is_text(text: str) -> bool:
    """Return True for ``text/*``, and for every media type of XML (rule D16)."""
    main, _, subtype = essence(text).partition("/")
    return main == "text" or subtype == "xml" or subtype.endswith("+xml")


@remembered(maxsize=1024)
def charset_of(text: str) -> str:
    """Return the Python codec for the charset parameter, or UTF-8 if it is missing or unknown."""
    import codecs

    match = _CHARSET.search(text)
    if match is None:
        return "utf-8"
    try:
        codec = codecs.lookup(match[1] or match[2])
        "".encode(codec.name)  # refuses codecs that are not for text, such as hex
    except (LookupError, ValueError):
        return "utf-8"
    return codec.name
