"""``penstock event``: reads and checks CloudEvents, and converts them between modes and formats."""

from __future__ import annotations

import sys
from functools import partial
from typing import IO, TYPE_CHECKING

import click

from penstock.cli import completion
from penstock.cli.event_input import broken_events, broken_lines, events_in, transform
from penstock.cli.event_options import (
    FILE,
    MEDIA_TYPES,
    check_mode,
    header_of,
    jsonl_option,
    key_mapper_if,
    line_options,
    profile_options,
    reading_options,
    text_option,
    writing_options,
)
from penstock.cli.formats import Printer
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import FAILURE, is_terminal, put, put_bytes, say
from penstock.errors import ConfigError
from penstock.printable import printable_bytes

if TYPE_CHECKING:
    from penstock.cloudevents.lines import LineOptions
    from penstock.model import Record


@click.group("event", short_help="Read CloudEvents, check them and convert them.")
def command() -> None:
    """Read and check CloudEvents, and convert them between modes and formats.

    \b
    A Kafka record is an event in one of two modes:
      binary       header ce_ID for each attribute, content-type for that of
                   the data, and the data as the value
      structured   header content-type: application/cloudevents+FORMAT,
                   and the whole event as the value

    \b
    Examples:
      penstock event read -t readings -e               which records are events
      penstock event validate event.json               the rule it breaks, if any
      penstock event encode --mode binary event.json   the record that carries it
      penstock event convert --to protobuf event.json > event.bin
      penstock event read -t readings -e --jsonl |
        penstock event convert --jsonl --mode structured

    \b
    With --jsonl a record is one line, bytes in base64:
      {"key": null, "value": "e30=", "headers": [["ce_id", "MQ=="]]}
    decode adds "mode" and "event", or "error" and "rule"; encode turns "event"
    into a record.
    The rules are explained in docs/reference/cloudevents.md.
    """


@command.command("decode")
@jsonl_option()
@click.option(
    "-H", "--header", "headers", metavar="NAME=VALUE", multiple=True, help="A header; may be repeated."
)
@reading_options
@text_option()
@FILE
def decode(
    jsonl: bool,
    headers: tuple[str, ...],
    strict: bool,
    assume_structured: bool,
    types: tuple[str, ...],
    text_data: bool,
    file: IO[bytes],
) -> int:
    """Decode records to events.

    Events come out in the JSON event format.

    \b
    One record, whose value is FILE or stdin:
      echo '{"reading": 21.5}' | penstock event decode -H ce_specversion=1.0 \\
        -H ce_id=1 \\
        -H ce_source=/s -H ce_type=t -H content-type=application/json

    \b
    Many, one a line; each gets "mode" and "event", or "error" and "rule":
      penstock event decode --jsonl records.jsonl
    """
    from penstock.cloudevents import Event
    from penstock.cloudevents.formats.json_format import write_event
    from penstock.cloudevents.lines import decode_line

    options = line_options(strict, types, assume_structured=assume_structured, text_data=text_data)
    if jsonl:
        if headers:
            raise ConfigError("with --jsonl the headers stand in the lines: leave out -H")
        transform(file, partial(decode_line, options=options))
        return 0
    value = file.read()
    outcome = options.outcome(None, value, [header_of(word) for word in headers])
    if not isinstance(outcome, Event):
        say(f"{outcome}{_advice(outcome, value)}")
        return FAILURE
    put_bytes(write_event(outcome, text_data=text_data, one_line=True) + b"\n")
    return 0


