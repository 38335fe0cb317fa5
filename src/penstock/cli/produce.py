"""``penstock produce``: sends messages from stdin or files to a topic, with kcat's flags."""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, TYPE_CHECKING

import click

from penstock.cli import completion
from penstock.cli.doing import is_quiet, quiet_option
from penstock.cli.encoded_values import EncodedFields, encodings_of
from penstock.cli.envelopes import parse_envelope
from penstock.cli.options import (
    bootstrap_option,
    client_settings,
    delimiter,
    property_option,
    registry_option,
)
from penstock.cli.outcome import counted, note, say
from penstock.cli.schema_files import ENVELOPE, SCHEMA_FORMATS
from penstock.errors import ConfigError
from penstock.headers import Header

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
READ_BYTES = 1 << 16

Fields = tuple[bytes | None, bytes | None, int | None, int | None, Sequence[Header], str | None]
"""A record to be sent: the fields of `OutgoingRecord` in a plain tuple, which is faster to create."""


def _topics_and_files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return file names as completions, and topics too if the word may be a topic."""
    files = click.Path().shell_complete(context, parameter, incomplete)
    if context.params.get("topic") is not None or context.params.get("files"):
        return files
    from click.shell_completion import CompletionItem

    return [*map(CompletionItem, completion.topics(context, parameter, incomplete)), *files]


@click.command("produce", short_help="Send messages to a topic, from stdin or files.")
@bootstrap_option()
@click.option(
    "-t",
    "--topic",
    shell_complete=completion.topics,
    help="Topic to write to; without it, the first word is. With -J, each message may name its own.",
)
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(-1),
    help="Partition; -1 lets the key decide. Default: -1, or with -J, Parquet and CSV that of each message.",
)
@click.option("-k", "--key", metavar="TEXT", help="The key of every message.")
@click.option(
    "-K", "--key-delimiter", metavar="TEXT", help="Split each message into key and value at this text."
)
@click.option(
    "-H", "--header", "headers", metavar="NAME=VALUE", multiple=True, help="A header; may be repeated."
)
@click.option(
    "-D", "--delimiter", "between", metavar="TEXT", default="\\n", show_default=True, help="Ends a message."
)
@click.option("-Z", "--null", "empty_is_null", is_flag=True, help="Send empty keys and values as null.")
@click.option(
    "-z", "--compression", "codec", type=click.Choice(CODECS), default="none", help="Compression codec."
)
@click.option("-c", "--count", type=click.IntRange(1), help="Stop after so many messages.")
@click.option("-l", "--lines", "split_file", is_flag=True, help="Split FILE into messages, as stdin is.")
@click.option("-J", "--json", "as_json", is_flag=True, help="Lines of JSON, as of consume -J and kcat -J.")
@click.option(
    "-f",
    "--format",
    "layout",
    type=click.Choice(("text", "json", "csv", "parquet")),
    default="text",
    help="What stdin or FILE holds; json is -J. csv and parquet have columns as consume writes them.",
)
@click.option(
    "--rows", is_flag=True, help="With csv and parquet: each row as a JSON object, with any columns."
)
@click.option("--key-column", metavar="NAME", help="With --rows: the column that is the key.")
@click.option(
    "--value", type=click.Choice(SCHEMA_FORMATS), help="Values are JSON, to be written so by a schema."
)
@click.option("--key-format", type=click.Choice(SCHEMA_FORMATS), help="The same for keys.")
@click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="With --value: the schema (.avsc, .json, .proto); it is registered. Default: the subject's newest.",
)
@click.option("--key-schema", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Of keys.")
@click.option("--subject", metavar="NAME", help="With --value: the subject. Default: TOPIC-value.")
@click.option(
    "--message-type",
    "message",
    metavar="NAME",
    help="With --value protobuf: the message. Default: the file's first.",
)
@registry_option("--registry")
@quiet_option()
@property_option()
@click.argument("files", nargs=-1, metavar="[TOPIC] [FILE]...", shell_complete=_topics_and_files)
def command(
    bootstrap: str,
    topic: str | None,
    partition: int | None,
    key: str | None,
    key_delimiter: str | None,
    headers: tuple[str, ...],
    between: str,
    empty_is_null: bool,
    codec: str,
    count: int | None,
    split_file: bool,
    as_json: bool,
    layout: str,
    rows: bool,
    key_column: str | None,
    value: str | None,
    key_format: str | None,
    schema: str | None,
    key_schema: str | None,
    subject: str | None,
    message: str | None,
    registry: str,
    properties: tuple[str, ...],
    files: tuple[str, ...],
) -> None:
    """Send messages to a topic: one per line of stdin, or one per FILE.

    Without -t the first word is the topic; with -J, where messages may name their own topic, all words are
    files.

    \b
    Examples:
      printf 'a\\nb\\n' | penstock produce letters
      printf 'EWR:12\\nJFK:7\\n' | penstock produce -t delays -K :
      penstock produce -t letters -l lines.txt          one message per line
      penstock produce -t pictures -k cat cat.png       the file is the message
      echo hi | penstock produce -t letters -H lang=en -z zstd
      penstock consume -t a -e -J | penstock produce -t b -J
      penstock produce -t delays -f parquet delays.parquet
      penstock produce -t flights -f csv --rows --key-column origin flights.csv
      echo '{"id": 1}' | penstock produce orders --value avro --schema order.avsc
    """
    layout = "json" if as_json and layout == "text" else layout
    encodings = encodings_of(value, key_format, schema, key_schema, subject, message, layout)
    if layout != "text":
        _refuse(
            layout,
            {
                "-k": key is not None,
                "-K": key_delimiter is not None,
                "-H": bool(headers),
                "-l": split_file,
                "-Z": empty_is_null,
                "-J": as_json and layout != "json",
                "-c": count is not None and layout != "json",
            },
        )
    if (rows or key_column is not None) and layout not in ("csv", "parquet"):
        raise ConfigError("--rows and --key-column are for -f csv and -f parquet")
    if key_column is not None and not rows:
        raise ConfigError("--key-column goes with --rows; otherwise the column 'key' is the key")
    if topic is None and layout != "json":
        topic, files = _first_word(files)
    _check_files(files)
    config = {"compression.type": codec, **client_settings(properties)}
    if layout in ("csv", "parquet"):
        from penstock.cli.produce_table import produce_tables

        produce_tables(files, layout, topic or "", partition, bootstrap, config, rows, key_column)
        return
    most = _message_bytes_max(bootstrap, config)
    if layout == "json":
        messages = _envelopes(files, topic, partition, most, {ENVELOPE[each] for each in encodings})
    else:
        messages = _texts(
            files, topic, partition, key, key_delimiter, headers, between, empty_is_null, split_file, most
        )
    if encodings:
        messages = EncodedFields(encodings, registry).messages(messages)
    sent = _send(islice(messages, count), bootstrap, config)
    if not is_quiet():
        note(f"% {counted(sent, 'message')} to {topic or 'the topics that they name'}")


def _first_word(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Split the words into the topic and the files, if no option names the topic.

    Raises:
        UsageError: there is no word, or the only word is the name of a file.
    """
    if not words:
        raise click.UsageError("Missing argument: which topic?")
    first, *files = words
    if not files and os.path.isfile(first):
        raise click.UsageError(f"which topic? {first!r} is a file; write TOPIC {first}, or -t {first}")
    return first, tuple(files)


