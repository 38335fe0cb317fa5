r"""The grammar of attributes: names, strings, integers, base64, timestamps, URIs and media types.

The characters and patterns are shared by three implementations: the functions for one event (`types`, `uris`,
`timestamps`, `mediatype`), the compiled loops over columns (`columnar.kernels.texts`), and Spark SQL
(`penstock.spark.functions.sql_rules`). Patterns use only what regular expressions of Python and Java have in
common, and have no anchors: Python uses ``fullmatch``, Java ``\A(?:...)\z``. Repetitions are possessive, so
that matching takes linear time. Sources: CloudEvents 1.0.2, RFC 3339, RFC 3986, RFC 2045, RFC 4648.
"""

from __future__ import annotations

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
HEX_DIGITS = DIGITS + "ABCDEFabcdef"


def _one_of(marks: str) -> str:
    """Return a character class (of a regular expression) with the ASCII letters, the digits and `marks`."""
    return "[A-Za-z0-9" + "".join(f"\\{mark}" for mark in marks) + "]"


# Names (rule C3).
NAME = "[a-z0-9]+"
RESERVED_NAME = "data"
"""The name ``data``, which matches the pattern `NAME`, but which no attribute may have."""

# Strings (rule T3).
FORBIDDEN_CODE_POINTS: tuple[tuple[int, int], ...] = (
    (0x00, 0x1F),
    (0x7F, 0x9F),
    (0xD800, 0xDFFF),
    (0xFDD0, 0xFDEF),
    *((plane << 16 | 0xFFFE, plane << 16 | 0xFFFF) for plane in range(17)),
)
"""(first, last) code point of each range of forbidden characters: controls, surrogates, noncharacters."""

# Integers (rule T2).
INTEGER = "-?(?:0|[1-9][0-9]*+)"
INTEGER_MIN, INTEGER_MAX = -(2**31), 2**31 - 1
INTEGER_CHARACTERS_MAX = 11

# Base64 (rule T4): with `LOOSE_BASE64` the last character may have stray bits, which decoders pass over.
BASE64 = "(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?+"
LOOSE_BASE64 = "(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?+"

# Timestamps (rule T7). Whether the calendar has the date is for code to say.
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
TIMESTAMP = (
    rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})[Tt]{_CLOCK}:([0-5][0-9]|60)(?:\.([0-9]+))?(?:[Zz]|[+-]{_CLOCK})"
)
"""A pattern for RFC 3339 date-times. Its groups are year, month, day, second and the digits of the fraction.
"""
COMMON_TIMESTAMP = (
    rf"[1-8][0-9]{{3}}-[0-9]{{2}}-[0-9]{{2}}T{_CLOCK}:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-]{_CLOCK})"
)
"""A pattern for common timestamps: years 1000 to 8999, no leap second. It has no groups, which take time."""
CANONICAL_TIMESTAMP = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]"
    r"(?:\.(?!000)[0-9]{3}|\.[0-9]{3}(?!000)[0-9]{3})?Z"
)
"""A pattern for the form in which times are written: UTC as ``Z``, and 0, 3 or 6 digits of fraction."""

# Media types (rule C13).
TOKEN_MARKS = "!#$%&'*+-.^_`{|}~"
TOKEN = _one_of(TOKEN_MARKS) + "++"
_QUOTED = r'"(?:[\t !#-\[\]-~]|\\[\t -~])*+"'
MEDIA_TYPE = rf"{TOKEN}/{TOKEN}(?:[ \t]*+;[ \t]*+{TOKEN}=(?:{TOKEN}|{_QUOTED}))*+[ \t]*+"

# URIs (rules T5, T6).
UNRESERVED_MARKS = "-._~"
SUB_DELIMITERS = "!$&'()*+,;="
SCHEME_MARKS = "+-."
PATH_MARKS = ":@"


def _run(marks: str) -> str:
    """Return a pattern for one character in a part of a URI; `marks` are characters allowed in addition."""
    return f"(?:{_one_of(UNRESERVED_MARKS + SUB_DELIMITERS + marks)}|%[0-9A-Fa-f]{{2}})"


_SEGMENTS = f"(?:/{_run(PATH_MARKS)}*+)*+"
_ROOTLESS = f"{_run(PATH_MARKS)}++{_SEGMENTS}"
_NO_SCHEME = f"{_run('@')}++{_SEGMENTS}"
_H16 = "[0-9A-Fa-f]{1,4}"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9][0-9]|[0-9])"
_LS32 = rf"(?:{_H16}:{_H16}|{_BYTE}\.{_BYTE}\.{_BYTE}\.{_BYTE})"
_IPV6 = "|".join(
    [
        f"(?:{_H16}:){{6}}{_LS32}",
        f"::(?:{_H16}:){{5}}{_LS32}",
        *(f"(?:(?:{_H16}:){{0,{before}}}{_H16})?::(?:{_H16}:){{{4 - before}}}{_LS32}" for before in range(5)),
        f"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}",
        f"(?:(?:{_H16}:){{0,6}}{_H16})?::",
    ]
)
_IP_FUTURE = rf"[vV][0-9A-Fa-f]+\.{_one_of(UNRESERVED_MARKS + SUB_DELIMITERS + ':')}+"
_AUTHORITY = rf"(?:{_run(':')}*+@)?(?:\[(?:{_IPV6}|{_IP_FUTURE})\]|{_run('')}*+)(?::[0-9]*+)?"
_HIERARCHY = f"//{_AUTHORITY}{_SEGMENTS}|/(?:{_ROOTLESS})?+"
_QUERY_AND_FRAGMENT = rf"(?:\?{_run(':@/?')}*+)?+(?:\#{_run(':@/?')}*+)?+"
URI = f"[A-Za-z]{_one_of(SCHEME_MARKS)}*+:(?:{_HIERARCHY}|(?:{_ROOTLESS})?+){_QUERY_AND_FRAGMENT}"
"""A pattern for a URI with a scheme. It may have a fragment, as the JSON Schema of the event format allows.
"""
RELATIVE_REFERENCE = f"(?:{_HIERARCHY}|(?:{_NO_SCHEME})?+){_QUERY_AND_FRAGMENT}"
"""A pattern for a URI-reference without a scheme."""
