"""Writing the source of codecs: heads are gathered into runs, tails are written out between them.

Every wire type begins with a head of fixed size: the value itself, or the length in front of it.
Heads of adjacent fields form a run, which one call of `struct` reads or writes. A varint takes part
as the single byte that it nearly always is; a test of that byte leads to the slow path otherwise.
`decode_emitter` and `encode_emitter` write the runs of either direction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import Any

from penstock.protocol.compiler import runtime


class HeadKind:
    """How a head looks on the wire.

    A varint takes part in runs as the one byte of a small value: `code` is that byte's. `read` and
    `write` are for values of any size. What a small byte stands for is looked up in `small`, if given. Where
    most values take two bytes, `mostly_two` has these read in place, too.
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
        """Whether the same numbers are sent again and again. Those of 64 bits are offsets and times."""
        return self.is_varint and not self.name.endswith("64")

    @property
    def packing(self) -> str | None:
        """How numbers are packed: ``w`` unsigned, ``z`` zig-zag, None where the size is fixed."""
        return self.name[0] if self.is_varint else None


class ArrayPart:
    """The elements of an array, of one kind each; `sent` is the local with the count on the wire.

    Without it, the count is written with the elements.
    """

    __slots__ = ("bias", "kind", "sent", "values")

    def __init__(self, values: str, sent: str, kind: HeadKind, bias: int) -> None:
        self.values = values
        self.sent = sent
        self.kind = kind
        self.bias = bias


def fixed_kind(code: str) -> HeadKind:
    """Return the head of a value that `struct` describes by `code`."""
    one = Struct(">" + code)
    return HeadKind(_CODE_NAMES.get(code, code), code, one.size, None, one.pack)


_CODE_NAMES = {"?": "o", "16s": "u"}

UVARINT = HeadKind("v", "B", 1, runtime.read_uvarint, runtime.write_uvarint)
RECORDS_BYTES = HeadKind("v", "B", 1, runtime.read_uvarint, runtime.write_uvarint, mostly_two=True)
"""The length of record batches: few of them have less than 128 bytes."""
INT8, INT16, INT32 = fixed_kind("b"), fixed_kind("h"), fixed_kind("i")

TAKEN = frozenset((
    "append", "data", "end", "holder", "known", "last", "message", "parts", "pos", "seen", "size", "tag_end",
    "tags",
))  # fmt: skip
"""Locals that compiled functions use for themselves."""

Run = list[tuple[str, HeadKind]]


def codes_of(run: Sequence[tuple[str, HeadKind]]) -> str:
    """Return the struct format of a run."""
    return "".join(kind.code for _, kind in run)


def name_of(run: Sequence[tuple[str, HeadKind]]) -> str:
    """Return a run as part of a Python name."""
    return "".join(kind.name for _, kind in run)


def singly(run: Run) -> list[Run]:
    """Return a run cut so that each varint stands alone."""
    pieces: list[Run] = []
    for head in run:
        if head[1].is_varint or not pieces or pieces[-1][-1][1].is_varint:
            pieces.append([])
        pieces[-1].append(head)
    return pieces


class Emitter(ABC):
    """Lines of Python, the constants they use, and the run of heads that is not written yet."""

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
        """An indented block. No run reaches into it or out of it."""
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
        """Return a new local name."""
        number = self._names[stem] = self._names.get(stem, stem in TAKEN) + 1
        return stem if number == 1 else f"{stem}{number}"

    def constant(self, name: str, value: Any) -> str:
        """Make `value` known to the compiled code under `name`, or a name like it."""
        candidate, number = name, 1
        while self.constants.get(candidate, value) is not value and self.constants[candidate] != value:
            number += 1
            candidate = f"{name}_{number}"
        self.constants[candidate] = value
        return candidate

    def shared(self, name: str, make: Any) -> str:
        """Return a constant that is made once for its name."""
        if name not in self.constants:
            self.constants[name] = make()
        return name

    def finish(self, name: str, inner: Emitter) -> None:
        """Take in a function that was written on the side."""
        inner.flush()
        self.functions[name] = inner.lines

    def source(self) -> str:
        """Return all that was written, functions on the side first."""
        return "\n\n\n".join("\n".join(lines) for lines in [*self.functions.values(), self.lines]) + "\n"

    def _beside(self, inner: Emitter, opening: str) -> None:
        """Prepare an emitter for a function on the side: it shares the constants."""
        inner.constants = self.constants
        inner.functions = self.functions
        inner.path = list(self.path)
        inner.line(opening)
        inner._indent = 1

    @property
    def where(self) -> str:
        """The field that is being written, for messages."""
        return ".".join([self.title, *self.path])

    def head(self, expression: str, kind: HeadKind) -> None:
        """Add a head to the run. For reading, the expression is where the value goes."""
        self._run.append((expression, kind))

    @abstractmethod
    def array(self, part: ArrayPart) -> None:
        """Add the elements of an array, whose count is the head before."""

    @abstractmethod
    def flush(self) -> None:
        """Write the run that was gathered."""