def _check_files(names: Iterable[str]) -> None:
    """Raise UsageError for a name that is not a readable file, before anything is sent."""
    for name in names:
        if not os.path.exists(name):
            raise click.UsageError(f"File '{name}' does not exist; a topic is named first, or by -t")
        if os.path.isdir(name):
            raise click.UsageError(f"File '{name}' is a directory")


def _refuse(layout: str, given: Mapping[str, bool]) -> None:
    """Raise ConfigError if an option is given that does not apply to `layout`, the format of the input."""
    wrong = [option for option, is_given in given.items() if is_given]
    if wrong:
        raise ConfigError(f"{wrong[0]} does not go with {layout}, whose messages have all of that themselves")


def _texts(
    files: tuple[str, ...],
    topic: str | None,
    partition: int | None,
    key: str | None,
    key_delimiter: str | None,
    headers: tuple[str, ...],
    between: str,
    empty_is_null: bool,
    split_file: bool,
    most: int,
) -> Iterator[Fields]:
    """Return the messages in text input; options set how it is split, and the keys, headers and partition."""
    if key is not None and key_delimiter is not None:
        raise ConfigError("-k gives every message one key, -K takes keys from the messages: choose one")
    if split_file and len(files) != 1:
        raise ConfigError("-l splits exactly one FILE into messages")
    header_list = [_header(word) for word in headers]
    where = None if partition is None or partition < 0 else partition
    keyed = _with_keys(
        _messages(files, split_file, delimiter(between, "-D"), most),
        None if key is None else os.fsencode(key),
        None if key_delimiter is None else delimiter(key_delimiter, "-K"),
    )
    if empty_is_null:
        keyed = ((k or None, v or None) for k, v in keyed)
    return ((k, v, where, None, header_list, topic) for k, v in keyed)


