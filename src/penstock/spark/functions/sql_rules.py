"""The rules for CloudEvents attributes as Spark column expressions that return an error text or null.

The rules and their order are those of `penstock.cloudevents`, the patterns come from its `grammar`. The
expressions consist of SQL functions, which the JVM evaluates without Python. An error quotes a text as Python
does if the text is plain ASCII.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from penstock.cloudevents.grammar import (
    BASE64,
    CANONICAL_TIMESTAMP,
    FORBIDDEN_CODE_POINTS,
    INTEGER,
    INTEGER_CHARACTERS_MAX,
    INTEGER_MAX,
    INTEGER_MIN,
    LOOSE_BASE64,
    MEDIA_TYPE,
    NAME,
    RELATIVE_REFERENCE,
    RESERVED_NAME,
    TIMESTAMP,
    URI,
)
from penstock.cloudevents.types import AttributeType

MICROS_MIN, MICROS_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The range of times, in microseconds since 1970, that a `datetime` in UTC can represent: years 1 to 9999."""

_DAY_MICROS = 86_400_000_000
_FORBIDDEN = "[" + "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in FORBIDDEN_CODE_POINTS) + "]"


def _whole(pattern: str) -> str:
    """Return a Java regular expression that matches `pattern` only against the whole text."""
    return rf"\A(?:{pattern})\z"


_MEDIA_TYPE, _URI, _RELATIVE = _whole(MEDIA_TYPE), _whole(URI), _whole(RELATIVE_REFERENCE)
_TIMESTAMP, _CANONICAL_TIME = _whole(TIMESTAMP), _whole(CANONICAL_TIMESTAMP)
_BASE64, _LOOSE_BASE64 = _whole(BASE64), _whole(LOOSE_BASE64)
_INTEGER, _NAME = _whole(INTEGER), _whole(NAME)


def problem(rule: str, *parts: str | Column) -> Column:
    """Return a column expression for an error text ``RULE: reason``, whose reason is joined from `parts`."""
    return F.concat(F.lit(f"{rule}: "), *(F.lit(part) if isinstance(part, str) else part for part in parts))


def shown(text: Column) -> Column:
    """Return a column expression for a text in quotes, cut to 80 characters, for error messages."""
    plain = text.rlike(r"\A[ -&(-\[\]-~]*+\z")
    quoted = F.concat(F.lit("'"), F.substring(text, 1, 80), F.lit("'"))
    dots = F.when(F.length(text) > 80, "...").otherwise("")
    return F.when(plain, F.concat(quoted, dots)).otherwise(F.lit("(not plain ASCII)"))


def apart(array: Column) -> Column:
    """Return an expression equal to `array` that Spark excludes from whole-stage code generation.

    In whole-stage code generation, all expressions of a projection become one Java method. The rules for
    attributes exceed the 64 KB that a method can have (and the 8 KB that a JVM compiles): Spark logs the
    attempt as an error, with hundreds of lines of code, before it compiles the projection by itself, in many
    small methods. A sort with a comparator cannot take part, so Spark compiles the projection by itself at
    once; this comparator treats all elements as equal, so nothing is reordered. The projection has to use the
    result.
    """
    return F.array_sort(array, lambda one, other: F.lit(0))


def is_attribute_name(name: Column) -> Column:
    """Return a column expression: true if `name` is a valid attribute name (rule C3)."""
    return name.rlike(_NAME) & (name != RESERVED_NAME)


def wrong_utf8(name: str | Column, text: Column) -> Column:
    """Return a column expression for the error of a header that is not UTF-8 (rule D8), or null."""
    return F.when(
        ~F.is_valid_utf8(text), problem("D8", "the header of ", name, " is not UTF-8: ", shown_bytes(text))
    )


def shown_bytes(text: Column) -> Column:
    return F.concat(F.lit("0x"), F.substring(F.hex(text.cast("binary")), 1, 80))


