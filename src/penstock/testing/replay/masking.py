"""Rules for masking: they replace values, keys, headers and client ids in a recording.

A replacement depends on the value and on a secret: equal values stay equal within a recording, and without
the secret the original cannot be found by trying a list of values. The secret is not stored.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.common.suggestions import short_repr
from penstock.errors import ConfigError

VALUES, KEYS, HEADERS, CLIENT_IDS = "values", "keys", "headers", "client_ids"
PLACES = (VALUES, KEYS, HEADERS, CLIENT_IDS)
"""The parts of a recording that a rule can mask: record values, keys and headers, and client ids."""

MASK_CHARACTERS = 16
FRAME_BYTES = 5
"""The size in bytes of the prefix of a value with a schema id: a zero byte, and the id."""

_FIRST = ((1 << 7, None), (1 << 11, (0xE0, 0x17)), (1 << 16, (0x4E00, 0x5000)), (1 << 21, (0x20000, 0xA000)))
"""Ranges of replacement characters, as (limit, (first replacement, number of replacements)) for code points
below the limit. Replacements take as many bytes in UTF-8 as the original; None keeps the character.
"""


class Substitutes:
    """Computes the replacements of masked values from the values and one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def _stream(self, data: bytes, count: int) -> bytes:
        made = b""
        while len(made) < count:
            block = len(made).to_bytes(8, "big") + data
            made += hmac.digest(self._secret, block, hashlib.sha256)
        return made[:count]

    def text(self, text: str, keep_length: bool = False) -> str:
        """Return the replacement of a text: 16 hexadecimal digits, or with `keep_length` as many characters.

        With `keep_length`, digits replace digits and letters replace letters; other characters stay. The
        length in bytes stays as well. The empty text stays empty.
        """
        data = text.encode("utf-8", "surrogateescape")
        if not text:
            return text
        if not keep_length:
            return self._stream(data, MASK_CHARACTERS // 2).hex()
        stream = self._stream(data, 4 * len(text))
        return "".join(
            _like(letter, int.from_bytes(stream[4 * index : 4 * index + 4], "big"))
            for index, letter in enumerate(text)
        )

    def data(self, data: bytes, keep_length: bool = False) -> bytes:
        """Return the replacement of bytes: as for text if they are UTF-8, else random-looking bytes."""
        try:
            return self.text(data.decode(), keep_length).encode()
        except UnicodeDecodeError:
            return self._stream(data, len(data) if keep_length else MASK_CHARACTERS)

    def number(self, number: int | float) -> int | float:
        """Return the replacement of a number, with as many digits before and after the decimal point."""
        written = repr(number)
        if "e" in written or "n" in written:  # 1e+300, inf, nan
            return 0.5
        digits = self.text(written, keep_length=True)
        first = next(index for index, each in enumerate(digits) if each.isdigit())
        if digits[first] == "0" and written[first] != "0":
            digits = digits[:first] + "1" + digits[first + 1 :]
        return type(number)(digits)

    def json(self, value: Any, keep_length: bool) -> Any:
        """Return a JSON value with its texts and numbers replaced; null, true and false stay."""
        if isinstance(value, str):
            return self.text(value, keep_length)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, (int, float)):
            return self.number(value)
        if isinstance(value, list):
            return [self.json(each, keep_length) for each in value]
        return {name: self.json(each, keep_length) for name, each in value.items()}


def _like(letter: str, drawn: int) -> str:
    if "0" <= letter <= "9":
        return chr(ord("0") + drawn % 10)
    if "a" <= letter <= "z":
        return chr(ord("a") + drawn % 26)
    if "A" <= letter <= "Z":
        return chr(ord("A") + drawn % 26)
    code = ord(letter)
    place = next(place for below, place in _FIRST if code < below)
    if place is None or 0xD800 <= code < 0xE000:  # a sign of ASCII, or a byte that is no text
        return letter
    first, count = place
    return chr(first + drawn % count)


Change = Callable[[bytes, Substitutes], bytes]


@dataclass(frozen=True)
class MaskRule:
    """A rule for masking: which parts of records to mask, and how.

    See `mask_all`, `mask_fields`, `mask_matches` and `mask_with`."""

    places: frozenset[str]
    change: Change
    topics: re.Pattern[str] | None = None
    """A regular expression for the whole names of the topics whose records the rule masks; None for all
    topics."""

    def masked(self) -> list[str]:
        """Return the parts that the rule masks: ``values``, or ``values:PATTERN`` if limited to topics."""
        topics = "" if self.topics is None else f":{self.topics.pattern}"
        return [place if place == CLIENT_IDS else place + topics for place in sorted(self.places)]

    def holds_for(self, place: str, topic: str | None) -> bool:
        """Return True if the rule masks the part `place` (such as ``values``) of records of `topic`.

        A topic whose name is unknown (None) is always masked.
        """
        if place not in self.places:
            return False
        return self.topics is None or topic is None or self.topics.fullmatch(topic) is not None