def _envelopes(
    files: tuple[str, ...], topic: str | None, partition: int | None, most: int, decoded: Container[str] = ()
) -> Iterator[Fields]:
    """Return the messages in lines of JSON. The command's topic and partition override those in a line."""
    # A byte takes six characters at most in JSON, and once more its share of base64.
    lines = _messages(files, True, b"\n", 8 * most + READ_BYTES)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            message = parse_envelope(line, decoded)
        except ConfigError as error:
            raise ConfigError(f"line {number}: {error}") from None
        if topic is None and message.topic is None:
            raise ConfigError(f'line {number}: say which topic with -t, or as "topic" in the line')
        chosen = message.partition if partition is None else None if partition < 0 else partition
        yield (
            message.key,
            message.value,
            chosen,
            message.timestamp_ms,
            message.headers,
            topic or message.topic,
        )


def _message_bytes_max(bootstrap: str, config: Mapping[str, str]) -> int:
    """Return ``max.request.size``, the size in bytes beyond which a message of the input is refused."""
    from penstock.client.config import ProducerConfig

    return ProducerConfig.parse(config, {"bootstrap_servers": bootstrap}).max_request_size


def split(stream: IO[bytes], separator: bytes, most: int | None = None) -> Iterator[bytes]:
    """Yield the parts of `stream` between separators, in bounded memory.

    A last part without a separator is included.

    Raises:
        ConfigError: a part has more than `most` bytes.
    """
    rest = b""
    read = getattr(stream, "read1", stream.read)
    while chunk := read(READ_BYTES):
        *whole, rest = (rest + chunk).split(separator)
        yield from whole
        if most is not None and len(rest) > most:
            raise ConfigError(
                f"a message without an end after {most} bytes, the most that max.request.size allows: is "
                "the delimiter (-D) right? -X max.request.size=N allows larger ones"
            )
    if rest:
        yield rest


def _messages(files: tuple[str, ...], split_file: bool, separator: bytes, most: int) -> Iterator[bytes]:
    if not files:
        if sys.stdin.isatty():
            say("reading messages from the terminal, one a line; Ctrl-D ends")
        yield from split(sys.stdin.buffer, separator, most)
    for name in files:
        with open(name, "rb") as file:
            if split_file:
                yield from split(file, separator, most)
                continue
            whole = file.read(most + 1)
            if len(whole) > most:
                raise ConfigError(
                    f"{name} has more than {most} bytes, the most that max.request.size allows a message: "
                    "split it into messages with -l, or allow larger ones with -X max.request.size=N"
                )
            yield whole


def _with_keys(
    values: Iterable[bytes], key: bytes | None, separator: bytes | None
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Return pairs of key and value. A message without the key delimiter has no key, as in kcat."""
    if separator is None:
        return ((key, value) for value in values)

    def cut(message: bytes) -> tuple[bytes | None, bytes]:
        before, found, after = message.partition(separator)
        return (before, after) if found else (None, message)

    return (cut(message) for message in values)


def _header(word: str) -> Header:
    name, equals, value = word.partition("=")
    if not name:
        raise ConfigError(f"-H takes NAME=VALUE, not {word!r}")
    return name, os.fsencode(value) if equals else None


def _send(messages: Iterable[Fields], bootstrap: str, config: dict[str, str]) -> int:
    """Send all messages, wait for every acknowledgement, and return the number of messages.

    The first failure ends the sending. With ``transactional.id``, all messages are in one transaction, which
    a failure aborts.
    """
    from penstock.client import Producer
    from penstock.client.produce.delivery import FirstFailure

    failure = FirstFailure()
    count = 0
    with Producer(bootstrap_servers=bootstrap, config=config) as producer, producer.at_once():
        send, watch = producer.send, failure.watch
        for key, value, partition, timestamp_ms, headers, topic in messages:
            watch(
                send(
                    topic or "",
                    value,
                    key=key,
                    partition=partition,
                    timestamp=timestamp_ms,
                    headers=headers,
                )
            )
            count += 1
            if failure.error is not None:
                break
        producer.flush()
        if failure.error is not None:
            raise failure.error
    return count
