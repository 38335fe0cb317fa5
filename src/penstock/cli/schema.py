"""``penstock schema``: shows and checks definitions of Kafka messages."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import completion
from penstock.cli.definition_names import known_names
from penstock.cli.outcome import FAILURE, put, readable
from penstock.cli.registry import diff
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError, DecodeError

if TYPE_CHECKING:
    from penstock.protocol.message import Message
    from penstock.protocol.schema.definition import Definition


@click.group("schema", short_help="Look at the definitions of messages.")
def command() -> None:
    """Show and check definitions of messages: grammar, code, evolution, sizes.

    `diff` compares schemas of keys and values in a registry, as `penstock registry diff` does.

    A definition is named by its name (FetchResponse, GroupMetadataValue), by an API (Fetch, or its
    key, 1), or is a file in the definition language.

    \b
    Examples:
      penstock schema show Fetch 4
      penstock schema code MetadataRequest 12
      penstock schema check old/LampReport.json new/LampReport.json
      penstock schema sizes MetadataResponse sample.json -v 9
    """


command.add_command(diff)


@command.command("show", short_help="The grammar of a message, and its fields.")
@click.argument("api", metavar="API", shell_complete=completion.definitions)
@click.argument("version", type=int, required=False)
def show(api: str, version: int | None) -> None:
    """Show the grammar of a message, as in Kafka's protocol guide, and its fields as a table.

    Without VERSION: the grammar of the newest, and the fields of all versions.

    \b
    Examples:
      penstock schema show Metadata 12
      penstock schema show OffsetCommitValue
      penstock schema show LampReport.json
    """
    from penstock.protocol.inspect.printer import HEADINGS, grammar, rows

    for number, definition in enumerate(_in_version(_definitions(api), version)):
        if number:
            put()
        if definition.valid:
            chosen = definition.valid.highest if version is None else version
            title, *lines = grammar(definition, chosen)
            put(title, bold=True)
            for line in lines:
                put(line)
            put()
        put(_summary(definition), bold=True)
        if fields := list(rows(definition, version)):
            _print_table([HEADINGS, *fields])


@command.command("code", short_help="The source that reads and writes a message.")
@click.argument("api", metavar="API", shell_complete=completion.definitions)
@click.argument("version", type=int)
def code(api: str, version: int) -> None:
    """Print the Python source that reads and writes a message in a version, which the codec compiles.

    \b
    Example:
      penstock schema code FetchResponse 12
    """
    from penstock.protocol.compiler.compile import decoder_source, encoder_source
    from penstock.protocol.compiler.layout import resolve

    for number, definition in enumerate(_in_version(_definitions(api), version)):
        layout = resolve(definition, version)
        for source, constants in (decoder_source(layout), encoder_source(layout)):
            if number or source.startswith("def encode"):
                put()
            put(f"# {definition.name} v{version}", bold=True)
            if constants:
                put(f"# given: {', '.join(sorted(constants))}")
            for line in source.rstrip().split("\n"):
                put(line)
            number = 1


@command.command("check", short_help="Whether a definition evolved compatibly.")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("-q", "--quiet", is_flag=True, help="Say only what breaks.")
def check(old: str, new: str, quiet: bool) -> int:
    """Check whether a definition evolved compatibly: the exit code is 1 if anything breaks.

    OLD and NEW are definitions, or directories in which files of the same name belong together.
    Versions that were there keep their bytes: no field removed, added, moved or of another type,
    no tag used again, no default changed, no version lost. A new version may differ in any way, and a
    new tagged field may be added to a flexible version.

    \b
    Examples:
      penstock schema check old/LampReport.json new/LampReport.json
      penstock schema check FetchRequest my/FetchRequest.json
      penstock schema check kafka-4.3/messages kafka-trunk/messages
    """
    from penstock.protocol.inspect.evolution import compare

    breaks = notes = 0
    for before, after in _pairs(old, new):
        if isinstance(after, str):
            put(f"breaks: {after}")
            breaks += 1
            continue
        for finding in compare(before, after):
            breaks += finding.breaks
            notes += not finding.breaks
            if finding.breaks or not quiet:
                put(f"{'breaks' if finding.breaks else 'note'}: {finding}")
    if not breaks and not quiet:
        put(f"compatible{f', {notes} note' + 's' * (notes > 1) if notes else ''}")
    return FAILURE if breaks else 0


@command.command("sizes", short_help="What each integer field of a sample costs in other encodings.")
@click.argument("definition", metavar="DEFINITION", shell_complete=completion.definitions)
@click.argument("sample", metavar="SAMPLE.json")
@click.option(
    "-v", "--version", type=int, metavar="N", help="The version of the sample; without it the newest."
)
def sizes(definition: str, sample: str, version: int | None) -> None:
    """Compare sizes of a sample's integer fields: fixed width, zig-zag varint, unsigned varint.

    SAMPLE.json (or - for stdin) is one message in Kafka's JSON form, or the output of `penstock wire
    decode --json` for one. The columns are the bytes of all values of the field together; the encodings
    are those of KIP-625.

    \b
    Examples:
      penstock schema sizes LampReport.json sample.json
      penstock wire decode -n MetadataResponse -v 9 --json answer.bin |
        penstock schema sizes MetadataResponse -
    """
    from penstock.protocol.inspect.json_form import from_json
    from penstock.protocol.inspect.sizes import columns, measure
    from penstock.protocol.loaded_classes import message_class

    found = _single(definition)
    source = _sample(sample)
    if isinstance(source, dict) and isinstance(source.get("json"), dict):
        # What `wire decode --json` prints has the message inside, and its version.
        said, source = source.get("version"), source["json"]
        version = said if version is None and isinstance(said, int) else version
    chosen = found.valid.highest if version is None else version
    made: type[Message] = message_class(found)
    measured = measure(from_json(made, source, chosen), chosen)
    put(f"{found.name} v{chosen}: {measured.bytes_now} bytes", bold=True)
    _print_table(list(columns(measured)), numbers_from=2)


# --- finding definitions ----------------------------------------------------------------------------------


def _definitions(word: str) -> list[Definition]:
    """Return the definition in a file or of a message, or the request and response definitions of an API."""
    from penstock.protocol.api import API_TABLE
    from penstock.protocol.message_index import HOMES
    from penstock.protocol.schema.loader import load_definition, read_definition

    if word.endswith(".json") or "/" in word:
        return [read_definition(word)]
    names = {name.lower(): name for name in HOMES}
    if word.lower() in names:
        return [load_definition(names[word.lower()])]
    for api in API_TABLE.values():
        if word == str(api.key) or word.lower() == api.name.lower():
            return [load_definition(f"{api.name}{kind}") for kind in ("Request", "Response")]
    raise ConfigError(f"there is no message, API or file called {word!r}{did_you_mean(word, known_names())}")


def _in_version(definitions: list[Definition], version: int | None) -> list[Definition]:
    for definition in definitions:
        if version is not None and version not in definition.valid:
            raise ConfigError(f"{definition.name} has versions {definition.valid}, not {version}")
    return definitions


def _pairs(old: str, new: str) -> Iterator[tuple[Definition, Definition | str]]:
    """Yield pairs (old, new) of definitions; `new` is an error text if there is no new definition."""
    from penstock.protocol.schema.definition import DefinitionError
    from penstock.protocol.schema.loader import read_definition

    if not (Path(old).is_dir() and Path(new).is_dir()):
        yield _single(old), _single(new)
        return
    paths = sorted(Path(old).glob("*.json"))
    if not paths:
        raise ConfigError(f"{old} holds no definitions")
    for path in paths:
        before = read_definition(path)
        other = Path(new) / path.name
        try:
            yield (
                before,
                read_definition(other) if other.exists() else f"{before.name}: the definition is gone",
            )
        except DefinitionError as error:
            yield before, str(error)


def _single(word: str) -> Definition:
    found = _definitions(word)
    if len(found) > 1:
        raise ConfigError(f"{word} has two definitions: name {' or '.join(each.name for each in found)}")
    return found[0]


def _sample(path: str) -> Any:
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{path}: no JSON: {error}") from None


# --- printing ---------------------------------------------------------------------------------------------


def _summary(definition: Definition) -> str:
    flexible = definition.flexible.intersect(definition.valid)
    parts = [f"{definition.name}: {definition.type}, versions {definition.valid}"]
    if definition.api_key is not None:
        parts.append(f"key {definition.api_key}")
    parts.append(f"flexible from {flexible.lowest}" if flexible else "never flexible")
    if definition.latest_unstable:
        parts.append("the newest is unstable")
    return ", ".join(parts)


def _print_table(table: Sequence[Sequence[str]], numbers_from: int | None = None) -> None:
    """Print a table with aligned columns; those from `numbers_from` to the last but one are aligned right."""
    table = [[readable(cell) for cell in row] for row in table]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for number, row in enumerate(table):
        put("  ".join(_cells(row, widths, numbers_from)).rstrip())
        if not number:
            put("  ".join("-" * width for width in widths))


def _cells(row: Sequence[str], widths: Iterable[int], numbers_from: int | None) -> Iterator[str]:
    for column, (text, width) in enumerate(zip(row, widths, strict=True)):
        is_number = numbers_from is not None and column >= numbers_from
        yield text.rjust(width) if is_number else text.ljust(width)