@command.command("encode")
@jsonl_option()
@writing_options
@profile_options
@FILE
def encode(
    jsonl: bool,
    mode: str,
    event_format: str,
    text_data: bool,
    binary_headers: bool,
    key_from_partitionkey: bool,
    strict: bool,
    types: tuple[str, ...],
    file: IO[bytes],
) -> None:
    """Encode events as records.

    Events are read in the JSON event format.

    \b
    One event, shown as a record: key, headers, an empty line, the value:
      penstock event encode --mode structured event.json

    \b
    Many, one a line, each with an "event", and perhaps "key" and "headers":
      penstock event encode --jsonl --mode binary events.jsonl
    """
    from penstock.cloudevents.lines import encode_line

    check_mode(mode, event_format, binary_headers)
    options = line_options(
        strict,
        types,
        mode=mode,
        event_format=event_format,
        text_data=text_data,
        binary_headers=binary_headers,
        key_mapper=key_mapper_if(key_from_partitionkey),
    )
    if jsonl:
        transform(file, partial(encode_line, options=options))
        return
    body = file.read()
    if body.lstrip()[:1] == b"[":
        raise ConfigError("this is a JSON array: encode takes one event, or with --jsonl one a line")
    key, value, headers = options.record(options.event(body))
    shown = [b"key: " + (b"(null)" if key is None else key)]
    shown += [name.encode() + b": " + (content or b"") for name, content in headers]
    put_bytes(b"\n".join(shown) + b"\n\n" + (b"(null)" if value is None else value) + b"\n")


@command.command("validate")
@jsonl_option("FILE holds records, one JSON object a line.")
@reading_options
@click.option(
    "--format", "event_format", type=click.Choice(list(MEDIA_TYPES)), help="What FILE is; JSON is recognised."
)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.File("rb"))
def validate(
    jsonl: bool,
    strict: bool,
    assume_structured: bool,
    types: tuple[str, ...],
    event_format: str | None,
    files: tuple[IO[bytes], ...],
) -> int:
    """Check events; report the rules that are broken.

    \b
    Examples:
      penstock event validate a.json b.json         one event each, or a batch
      penstock event validate --format avro event.avro
      penstock event validate --jsonl records.jsonl records, one a line

    Exits with 1 when anything is not valid.
    """
    options = line_options(strict, types, assume_structured=assume_structured)
    if jsonl and event_format:
        raise ConfigError("--jsonl reads records, --format says what a file of events is: choose one")
    broken = 0
    for file in files or (sys.stdin.buffer,):
        name = "stdin" if file is sys.stdin.buffer else str(getattr(file, "name", "stdin"))
        problems = broken_lines(file, options) if jsonl else broken_events(file, event_format, options)
        for location, problem in problems:
            broken += problem is not None
            put(f"{name}{location}: {'valid' if problem is None else problem}")
    return FAILURE if broken else 0


@command.command("convert")
@jsonl_option()
@writing_options
@reading_options
@click.option(
    "--from", "source", type=click.Choice(list(MEDIA_TYPES)), help="What FILE is; JSON is recognised."
)
@click.option("--to", "target", type=click.Choice(list(MEDIA_TYPES)), help="What to write to stdout.")
@FILE
def convert(
    jsonl: bool,
    mode: str,
    event_format: str,
    text_data: bool,
    binary_headers: bool,
    key_from_partitionkey: bool,
    strict: bool,
    assume_structured: bool,
    types: tuple[str, ...],
    source: str | None,
    target: str | None,
    file: IO[bytes],
) -> None:
    """Change the mode of records, or the format of events.

    \b
    Records, one a line:
      penstock event convert --jsonl --mode structured --format avro records.jsonl

    \b
    Events in a file, or a batch of them:
      penstock event convert --to protobuf event.json > event.bin
      penstock event convert --from protobuf --to json event.bin
      penstock event convert --to json-batch event.json
    """
    from penstock.cloudevents.lines import convert_line

    check_mode(mode, event_format, binary_headers)
    options = line_options(
        strict,
        types,
        assume_structured=assume_structured,
        mode=mode,
        event_format=event_format,
        text_data=text_data,
        binary_headers=binary_headers,
        key_mapper=key_mapper_if(key_from_partitionkey),
    )
    if jsonl:
        if source or target:
            raise ConfigError("--from and --to are for files of events; with --jsonl use --mode and --format")
        transform(file, partial(convert_line, options=options))
        return
    if target is None:
        raise ConfigError("say what to write with --to, or give --jsonl to convert records")
    from penstock.cloudevents import write_events

    events = events_in(file.read(), source, options, "--from")
    put_bytes(write_events(events, MEDIA_TYPES[target], text_data=text_data))


