"""Records and events as lines of JSON: the format of ``penstock event decode --jsonl``.

A record is an object with `key` and `value`, each base64 or null, and `headers`, a list of pairs of name
and base64 or null; missing members are null or empty. Beside a record, or instead of one, a line has
`event`, an event in the JSON event format, or `error` with the `rule` that was broken. Other members of a
line, such as `topic` and `offset`, stay unchanged.

Each input line gives one output line. An input line that breaks one of these rules gives a line with `error`
and `rule`:

* L1: a line is one JSON object, in UTF-8, and has no member twice,
* L2: `key` and `value` are base64 text or null,
* L3: `headers` is a list of pairs of a name and base64 text or null,
* L4: a line to be encoded has an `event`.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.cloudevents.event import Event
from penstock.cloudevents.formats.json_format import read_event, write_event
from penstock.cloudevents.formats.json_scan import Members, Span, scan_object
from penstock.cloudevents.formats.registry import FormatName
from penstock.cloudevents.headers import Mode, other_headers
from penstock.cloudevents.outcome import InvalidEventError, NotAnEvent, shown
from penstock.cloudevents.read_record import Outcome, Profile, content_mode, from_record
from penstock.cloudevents.types import WELL_KNOWN_EXTENSIONS, AttributeType
from penstock.cloudevents.write_record import KeyMapper, to_record
from penstock.errors import EncodeError

RECORD = ("key", "value", "headers")
ANSWERS = ("mode", "event", "error", "rule")
"""The members that decoding adds to a line. If an input line has members with these names, they are
dropped.
"""

_NO_RECORD = NotAnEvent("the line is an event itself, not a record that carries one; encode makes one of it")

Headers = Sequence[tuple[str, bytes | None]]
Parts = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@dataclass(frozen=True)
class LineOptions:
    """Options for reading and writing records and lines, named as in `from_record` and `to_record`."""

    profile: Profile = "strict"
    assume_structured: bool = False
    extension_types: Mapping[str, AttributeType] = field(default_factory=lambda: WELL_KNOWN_EXTENSIONS)
    mode: Mode = "binary"
    event_format: FormatName = "json"
    text_data: bool = False
    binary_headers: bool = False
    key_mapper: KeyMapper | None = None

    @property
    def lenient(self) -> bool:
        return self.profile == "lenient"

    def outcome(self, key: bytes | None, value: bytes | None, headers: Headers) -> Outcome:
        """Return the outcome of reading a record: `Event`, `InvalidEvent` or `NotAnEvent`."""
        return from_record(
            key,
            value,
            headers,
            profile=self.profile,
            assume_structured=self.assume_structured,
            extension_types=self.extension_types,
        )

    def event(self, text: bytes) -> Event:
        """Return the event that a JSON object contains.

        Raises:
            InvalidEventError: the text is not a valid event.
        """
        return read_event(text, lenient=self.lenient, extension_types=self.extension_types)

    def record(
        self, event: Event, key: bytes | None = None, headers: Iterable[tuple[str, Any]] = ()
    ) -> Parts:
        """Return the record that carries an event, with additional headers.

        Raises:
            InvalidEventError, EncodeError: the event cannot be written with these options.
        """
        key, value, written = to_record(
            event,
            mode=self.mode,
            key=key,
            key_mapper=self.key_mapper,
            event_format=self.event_format,
            text_data=self.text_data,
            binary_headers=self.binary_headers,
            headers=headers,
        )
        return key, value, [*written]


class _Line:
    """The members of a line, as parsed values and as their original text."""

    def __init__(self, raw: bytes) -> None:
        try:
            self.text = raw.decode().removeprefix("\ufeff")
        except UnicodeDecodeError:
            raise InvalidEventError("L1", "the line is not UTF-8 text") from None
        self.members, self._spans = _scan(self.text)

    def raw(self, name: str) -> str:
        begin, end = self._spans[name]
        return self.text[begin:end]

    def without(self, names: Iterable[str]) -> list[str]:
        """Return all members except those in `names`, as JSON texts; carriage returns become spaces."""
        left_out = set(names)
        return [
            f"{json.dumps(name)}: {self.raw(name)}".replace("\r", " ")
            for name in self.members
            if name not in left_out
        ]


def decode_line(raw: bytes, options: LineOptions) -> str:
    """Add to the JSON line of a record its `mode` and `event`, or else `error` and `rule`. Never raises."""
    try:
        line = _Line(raw)
    except InvalidEventError as error:
        return _complaint([], error)
    kept = line.without(ANSWERS)
    if "specversion" in line.members and not any(name in line.members for name in RECORD):
        return _complaint(kept, _NO_RECORD)
    try:
        key, value, headers = _record(line.members)
    except InvalidEventError as error:
        return _complaint(kept, error)
    return _decoded(kept, key, value, headers, options)


def describe_record(
    key: bytes | None, value: bytes | None, headers: object, options: LineOptions, **members: object
) -> str:
    """Return the JSON line for a record: the given `members`, the record, and its event or error."""
    pairs = [(name, content) for name, content in headers] if headers else []  # type: ignore[attr-defined]
    kept = [f"{json.dumps(name)}: {json.dumps(member)}" for name, member in members.items()]
    return _decoded(kept + _record_members(key, value, pairs), key, value, pairs, options)


def _decoded(
    kept: list[str],
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
    options: LineOptions,
) -> str:
    outcome = options.outcome(key, value, headers)
    if not isinstance(outcome, Event):
        return _complaint(kept, outcome)
    mode = content_mode(headers, profile=options.profile)
    written = write_event(outcome, text_data=options.text_data, one_line=True).decode()
    return _joined([*kept, f'"mode": "{mode}"', f'"event": {written}'])


def encode_line(raw: bytes, options: LineOptions) -> str:
    """Add to a JSON line the record made from its `event`, or else `error` and `rule`. Never raises.

    Headers in the line that are not part of an event stay, after the event's own (C23), except headers that a
    reader may take for an attribute, such as ``CE_ID``. A line with `error` and without `event`, which
    `decode_line` writes for a record that is not an event, stays unchanged; a line with `specversion` is
    itself an event.
    """
    try:
        line = _Line(raw)
    except InvalidEventError as error:
        return _complaint([], error)
    if "event" in line.members:
        text, kept = line.raw("event"), line.without((*RECORD, *ANSWERS))
    elif "specversion" in line.members:
        text, kept = line.text, []
    elif "error" in line.members:
        return _joined(line.without(()))
    else:
        return _complaint(line.without(ANSWERS), InvalidEventError("L4", "the line has no event"))
    try:
        event = options.event(text.encode())
        key, _, headers = _record(line.members) if "event" in line.members else (None, None, [])
        record = _encoded(event, key, headers, options)
    except (InvalidEventError, EncodeError) as error:
        return _complaint(line.without(ANSWERS), error)
    return _joined(kept + _record_members(*record))


def convert_line(raw: bytes, options: LineOptions) -> str:
    """Convert the record in a JSON line to another mode or format, or add `error`, `rule`. Never raises."""
    try:
        line = _Line(raw)
    except InvalidEventError as error:
        return _complaint([], error)
    try:
        key, value, headers = _record(line.members)
        outcome = options.outcome(key, value, headers)
        if not isinstance(outcome, Event):
            raise InvalidEventError(outcome.rule, outcome.reason)
        record = _encoded(outcome, key, headers, options)
    except (InvalidEventError, EncodeError) as error:
        return _complaint(line.without(ANSWERS), error)
    return _joined(line.without((*RECORD, *ANSWERS)) + _record_members(*record))


def _encoded(event: Event, key: bytes | None, headers: Headers, options: LineOptions) -> Parts:
    return options.record(event, key, other_headers(headers))


def rule_of(error: object) -> str | None:
    """Return the name of the broken rule in an outcome or an error, or None if it contains none."""
    rule = getattr(error, "rule", None)
    if rule is None:
        before = str(error).partition(":")[0]
        rule = before if before[:1].isupper() and before[1:].isdigit() else None
    return rule


def reason_of(error: object) -> str:
    """Return the reason in an outcome or an error as text, without the name of the rule."""
    reason = getattr(error, "reason", None)
    if reason is None:
        rule, text = rule_of(error), str(error)
        reason = text if rule is None else text.removeprefix(f"{rule}: ")
    return str(reason)


def _complaint(kept: list[str], error: object) -> str:
    return _joined(
        [*kept, f'"error": {json.dumps(reason_of(error))}', f'"rule": {json.dumps(rule_of(error))}']
    )


def _joined(members: list[str]) -> str:
    return "{" + ", ".join(members) + "}\n"


def _scan(text: str) -> tuple[Members, dict[str, Span]]:
    try:
        return scan_object(text)
    except InvalidEventError as error:
        reason = error.reason if error.rule in ("D18", "J19") else "the line is not one JSON object"
        raise InvalidEventError("L1", reason) from None


def _record(members: Members) -> Parts:
    key, value = (_bytes(name, members.get(name), "L2") for name in ("key", "value"))
    pairs = members.get("headers")
    if pairs is None:
        return key, value, []
    if not isinstance(pairs, list):
        raise InvalidEventError("L3", "headers must be a list of [name, base64 or null]")
    return key, value, [_header(index, pair) for index, pair in enumerate(pairs)]


def _header(index: int, pair: object) -> tuple[str, bytes | None]:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
        raise InvalidEventError("L3", f"headers[{index}] must be [name, base64 or null]")
    name, value = pair
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidEventError("L3", f"headers[{index}] has a name that UTF-8 cannot say") from None
    return name, _bytes(f"headers[{index}], {shown(name)},", value, "L3")


def _bytes(what: str, value: object, rule: str) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidEventError(rule, f"{what} must be base64 text or null")
    try:
        return a2b_base64(value, strict_mode=True)
    except ValueError as error:
        raise InvalidEventError(rule, f"{what} is not base64 text: {error}") from None


def _record_members(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]]
) -> list[str]:
    pairs = ", ".join(f"[{json.dumps(name)}, {_base64(content)}]" for name, content in headers)
    return [f'"key": {_base64(key)}', f'"value": {_base64(value)}', f'"headers": [{pairs}]']


def _base64(value: bytes | None) -> str:
    return "null" if value is None else f'"{b2a_base64(value, newline=False).decode("ascii")}"'