def mask_all(*places: str, keep_length: bool = False, topics: str | None = None) -> MaskRule:
    """Mask whole values, keys, headers or client ids.

    Args:
        places: any of ``values``, ``keys``, ``headers``, ``client_ids``.
        keep_length: keep the number of characters, and the positions of digits, small and capital letters.
        topics: a regular expression for the whole names of the topics; None for all.

    Raises:
        ConfigError: a value of `places` is unknown, or `topics` is not a valid expression.
    """
    return _rule(places, lambda data, masks: masks.data(data, keep_length), topics)


def mask_fields(
    *paths: str, place: str = VALUES, keep_length: bool = False, topics: str | None = None
) -> MaskRule:
    """Mask members of JSON values, such as ``customer.email``; lists are searched, ``*`` is any member.

    Bytes that are not JSON are masked as a whole, so that no secret remains by mistake. The five bytes of a
    schema id before the JSON are kept.

    Args:
        paths: paths of members, with points between names.
        place: ``values``, ``keys`` or ``headers``.
        keep_length: as in `mask_all`; numbers always keep their number of digits.
        topics: as in `mask_all`.

    Raises:
        ConfigError: there is no path, `place` is unknown, or `topics` is not a valid expression.
    """
    steps = [tuple(path.split(".")) for path in paths]
    if not steps or any("" in each for each in steps):
        raise ConfigError(f"mask_fields needs paths such as customer.email, not {short_repr(paths)}")

    def change(data: bytes, masks: Substitutes) -> bytes:
        start = FRAME_BYTES if data[:1] == b"\0" and len(data) > FRAME_BYTES else 0
        try:
            value = json.loads(data[start:])
        except (ValueError, RecursionError):
            return masks.data(data, keep_length)
        found = False
        for each in steps:
            value, changed = _masked_at(value, each, masks, keep_length)
            found = found or changed
        if not found:
            return data
        return data[:start] + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    return _rule((place,), change, topics)


def _masked_at(value: Any, steps: tuple[str, ...], masks: Substitutes, keep_length: bool) -> tuple[Any, bool]:
    if not steps:
        return masks.json(value, keep_length), True
    if isinstance(value, list):
        made = [_masked_at(each, steps, masks, keep_length) for each in value]
        return [each for each, _ in made], any(changed for _, changed in made)
    if not isinstance(value, dict):
        return value, False
    found = False
    made_dict = {}
    for name, each in value.items():
        changed = False
        if steps[0] in (name, "*"):
            each, changed = _masked_at(each, steps[1:], masks, keep_length)
        made_dict[name] = each
        found = found or changed
    return made_dict, found


def mask_matches(
    pattern: str, *places: str, keep_length: bool = False, topics: str | None = None
) -> MaskRule:
    """Mask the matches of a regular expression in `places`, by default in values.

    Args:
        pattern: the expression; it is applied to the bytes as text in UTF-8.
        places: as in `mask_all`.
        keep_length: as in `mask_all`.
        topics: as in `mask_all`.

    Raises:
        ConfigError: a value of `places` is unknown, or `pattern` or `topics` is not a valid expression.
    """
    compiled = _compiled(pattern)

    def change(data: bytes, masks: Substitutes) -> bytes:
        text = data.decode("utf-8", "surrogateescape")
        made = compiled.sub(lambda match: masks.text(match.group(), keep_length), text)
        return made.encode("utf-8", "surrogateescape")

    return _rule(places or (VALUES,), change, topics)


def mask_with(function: Callable[[bytes], bytes], *places: str, topics: str | None = None) -> MaskRule:
    """Mask the bytes of `places`, by default of values, with a function.

    Args:
        function: called with bytes, returns bytes. It must return equal bytes for equal bytes, so that equal
            values stay equal.
        places: as in `mask_all`.
        topics: as in `mask_all`.

    Raises:
        ConfigError: a value of `places` is unknown, or `topics` is not a valid expression.
    """
    return _rule(places or (VALUES,), lambda data, _: function(data), topics)


def _rule(places: Iterable[str], change: Change, topics: str | None) -> MaskRule:
    found = frozenset(places)
    if not found or not found <= set(PLACES):
        wrong = sorted(found.difference(PLACES))
        raise ConfigError(f"a mask needs places out of {', '.join(PLACES)}, not {short_repr(wrong)}")
    return MaskRule(found, change, None if topics is None else _compiled(topics))


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{short_repr(pattern)} is no regular expression: {error}") from None