@command.command("read")
@bootstrap_option()
@property_option()
@click.option("-t", "--topic", required=True, shell_complete=completion.topics, help="Topic to read.")
@click.option(
    "-p", "--partition", "chosen", type=click.IntRange(0), multiple=True, help="Only this partition."
)
@click.option(
    "-o", "--offset", "offsets", multiple=True, metavar="WHERE", help="As in penstock consume; beginning."
)
@click.option("-c", "--count", type=click.IntRange(1), help="Exit after so many records.")
@click.option("-e", "--exit", "exit_at_end", is_flag=True, help="Exit at what is the end now.")
@jsonl_option()
@reading_options
@text_option()
def read(
    bootstrap: str,
    properties: tuple[str, ...],
    topic: str,
    chosen: tuple[int, ...],
    offsets: tuple[str, ...],
    count: int | None,
    exit_at_end: bool,
    jsonl: bool,
    strict: bool,
    assume_structured: bool,
    types: tuple[str, ...],
    text_data: bool,
) -> None:
    """Show which records of a topic are valid events.

    Each record is an event, is not an event, or is an event that breaks a rule.

    \b
    Examples:
      penstock event read -t readings -e           a line for each
      penstock event read -t readings -o -5 -e     the last five of each partition
      penstock event read -t readings -e --jsonl   as decode writes it
    """
    from penstock.cli.consume import ConsumeRun
    from penstock.cli.partitions import partitions_of
    from penstock.cli.positions import parse_span
    from penstock.client import Consumer

    options = line_options(strict, types, assume_structured=assume_structured, text_data=text_data)
    printer: Printer = partial(_record_line if jsonl else _summary, options=options)
    if is_terminal():
        printer = _for_terminal(printer)
    config, span = client_settings(properties), parse_span(offsets)
    partitions = partitions_of(bootstrap, topic, chosen, config)
    with Consumer(bootstrap_servers=bootstrap, config=config) as consumer:
        reading = ConsumeRun(consumer, partitions, span, exit_at_end=exit_at_end, quiet=True)
        reading.print_to(sys.stdout.buffer, printer, count, unbuffered=False)


def _advice(outcome: object, value: bytes) -> str:
    """Return a hint if a record is no event, but its value alone is a JSON event; otherwise return ""."""
    from penstock.cloudevents import NotAnEvent
    from penstock.cloudevents.formats.json_format import has_required_members

    if not isinstance(outcome, NotAnEvent) or not has_required_members(value):
        return ""
    return f"; the value is one, though: add -H content-type={MEDIA_TYPES['json']}, or --assume-structured"


def _record_line(record: Record, options: LineOptions) -> bytes:
    from penstock.cloudevents.lines import describe_record

    location = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    return describe_record(record.key, record.value, record.headers, options, **location).encode()


def _for_terminal(printer: Printer) -> Printer:
    """Return a printer that escapes control characters in the lines of `printer`, but not the line feed."""
    return lambda record: printable_bytes(printer(record).removesuffix(b"\n")) + b"\n"


def _summary(record: Record, options: LineOptions) -> bytes:
    """Return one line: a record's position, then its event's attributes and data, or why it is no event."""
    from penstock.cloudevents import Event

    outcome = options.outcome(record.key, record.value, record.headers)
    location = f"{record.topic}/{record.partition}/{record.offset}"
    if not isinstance(outcome, Event):
        return f"{location}  {outcome}\n".encode()
    attributes = outcome.attributes()
    words = [str(attributes.pop(name)) for name in ("type", "source", "id")]
    attributes.pop("specversion")
    words += [f"{name}={value!s}" for name, value in attributes.items()]
    return f"{location}  {'  '.join(words)}  {_shown(outcome.data)}\n".encode()


def _shown(data: bytes | None) -> str:
    if data is None:
        return "(no data)"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes)"
    if not text.isprintable() or len(text) > 200:
        return f"({len(data)} bytes)"
    return text or "(empty)"
