"""Media types (RFC 2046): checked, and asked what kind of data they announce."""

from __future__ import annotations

import re

from penstock.cloudevents.grammar import MEDIA_TYPE, TOKEN
from penstock.cloudevents.outcome import InvalidEventError, shown
from penstock.cloudevents.repeats import remembered

_is_media_type = re.compile(MEDIA_TYPE).fullmatch
_CHARSET = re.compile(rf';[ \t]*charset=(?:"([^"\\]*)"|({TOKEN}))', re.IGNORECASE)


@remembered(maxsize=1024)
def is_media_type(text: str) -> bool:
    """Is it type/subtype with well-formed parameters?"""
    return _is_media_type(text) is not None


def check_media_type(name: str, text: str) -> None:
    """Raises: InvalidEventError: C13, `text` is no media type."""
    if not is_media_type(text):
        raise InvalidEventError("C13", f"{name} is not a media type: {shown(text)}")


def essence(text: str) -> str:
    """Type and subtype, lower case, without parameters."""
    return text.partition(";")[0].strip(" \t").lower()


@remembered(maxsize=1024)
def is_json(text: str) -> bool:
    """Rule J7: subtype ``json`` or suffix ``+json``, with any main type and parameters."""
    subtype = essence(text).partition("/")[2]
    return subtype == "json" or subtype.endswith("+json")


@remembered(maxsize=1024)
def is_text(text: str) -> bool:
    """Rule D16: ``text/*``, and XML however it is named."""
    main, _, subtype = essence(text).partition("/")
    return main == "text" or subtype == "xml" or subtype.endswith("+xml")


@remembered(maxsize=1024)
def charset_of(text: str) -> str:
    """Return the Python codec for the charset parameter; UTF-8 where there is none, or an unknown one."""
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
