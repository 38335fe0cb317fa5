"""Generates the source of encoders: one call packs adjacent fields, with arrays of fixed-size elements.

A run is divided where fixed-size values meet varints, because each has its own fast way: `struct` packs
fixed-size values; the bytes of varints, or of short arrays of them, are looked up in a cache and joined.
"""

from __future__ import annotations

from struct import Struct

from penstock.protocol.compiler import runtime
from penstock.protocol.compiler.emitter import UVARINT, ArrayPart, Emitter, HeadKind, codes_of, name_of
from penstock.protocol.quoting import literal

Piece = tuple[str, "HeadKind | ArrayPart"]


class EncodeEmitter(Emitter):
    """Collects an encoder's source. Its locals: the list `parts`, and the list's method `append`."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._pieces: list[Piece] = []

    def function(self, opening: str) -> EncodeEmitter:
        """Return an emitter for a separate function, which `finish` adds to the source."""
        inner = EncodeEmitter(self.title)
        self._beside(inner, opening)
        return inner

    def head(self, expression: str, kind: HeadKind) -> None:
        self._pieces.append((expression, kind))

    def array(self, part: ArrayPart) -> None:
        self._pieces.append((part.values, part))

    def tags(self, condition: str, section: str) -> None:
        """Write code that appends the tagged fields `section` if `condition` holds, else an empty section."""
        pieces, self._pieces = self._pieces, []
        with self.block(f"if {condition}:"):
            self._pieces = list(pieces)
            self.flush()
            self.line(f"append({section})")
        with self.block("else:"):
            self._pieces = [*pieces, ("0", UVARINT)]

    def before(self, text: str) -> None:
        """Write a line of generated code that must precede the code of the fields not written yet."""
        self.line(text)

    def refuse(self, problem: str) -> str:
        """Return a Python statement that raises EncodeError about the current field."""
        return f"raise EncodeError({literal(f'{self.where}: {problem}')})"

    def flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        for segment, packing in _segments(pieces):
            if packing is None:
                self._write_fixed(segment)
            else:
                self._write_packed(segment)

    # Fixed-size values, and lengths

    def _write_fixed(self, segment: list[Piece]) -> None:
        values = [value for value, _ in segment]
        if all(value.lstrip("-").isdigit() for value in values):
            constant = b"".join(kind.write(int(value)) for value, kind in _heads(segment))
            self.line(f"append({literal(constant)})")
            return
        counts = [part.sent for _, part in segment if isinstance(part, ArrayPart)]
        # The length of an array in this segment is looked after by the packer for its count.
        lengths = [value for value, kind in _heads(segment) if kind.is_varint and value not in counts]
        varints = [value for value in lengths if not value.isdigit()]
        fast, slow = self._with_arrays(segment, counts) if counts else self._without_arrays(segment)
        if not varints:
            self.line(f"append({fast})")
            return
        self.line(f"if {' | '.join(varints)} < 128:")  # lengths are not negative
        self.line(f"    append({fast})")
        self._write_two_bytes(segment, varints)
        self.line("else:")
        self.line(f"    append({slow})")

    def _with_arrays(self, segment: list[Piece], counts: list[str]) -> tuple[str, str]:
        """Return two expressions that encode fields with arrays: for lengths below 128, for all lengths."""
        name = "pack_" + "_".join(_piece_name(part) for _, part in segment)
        plan = [
            (part.kind, part.bias) if isinstance(part, ArrayPart) else (part, None) for _, part in segment
        ]
        pack = self.shared(name, lambda: runtime.RunPackers(plan))
        values = ", ".join(map(_argument, segment))
        key = ", ".join(counts)
        slow_key = f"({key},)" if len(counts) == 1 else f"({key})"
        return f"{pack}[{key}]({values})", f"{pack}.slowly({slow_key}, {values})"

    def _without_arrays(self, segment: list[Piece]) -> tuple[str, str]:
        run = _heads(segment)
        values = ", ".join(value for value, _ in run)
        if len(run) == 1 and run[0][1].is_varint:
            write = self.constant(f"write_{run[0][1].name}", run[0][1].write)
            return f"{self.constant('one_byte', runtime.ONE_BYTE)}[{values}]", f"{write}({values})"
        codes = codes_of(run)
        pack = self.shared(f"pack_{name_of(run)}", lambda: Struct(">" + codes).pack)
        return f"{pack}({values})", f"{self._concatenation(segment)}({values})"

    def _write_two_bytes(self, segment: list[Piece], varints: list[str]) -> None:
        """Write code for a last varint of two bytes, if it is the only varint and `mostly_two` is set."""
        run = _heads(segment)
        length, kind = run[-1]
        if varints != [length] or not kind.mostly_two or len(run) != len(segment):
            return
        pack = self.shared(f"pack_{name_of(run)}v", lambda: Struct(f">{codes_of(run)}B").pack)
        values = ", ".join([*(value for value, _ in run[:-1]), f"{length} & 127 | 128", f"{length} >> 7"])
        self.line(f"elif {length} < 16384:")
        self.line(f"    append({pack}({values}))")

    # Packed numbers (KIP-625)

    def _write_packed(self, segment: list[Piece]) -> None:
        """Write code that appends varints: from a cache if all are cached, else encoded one by one."""
        numbers = [kind for _, kind in _heads(segment)]
        if not numbers or not all(kind.recurs for kind in numbers):
            self.line(f"append({self._joined(segment)})")
            return
        self.line("try:")
        self.line(f"    append({self._joined(segment, plain=True)})")
        self.line("except KeyError:")
        self.line(f"    append({self._concatenation(segment)}({', '.join(value for value, _ in segment)}))")

    def _concatenation(self, segment: list[Piece]) -> str:
        """Generate a function that encodes fields one by one, with lengths of any size; return its name."""
        name = "write_" + "_".join(_piece_name(part) for _, part in segment)
        if name in self.functions:
            return name
        arguments = [f"value{number}" for number, _ in enumerate(segment)]
        pieces = [(value, part) for value, (_, part) in zip(arguments, segment, strict=True)]
        inner = self.function(f"def {name}({', '.join(arguments)}):")
        inner.line(f"return {self._joined(pieces)}")
        self.finish(name, inner)
        return name

    def _joined(self, segment: list[Piece], plain: bool = False) -> str:
        """Return an expression for the encoded fields; with `plain`, an uncached number raises KeyError."""
        terms = [self._term(value, part, plain) for value, part in segment]
        whole = len(terms) == 1 and not terms[0].startswith("*")
        return terms[0] if whole else f'b"".join(({", ".join(terms)},))'

    def _term(self, value: str, part: HeadKind | ArrayPart, plain: bool) -> str:
        """Return Python source for the encoded bytes of a field, or ``*[...]`` for those of an array."""
        kind = part.kind if isinstance(part, ArrayPart) else part
        if not kind.is_varint:
            pack = self.shared(f"pack_{kind.name}", lambda: Struct(">" + kind.code).pack)
            return f"{pack}({value})"
        met = runtime.varint_bytes(kind.name, kind.write)
        if not isinstance(part, ArrayPart):
            if value.isdigit():
                return ONE_BYTE_LITERAL[int(value)]
            known = f"known_{kind.name}" if plain else f"bytes_of_{kind.name}"
            return f"{self.shared(known, lambda: met.plain if plain else met)}[{value}]"
        known = self.shared(f"bytes_of_{kind.name}", lambda: met)
        if part.sent:
            return f"*[{known}[each] for each in {value}]"
        arrays = self.constant(f"arrays_of_{kind.name}", runtime.varint_arrays(kind.name, kind.write))
        return f"{arrays}[tuple({value})]"


ONE_BYTE_LITERAL = [literal(each) for each in runtime.ONE_BYTE]


def _argument(piece: Piece) -> str:
    return f"*{piece[0]}" if isinstance(piece[1], ArrayPart) else piece[0]


def _heads(segment: list[Piece]) -> list[tuple[str, HeadKind]]:
    return [(value, part) for value, part in segment if isinstance(part, HeadKind)]


def _piece_name(part: HeadKind | ArrayPart) -> str:
    if isinstance(part, HeadKind):
        return part.name
    return f"{part.kind.name}s" + ("" if part.bias else "_plain") + ("" if part.sent else "_counted")


def _segments(pieces: list[Piece]) -> list[tuple[list[Piece], str | None]]:
    """Divide adjacent fields into segments, each of fixed-size values or of one varint encoding.

    A length belongs to the segment before it, or to the next one if it comes first.
    """
    segments: list[tuple[list[Piece], str | None]] = []
    waiting: list[Piece] = []
    for piece in pieces:
        kind = piece[1].kind if isinstance(piece[1], ArrayPart) else piece[1]
        if kind.name == UVARINT.name:
            (segments[-1][0] if segments else waiting).append(piece)
            continue
        packing = kind.packing
        if not segments or segments[-1][1] != packing:
            segments.append((waiting, packing))
            waiting = []
        segments[-1][0].append(piece)
    return [*segments, (waiting, None)] if waiting else segments
