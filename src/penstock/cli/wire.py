"""``penstock wire``: decodes and encodes bytes of Kafka's protocol, and records and replays traffic."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from penstock.cli.outcome import FAILURE, put, say
from penstock.errors import ConfigError, DecodeError

if TYPE_CHECKING:
    from penstock.explorer.conversation import ConversationEntry


@click.group("wire")
def command() -> None:
    """Decode, encode, record and replay Kafka's wire protocol.

    \b
    Examples:
      penstock wire decode 000000110003000c0000000700026d650001010000
      tcpdump -i lo -w talk.pcap port 9092; penstock wire decode talk.pcap
      penstock wire decode -n GroupMetadataValue --framed 0003...
      echo '{"topics": null, ...}' | penstock wire encode -n MetadataRequest -v 12
      penstock wire decode --jsonl < lines.jsonl
      penstock wire record talk.pcap orders.rec
      penstock wire replay orders.rec localhost:9092
    """


def _shared(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with the options that ``wire decode`` and ``wire encode`` have in common."""
    for option in (
        click.option("--jsonl", is_flag=True, help="Complete JSON lines, one for one; see the page on wire."),
        click.option(
            "--framed",
            is_flag=True,
            help="The version stands in front, as with records of internal topics and consumer protocol.",
        ),
        click.option("-v", "--version", type=int, metavar="N", help="The version of the message."),
        click.option(
            "-n",
            "--name",
            metavar="NAME",
            help="The definition's name, or a file with one: FetchResponse, my.json.",
        ),
        click.argument("source", required=False),
    ):
        function = option(function)
    return function


@command.command("decode")
@_shared
@click.option("--header", is_flag=True, help="The message is a response and begins with its header.")
@click.option("--answers", metavar="FILE", help="What the broker sent, where SOURCE is what the client sent.")
@click.option("--port", type=click.IntRange(1, 65535), help="In a capture: the broker's port.")
@click.option("--tree", "form", flag_value="tree", help="A tree; what a terminal gets.")
@click.option("--json", "form", flag_value="json", help="One line of JSON per message; what a pipe gets.")
def decode(
    source: str | None,
    name: str | None,
    version: int | None,
    framed: bool,
    jsonl: bool,
    header: bool,
    answers: str | None,
    port: int | None,
    form: str | None,
) -> int:
    """Decode bytes to a tree or JSON.

    SOURCE is hex digits, a file, or - for stdin, which is also read where SOURCE is left out. It may
    hold one request with its header, a file of frames (each behind its size), or a capture of TCP
    (pcap or pcapng), which the command recognises. With -n it is one message without a header.

    \b
    Examples:
      penstock wire decode talk.pcap --port 9092
      penstock wire decode requests.bin --answers responses.bin --json
      penstock wire decode -n FetchResponse -v 12 --header answer.bin
      penstock wire decode -n ConsumerProtocolAssignment --framed 0001...
      penstock wire decode --jsonl < lines.jsonl > completed.jsonl
    """
    if jsonl:
        from penstock.explorer.lines import decode_line

        return _lines(source, decode_line)
    from penstock.explorer.sources import class_named, read_any, read_named, to_bytes

    data = to_bytes(_load(source))
    if not data:
        raise DecodeError("there is nothing to decode: give hex digits, a file, or bytes on stdin")
    if name is not None:
        return _show([read_named(class_named(name), version, data, framed=framed, header=header)], form)
    if version is not None or framed or header:
        raise ConfigError("-v, --framed and --header belong to a message: name it with -n")
    replies = None if answers is None else to_bytes(_file(answers))
    return _show(read_any(data, replies, port), form)


@command.command("encode")
@_shared
@click.option("--binary", is_flag=True, help="Write the bytes themselves, not hex.")
def encode(
    source: str | None, name: str | None, version: int | None, framed: bool, jsonl: bool, binary: bool
) -> int:
    """Encode JSON to bytes, as one line of hex per message.

    SOURCE is JSON, a file, or - for stdin. It holds what `wire decode --json` prints: objects with name,
    version and json; from one with a header, a whole frame with its size is made. With -n and -v, SOURCE is
    the JSON of one message.

    \b
    Examples:
      penstock wire encode -n ResponseHeader -v 0 '{"correlationId": 7}'
      penstock wire decode talk.pcap --json > talk.jsonl
      penstock wire encode talk.jsonl --binary
      penstock wire encode --jsonl < lines.jsonl > completed.jsonl
    """
    if jsonl:
        from penstock.explorer.lines import encode_line

        return _lines(source, encode_line)
    from penstock.explorer.conversation import encoded
    from penstock.explorer.sources import class_named

    found = None if name is None else class_named(name)
    if found is not None and version is None:
        raise ConfigError("-n needs a version: give it with -v")
    for each in _objects(_load(source)):
        entry = each if found is None else {"version": version, "json": each}
        body = encoded({**entry, "framed": True} if framed else entry, found)
        sys.stdout.buffer.write(body if binary else body.hex().encode() + b"\n")
    sys.stdout.buffer.flush()
    return 0


