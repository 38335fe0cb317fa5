"""Input files of ``penstock event``: line by line, or as a whole in any event format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from penstock.cli.event_options import MEDIA_TYPES
from penstock.cli.outcome import put_bytes
from penstock.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    from penstock.cloudevents.lines import LineOptions

READ_BYTES = 1 << 16
LINE_BYTES_MAX = 256 << 20
"""The longest line in bytes. A longer one is an error, so that no file fills the memory."""

_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r")
"""Control characters that JSON text cannot contain."""


def transform(file: IO[bytes], line_to_line: Callable[[bytes], str]) -> None:
    """Write to stdout what `line_to_line` returns for each line of `file`, as soon as the line is read."""
    for lines in _lines(file):
        put_bytes("".join(map(line_to_line, lines)).encode())


def _lines(file: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines of `file` in batches as they arrive.

    Raises:
        DecodeError: a line is longer than `LINE_BYTES_MAX`.
    """
    read = getattr(file, "read1", file.read)
    rest: list[bytes] = []
    number, rest_bytes = 1, 0
    while chunk := read(READ_BYTES):
        *whole, last = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join([*rest, whole[0]])
            rest, rest_bytes = [], 0
            number += len(whole)
            yield whole
        rest.append(last)
        rest_bytes += len(last)
        if rest_bytes > LINE_BYTES_MAX:
            advice = "--jsonl reads one record from each line"
            raise DecodeError(f"line {number} has more than {LINE_BYTES_MAX:,} bytes; {advice}")
    if rest_bytes:
        yield [b"".join(rest)]


def events_in(body: bytes, event_format: str | None, options: LineOptions, option: str) -> list[Any]:
    """Return the events in a file's contents `body`. Errors name `option`, the option for the format."""
    from penstock.cloudevents import InvalidEventError, read_events

    if event_format is None:
        start = body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        given = "json-batch" if start == b"[" else "json"
    else:
        given = event_format
    try:
        return read_events(
            body, MEDIA_TYPES[given], lenient=options.lenient, extension_types=options.extension_types
        )
    except InvalidEventError as error:
        if event_format is None and error.rule in ("J1", "J19") and _CONTROLS.intersection(body[:64]):
            advice = f"; if it is Avro or Protobuf, say so with {option}"
            raise InvalidEventError(error.rule, error.reason + advice) from None
        raise


def broken_events(
    file: IO[bytes], event_format: str | None, options: LineOptions
) -> Iterator[tuple[str, str | None]]:
    try:
        events_in(file.read(), event_format, options, "--format")
    except (DecodeError, EncodeError, ValueError) as error:
        yield "", str(error)
    else:
        yield "", None


def broken_lines(file: IO[bytes], options: LineOptions) -> Iterator[tuple[str, str | None]]:
    import json

    from penstock.cloudevents.lines import decode_line

    number = broken = 0
    for lines in _lines(file):
        for line in lines:
            number += 1
            # What else a line holds comes back with it, numbers of any length among it.
            answer = json.loads(decode_line(line, options), parse_int=str)
            if "error" in answer:
                broken += 1
                yield f":{number}", f"{answer['rule']}: {answer['error']}"
    if not broken:
        yield "", None