def wrong_core(name: str, rule: str, text: Column) -> Column:
    """Return a column expression for the error of an invalid core attribute, or null.

    An attribute is invalid if it is empty, or breaks the rule of its type.

    `time` and `specversion` are checked elsewhere.
    """
    check = {"source": wrong_reference, "datacontenttype": wrong_media_type, "dataschema": wrong_uri}
    return F.coalesce(
        F.when(text == "", problem(rule, f"{name} is empty")), check.get(name, wrong_string)(name, text)
    )


def wrong_string(name: str | Column, text: Column) -> Column:
    """Return an expression for the error of a text with a forbidden character (rule T3), or null."""
    found = F.regexp_extract(text, f"({_FORBIDDEN})", 1)
    code = F.hex(_code_point(found))
    four = F.when(F.length(code) < 4, F.lpad(code, 4, "0")).otherwise(code)
    return F.when(text.rlike(_FORBIDDEN), problem("T3", name, " contains the forbidden character U+", four))


def _code_point(character: Column) -> Column:
    """Return a column expression for the code point of a character, computed from its UTF-8 bytes."""
    digits = F.hex(character.cast("binary"))

    def byte(index: int) -> Column:
        return F.conv(F.substring(digits, 2 * index + 1, 2), 16, 10).cast("bigint")

    def low(index: int) -> Column:
        return byte(index) % 64

    size = F.length(digits)
    return (
        F.when(size == 2, byte(0))
        .when(size == 4, byte(0) % 32 * 64 + low(1))
        .when(size == 6, byte(0) % 16 * 4096 + low(1) * 64 + low(2))
        .otherwise(byte(0) % 8 * 262144 + low(1) * 4096 + low(2) * 64 + low(3))
    )


def wrong_reference(name: str | Column, text: Column) -> Column:
    """Return a column expression for the error of a text that is not a URI-reference (rule T6), or null."""
    return F.when(
        ~(text.rlike(_URI) | text.rlike(_RELATIVE)),
        problem("T6", name, " is not a URI-reference: ", shown(text)),
    )


def wrong_uri(name: str | Column, text: Column) -> Column:
    """Return a column expression for the error of a text that is not an absolute URI (rule T5), or null."""
    return F.when(~text.rlike(_URI), problem("T5", name, " is not an absolute URI: ", shown(text)))


def wrong_media_type(name: str | Column, text: Column) -> Column:
    """Return a column expression for the error of a text that is not a media type (rule C13), or null."""
    return F.when(~text.rlike(_MEDIA_TYPE), problem("C13", name, " is not a media type: ", shown(text)))


def wrong_timestamp(name: str | Column, text: Column) -> Column:
    """Return a column expression for the error of a text that is not a timestamp (rule T7), or null."""
    year, month, day = (_number(text, *index) for index in ((1, 4), (6, 2), (9, 2)))
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    days = (
        F.when(month == 2, F.when(is_leap, 29).otherwise(28)).when(month.isin(4, 6, 9, 11), 30).otherwise(31)
    )
    is_date = month.between(1, 12) & (day >= 1) & (day <= days)
    return F.when(
        ~text.rlike(_TIMESTAMP), problem("T7", name, " is not an RFC 3339 timestamp: ", shown(text))
    ).when(text.isNotNull() & ~is_date, problem("T7", name, " is not a date of the calendar: ", shown(text)))


def _number(text: Column, first: int, size: int) -> Column:
    return F.coalesce(F.substring(text, first, size).try_cast("bigint"), F.lit(0))


def micros_of(text: Column) -> Column:
    """Return an expression for a valid timestamp's microseconds since 1970.

    It is null if no `datetime` can represent the time."""
    date = F.make_date(*(_number(text, *index) for index in ((1, 4), (6, 2), (9, 2))))
    clock = [_number(text, *index) for index in ((12, 2), (15, 2), (18, 2))]
    seconds = F.unix_date(date).cast("bigint") * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2]
    digits = F.regexp_extract(text, r"\.([0-9]+)", 1)
    fraction = F.coalesce(F.rpad(F.substring(digits, 1, 6), 6, "0").try_cast("bigint"), F.lit(0))
    zone = F.regexp_extract(text, r"([+-][0-9]{2}:[0-9]{2})\z", 1)
    sign = F.when(F.substring(zone, 1, 1) == "-", -60).otherwise(60)
    offset = (_number(zone, 2, 2) * 60 + _number(zone, 5, 2)) * sign
    micros = (seconds - offset) * 1_000_000 + fraction
    # Python represents nothing after the last second of the year 9999, in any zone.
    is_representable = ~text.rlike(r"\A(?:0000|9999-12-31[Tt]23:59:60)") & micros.between(
        MICROS_MIN, MICROS_MAX
    )
    return F.when(is_representable, micros)


