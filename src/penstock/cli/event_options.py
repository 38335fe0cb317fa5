"""The options of ``penstock event``, and the modes and formats that they select."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import pairs
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.cloudevents.lines import LineOptions

MEDIA_TYPES = {
    "json": "application/cloudevents+json",
    "json-batch": "application/cloudevents-batch+json",
    "avro": "application/cloudevents+avro",
    "protobuf": "application/cloudevents+protobuf",
    "protobuf-batch": "application/cloudevents-batch+protobuf",
}
TYPES = ("Boolean", "Integer", "String", "Binary", "URI", "URI-reference", "Timestamp")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def profile_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with the options that determine which events are valid."""
    for option in (
        click.option(
            "--type",
            "types",
            metavar="NAME=TYPE",
            multiple=True,
            help=f"Declare the type of an extension: {', '.join(TYPES)}. May be repeated.",
        ),
        click.option(
            "--strict/--lenient",
            "strict",
            default=True,
            help="Take the binding at its word (default), or read what sloppy producers mean.",
        ),
    ):
        command = option(command)
    return command


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with the options that determine which records are events."""
    assume = click.option(
        "--assume-structured", is_flag=True, help="Read records without content-type as structured JSON."
    )
    return assume(profile_options(command))


def writing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with the options that determine how events are converted to records."""
    for option in (
        click.option("--key-from-partitionkey", is_flag=True, help="partitionkey, where set, is the key."),
        click.option("--binary-headers", is_flag=True, help="Structured: the ce_ headers as well."),
        text_option(),
        click.option(
            "--format",
            "event_format",
            type=click.Choice(["json", "avro", "protobuf"]),
            default="json",
            show_default=True,
            help="Structured: the event format of the value.",
        ),
        click.option(
            "--mode",
            type=click.Choice(["binary", "structured"]),
            default="binary",
            show_default=True,
            help="Data in the value and the rest in headers; or all of it in the value.",
        ),
    ):
        command = option(command)
    return command


def text_option() -> Decorator:
    return click.option(
        "--text-data", is_flag=True, help="JSON format: UTF-8 text as a string instead of base64."
    )


def jsonl_option(help: str = "Many: one JSON object a line, in and out.") -> Decorator:
    return click.option("--jsonl", is_flag=True, help=help)


FILE = click.argument("file", metavar="[FILE]", type=click.File("rb"), default="-")


def line_options(strict: bool, types: tuple[str, ...], **others: Any) -> LineOptions:
    from penstock.cloudevents import WELL_KNOWN_EXTENSIONS, AttributeType
    from penstock.cloudevents.lines import LineOptions

    by_name = {kind.value.lower(): kind for kind in AttributeType}
    declared = dict(WELL_KNOWN_EXTENSIONS)
    for name, word in pairs(types, "--type").items():
        if word.lower() not in by_name:
            raise ConfigError(f"--type {name}={word}: there are {', '.join(TYPES)}")
        declared[name] = by_name[word.lower()]
    return LineOptions(profile="strict" if strict else "lenient", extension_types=declared, **others)


def key_mapper_if(wanted: bool) -> Any:
    from penstock.cloudevents import partitionkey_mapper

    return partitionkey_mapper if wanted else None


def check_mode(mode: str, event_format: str, binary_headers: bool) -> None:
    """Raise ConfigError if options for structured records are given with binary content mode."""
    if mode == "binary" and (binary_headers or event_format != "json"):
        option = "--binary-headers" if binary_headers else "--format"
        raise ConfigError(f"{option} is for structured records: add --mode structured")


def header_of(word: str) -> tuple[str, bytes | None]:
    name, equals, value = word.partition("=")
    if not name:
        raise ConfigError(f"-H takes NAME=VALUE, not {word!r}")
    return name, value.encode("utf-8", "surrogateescape") if equals else None
