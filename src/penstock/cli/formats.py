"""The format strings of `penstock consume -f`, which are kcat's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.cli.options import unescape
from penstock.errors import ConfigError
from penstock.headers import Header
from penstock.model import Record
from penstock.printable import printable_bytes

Printer = Callable[[Record], bytes]

TOKENS = "sSRkKTtpoh"
"""The letters that may follow % in a format string, besides % itself."""


def format_printer(text: str, null: bytes = b"", *, for_terminal: bool = False) -> Printer:
    r"""Return a printer for a format string such as ``%t/%p/%o: %s\n``; `null` replaces a null key or value.

    With `for_terminal`, unprintable characters in the record are escaped, except tabs.

    Raises:
        ConfigError: an unknown % token or backslash escape, or a single word, which is the name of a format.
    """
    if len(text) > 1 and text.isalpha():
        raise ConfigError(
            f"-f {text!r} would print that word for each message: write -f '%s\\n' with %s for the value, "
            "or -J for JSON lines; parquet and csv are files"
        )
    literals: list[bytes] = []
    tokens: list[Printer] = []
    readers = _readers(null)
    if for_terminal:
        readers = {token: _spelled_out(read) for token, read in readers.items()}
    first, *pieces = text.replace("%%", "\0").split("%")
    literals.append(_literal(first))
    for piece in pieces:
        reader = readers.get(piece[:1])
        if reader is None:
            raise ConfigError(f"-f {text!r}: %{piece[:1]} is no token; use one of %{' %'.join(TOKENS)} or %%")
        tokens.append(reader)
        literals.append(_literal(piece[1:]))

    def render(record: Record) -> bytes:
        line = literals[0]
        for token, literal in zip(tokens, literals[1:], strict=True):
            line += token(record) + literal
        return line

    return render


def _spelled_out(read: Printer) -> Printer:
    return lambda record: printable_bytes(read(record), "\t")


def _readers(null: bytes) -> dict[str, Printer]:
    def or_null(value: bytes | None) -> bytes:
        return null if value is None else value

    return {
        "s": lambda record: or_null(record.value),
        "S": lambda record: _length(record.value),
        "R": lambda record: (-1 if record.value is None else len(record.value)).to_bytes(
            4, "big", signed=True
        ),
        "k": lambda record: or_null(record.key),
        "K": lambda record: _length(record.key),
        "T": lambda record: b"%d" % record.timestamp,
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "h": lambda record: _headers(record.headers, null),
    }


def _literal(text: str) -> bytes:
    return unescape(text.replace("\0", "%"))


def _length(value: bytes | None) -> bytes:
    return b"%d" % (-1 if value is None else len(value))


def _headers(headers: Sequence[Header], null: bytes) -> bytes:
    return b",".join(name.encode() + b"=" + (null if value is None else value) for name, value in headers)