def is_canonical_time(text: Column) -> Column:
    """Return a column expression: true if a timestamp is in canonical form.

    The canonical form has UTC as ``Z``, and 0, 3 or 6 digits of fraction."""
    return text.rlike(_CANONICAL_TIME)


def time_text_of(micros: Column) -> Column:
    """Return an expression for the canonical text of a time in microseconds since 1970.

    The time must be in the years 1 to 9999."""
    rest = F.pmod(micros, F.lit(_DAY_MICROS))
    days = F.round((micros - rest) / _DAY_MICROS).cast("int")
    seconds, fraction = F.floor(rest / 1_000_000), rest % 1_000_000

    def two(value: Column) -> Column:
        return F.lpad(value.cast("string"), 2, "0")

    six = F.lpad(fraction.cast("string"), 6, "0")
    tail = (
        F.when(fraction == 0, "Z")
        .when(fraction % 1000 == 0, F.concat(F.lit("."), F.substring(six, 1, 3), F.lit("Z")))
        .otherwise(F.concat(F.lit("."), six, F.lit("Z")))
    )
    clock = [F.floor(seconds / 3600), F.floor(seconds / 60) % 60, seconds % 60]
    return F.concat(
        F.date_from_unix_date(days).cast("string"), F.lit("T"), F.concat_ws(":", *map(two, clock)), tail
    )


def wrong_extension(name: Column, text: Column, declared: dict[str, AttributeType]) -> Column:
    """Return an expression for the error of an invalid extension, or null.

    An extension can break rule P1, or the rule of its declared type."""
    empty = F.when((name == "partitionkey") & (text == ""), problem("P1", "partitionkey is empty"))
    return F.coalesce(empty, wrong_typed_extension(name, text, declared))


def wrong_typed_extension(name: Column, text: Column, declared: dict[str, AttributeType]) -> Column:
    """Return an expression for the error of an extension that breaks its type's rule (T1 to T7), or null."""
    wrong = F.when(text.isNull(), None)
    for kind in AttributeType:
        names = [known for known, its_kind in declared.items() if its_kind is kind]
        if names and kind is not AttributeType.STRING:
            wrong = wrong.when(name.isin(names), wrong_typed(name, kind, text))
    return wrong.otherwise(wrong_string(name, text))


def wrong_typed(name: str | Column, kind: AttributeType, text: Column) -> Column:
    """Return an expression for the error of a text that is not of type `kind` (rules T1 to T7), or null."""
    if kind is AttributeType.BOOLEAN:
        return F.when(~text.isin("true", "false"), problem("T1", name, " is not a Boolean: ", shown(text)))
    if kind is AttributeType.INTEGER:
        number = text.try_cast("bigint")
        is_number = text.rlike(_INTEGER) & (F.length(text) <= INTEGER_CHARACTERS_MAX)
        return F.when(~is_number, problem("T2", name, " is not an Integer: ", shown(text))).when(
            ~number.between(INTEGER_MIN, INTEGER_MAX),
            problem("T2", name, " does not fit a signed 32-bit Integer"),
        )
    if kind is AttributeType.BINARY:
        return F.when(~text.rlike(_LOOSE_BASE64), problem("T4", name, " is not base64 text")).when(
            ~text.rlike(_BASE64), problem("T4", name, " is not canonical base64 text: stray bits at its end")
        )
    if kind is AttributeType.TIMESTAMP:
        return wrong_timestamp(name, text)
    if kind is AttributeType.URI:
        return wrong_uri(name, text)
    return (wrong_string if kind is AttributeType.STRING else wrong_reference)(name, text)