@command.command("record")
@click.argument("capture", metavar="CAPTURE")
@click.argument("recording", metavar="RECORDING")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="The broker's port, where others are captured too."
)
@click.option(
    "--mask",
    "places",
    multiple=True,
    metavar="PLACE",
    help="Mask values, keys, headers or client_ids as a whole. May be repeated, as the next two.",
)
@click.option("--mask-field", "fields", multiple=True, metavar="PATH", help="Mask a member of JSON values.")
@click.option("--mask-match", "matches", multiple=True, metavar="REGEX", help="Mask what matches in values.")
@click.option("--topics", metavar="REGEX", help="Mask records of these topics only.")
@click.option("--keep-length", is_flag=True, help="Masks keep lengths, and which characters are digits.")
def record(
    capture: str,
    recording: str,
    port: int | None,
    places: tuple[str, ...],
    fields: tuple[str, ...],
    matches: tuple[str, ...],
    topics: str | None,
    keep_length: bool,
) -> int:
    """Make a recording of a capture, to be replayed in tests.

    Passwords and tokens are left out in any case.

    \b
    Examples:
      penstock wire record talk.pcap orders.rec
      penstock wire record talk.pcap orders.rec --mask-field customer.email
      penstock wire record talk.pcap orders.rec --mask-match '[0-9]{16}'
    """
    from penstock.testing.replay import Recording, mask_all, mask_fields, mask_matches

    rules = [mask_matches(each, keep_length=keep_length, topics=topics) for each in matches]
    if fields:
        rules.append(mask_fields(*fields, keep_length=keep_length, topics=topics))
    if places:
        rules.append(mask_all(*places, keep_length=keep_length, topics=topics))
    made = Recording.from_pcap(capture, mask=rules, port=port)
    made.save(recording)
    put(f"{recording}: {len(made.exchanges)} requests")
    if made.unreadable_count:
        say(f"{made.unreadable_count} messages of the capture could not be read and are left out")
    return 0


@command.command("replay")
@click.argument("recording", metavar="RECORDING")
@click.argument("bootstrap_servers", metavar="HOST:PORT")
@click.option("--client-id", "client_ids", multiple=True, metavar="ID", help="Only requests of this client.")
@click.option("--pauses", is_flag=True, help="Wait before requests as was waited when they were recorded.")
@click.option("--timeout", "timeout_s", type=float, default=30.0, metavar="SECONDS", help="For each answer.")
def replay(
    recording: str, bootstrap_servers: str, client_ids: tuple[str, ...], pauses: bool, timeout_s: float
) -> int:
    """Send recorded requests to a broker; print how answers differ.

    The exit code is 1 if any answer differs. The requests change the broker's data.

    \b
    Examples:
      penstock wire replay orders.rec localhost:9092
      penstock wire replay orders.rec localhost:9092 --client-id shop --pauses
    """
    from penstock.testing.replay import Recording

    differences = Recording.load(recording).play_to(
        bootstrap_servers, client_ids=client_ids or None, with_pauses=pauses, timeout_s=timeout_s
    )
    for each in differences:
        put(str(each))
    return FAILURE if differences else 0


def _lines(source: str | None, complete: Callable[[bytes], str]) -> int:
    """Print `complete(line)` as soon as an input line arrives, because its sender may wait for the output."""
    stream = _stdin() if source in (None, "-") else open(str(source), "rb")  # noqa: SIM115
    with stream:
        for line in stream:
            sys.stdout.buffer.write(complete(line).encode() + b"\n")
            sys.stdout.buffer.flush()
    return 0


def _show(entries: Iterable[ConversationEntry], form: str | None) -> int:
    """Print messages; return the exit code, 1 if a message could not be read."""
    from penstock.explorer.tree import Tree, wants_colour

    stream = sys.stdout
    trouble = 0
    tree = Tree(wants_colour(stream))
    as_tree = form == "tree" or (form is None and stream.isatty())
    for entry in entries:
        lines: Iterable[str] = (
            tree.entry(entry) if as_tree else [json.dumps(entry.as_json(), ensure_ascii=True)]
        )
        trouble += entry.error is not None
        stream.buffer.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    stream.flush()
    if trouble:
        say(f"{trouble} message{'s' * (trouble != 1)} could not be read; each says why where it stands")
    return FAILURE if trouble else 0


def _load(source: str | None) -> bytes:
    """Return the bytes of the argument SOURCE: from stdin, from a file of that name, or its own text."""
    if source is None or source == "-":
        return _stdin().read()
    if _is_file(source):
        return _file(source)
    if source[:1] not in "{[" and not all(letter in "0123456789abcdefABCDEFx:, \n\t" for letter in source):
        raise ConfigError(f"{source[:80]!r} is neither a file nor hex digits")
    return source.encode()


def _is_file(source: str) -> bool:
    try:
        return Path(source).is_file()
    except (OSError, ValueError):  # hex digits make names that no file system takes
        return False


def _file(path: str) -> bytes:
    return Path(path).read_bytes()


def _stdin() -> IO[bytes]:
    return sys.stdin.buffer


def _past_blanks(text: str, position: int) -> int:
    found = re.compile(r"\s*").match(text, position)
    return found.end() if found else position


def _objects(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text; each may span several lines."""
    try:
        text = data.decode()
        decoder = json.JSONDecoder()
        position = 0
        while (position := _past_blanks(text, position)) < len(text):
            found, position = decoder.raw_decode(text, position)
            if not isinstance(found, dict):
                break
            yield found
        else:
            return
    except (ValueError, RecursionError) as error:  # a number of very many digits is a plain ValueError
        raise DecodeError(f"no JSON: {error}") from None
    raise DecodeError(f"an object was expected, not {json.dumps(found)[:80]}")
