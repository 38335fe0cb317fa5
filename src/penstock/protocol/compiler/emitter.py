"""Generates codecs: fixed-size starts of fields (heads) form runs; variable parts (tails) follow.

Every wire type begins with a head of fixed size: the value itself, or the length before it.
Heads of adjacent fields form a run, which one call of `struct` reads or writes. In a run, a varint
is the single byte that it nearly always is; otherwise a test of that byte leads to the slow path.
`decode_emitter` writes the code that decodes runs, `encode_emitter` the code that encodes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import Any

from penstock.protocol.compiler import runtime


class HeadKind:
    """The encoding of a field's head, which is its value or its length: of fixed size, or a varint.

    A run of heads holds a varint as the one byte of a small value, with the `struct` code of that byte.
    `read` and `write` handle values of any size. `small`, if given, maps a byte to its value. With
    `mostly_two`, generated code also reads two-byte values in place.
    """

    __slots__ = ("code", "mostly_two", "name", "read", "size", "small", "write")

    def __init__(
        self,
        name: str,
        code: str,
        size: int,
        read: runtime.HeadReader | None,
        write: runtime.HeadWriter,
        small: Sequence[int] | None = None,
        *,
        mostly_two: bool = False,
    ) -> None:
        self.name = name
        self.code = code
        self.size = size
        self.read = read
        self.write = write
        self.small = small
        self.mostly_two = mostly_two

    @property
    def is_varint(self) -> bool:
        return self.read is not None

    @property
    def recurs(self) -> bool:
        """True if numbers often repeat, so that caching their bytes helps: varints except 64-bit ones."""
        return self.is_varint and not self.name.endswith("64")

    @property
    def packing(self) -> str | None:
        """The encoding of numbers: ``w`` for unsigned varint, ``z`` for zig-zag, None for a fixed size."""
        return self.name[0] if self.is_varint else None


class ArrayPart:
    """The elements of an array in a run of adjacent fields; the local `sent` has the count on the wire.

    If `sent` is empty, the count is written together with the elements.
    """

    __slots__ = ("bias", "kind", "sent", "values")

    def __init__(self, values: str, sent: str, kind: HeadKind, bias: int) -> None:
        self.values = values
        self.sent = sent
        self.kind = kind
        self.bias = bias


def fixed_kind(code: str) -> HeadKind:
    """Return the `HeadKind` of a fixed-size value with the `struct` format `code`."""
    one = Struct(">" + code)
    return HeadKind(_CODE_NAMES.get(code, code), code, one.size, None, one.pack)


_CODE_NAMES = {"?": "o", "16s": "u"}

UVARINT = HeadKind("v", "B", 1, runtime.read_uvarint, runtime.write_uvarint)
RECORDS_BYTES = HeadKind("v", "B", 1, runtime.read_uvarint, runtime.write_uvarint, mostly_two=True)
"""The encoding of the length before record batches: a varint that mostly has two bytes, since few batches
are shorter than 128 bytes.
"""
INT8, INT16, INT32 = fixed_kind("b"), fixed_kind("h"), fixed_kind("i")

TAKEN = frozenset((
    "append", "data", "end", "holder", "known", "large", "last", "message", "parts", "pos", "seen", "size",
    "tag_end", "tags",
))  # fmt: skip
"""Names of locals that generated functions use themselves, and that no generated local for a field may
have.
"""

Run = list[tuple[str, HeadKind]]


def codes_of(run: Sequence[tuple[str, HeadKind]]) -> str:
    """Return the `struct` format for the heads (values or lengths) of adjacent fields."""
    return "".join(kind.code for _, kind in run)


def name_of(run: Sequence[tuple[str, HeadKind]]) -> str:
    """Return a part of a Python identifier that encodes the kinds of adjacent heads (values or lengths)."""
    return "".join(kind.name for _, kind in run)


def singly(run: Run) -> list[Run]:
    """Divide a run of adjacent fields into shorter runs, in which each varint is alone."""
    pieces: list[Run] = []
    for head in run:
        if head[1].is_varint or not pieces or pieces[-1][-1][1].is_varint:
            pieces.append([])
        pieces[-1].append(head)
    return pieces


class Emitter(ABC):
    """Collects generated Python lines, constants for them, and fields whose code is not written yet."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.functions: dict[str, list[str]] = {}
        self.path: list[str] = []
        self._indent = 0
        self._names: dict[str, int] = {}
        self._run: Run = []

    def line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Write the line `opening`, and indent the lines that are written within the ``with`` block."""
        self.flush()
        self.line(opening)
        self._indent += 1
        before = len(self.lines)
        yield
        self.flush()
        if len(self.lines) == before:
            self.line("pass")
        self._indent -= 1

    def name(self, stem: str) -> str:
        """Return an unused name for a local variable of generated code: `stem`, or `stem` with a number."""
        number = self._names[stem] = self._names.get(stem, stem in TAKEN) + 1
        return stem if number == 1 else f"{stem}{number}"

    def constant(self, name: str, value: Any) -> str:
        """Add `value` to the constants of the generated code, as `name` or similar; return its name."""
        candidate, number = name, 1
        while self.constants.get(candidate, value) is not value and self.constants[candidate] != value:
            number += 1
            candidate = f"{name}_{number}"
        self.constants[candidate] = value
        return candidate

    def shared(self, name: str, make: Any) -> str:
        """Add the result of `make` to the constants as `name` if that name is new; return `name`."""
        if name not in self.constants:
            self.constants[name] = make()
        return name

    def finish(self, name: str, inner: Emitter) -> None:
        """Add a separate function `name` to the generated source, with the lines that `inner` has."""
        inner.flush()
        self.functions[name] = inner.lines

    def source(self) -> str:
        """Return the whole source, with separate functions first."""
        return "\n\n\n".join("\n".join(lines) for lines in [*self.functions.values(), self.lines]) + "\n"

    def _beside(self, inner: Emitter, opening: str) -> None:
        """Prepare the emitter `inner` to write a separate function, with this emitter's constants."""
        inner.constants = self.constants
        inner.functions = self.functions
        inner.path = list(self.path)
        inner.line(opening)
        inner._indent = 1

    @property
    def where(self) -> str:
        """The path of the field for which code is generated now, for error messages."""
        return ".".join([self.title, *self.path])

    def head(self, expression: str, kind: HeadKind) -> None:
        """Add a field's head (value or length), which is `expression`, to the run that is not written yet."""
        self._run.append((expression, kind))

    @abstractmethod
    def array(self, part: ArrayPart) -> None:
        """Add the elements of an array to the run that is not written yet; the head before is their count."""

    @abstractmethod
    def flush(self) -> None:
        """Write the code for the fields that have been added, and begin a new run."""
