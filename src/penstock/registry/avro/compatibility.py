"""Checks if a reader's Avro schema can read values of a writer's schema, and lists the reasons if not.

The kinds of incompatibility have the names of Avro's own checker for Java.
"""

from __future__ import annotations

from penstock.registry.avro import schema as avro
from penstock.registry.avro.schema import NO_DEFAULT, Type, Union, branch_name

_WIDER = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
    ("bytes", "string"),
}
PROBLEMS_MAX = 100


def incompatibilities(reader: Type, writer: Type) -> list[str]:
    """Return the reasons why values of `writer` cannot be read with `reader`; an empty list if all can."""
    checker = _Checker()
    checker.compare(reader, writer, "/")
    return checker.found[:PROBLEMS_MAX]


class _Checker:
    """Compares a reader's and a writer's type recursively, and collects the incompatibilities.

    Compared pairs are stored, because types may be recursive.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self._seen: set[tuple[int, int]] = set()

    def _say(self, kind: str, description: str, detail: object) -> None:
        self.found.append(f"{{errorType:'{kind}', description:'{description}', additionalInfo:'{detail}'}}")

    def compare(self, reader: Type, writer: Type, place: str) -> None:
        if (id(reader), id(writer)) in self._seen or len(self.found) > PROBLEMS_MAX:
            return
        self._seen.add((id(reader), id(writer)))
        if isinstance(writer, Union):
            for number, branch in enumerate(writer.branches):
                self._compare_branch(
                    reader, branch, f"{place}" if not isinstance(reader, Union) else f"{place}/{number}"
                )
        elif isinstance(reader, Union):
            self._compare_branch(reader, writer, place)
        else:
            self._compare_plain(reader, writer, place)

    def _compare_branch(self, reader: Type, writer: Type, place: str) -> None:
        if not isinstance(reader, Union):
            self.compare(reader, writer, place)
            return
        alike = [each for each in reader.branches if _is_alike(each, writer)]
        for branch in alike or list(reader.branches):
            inner = _Checker()
            inner._seen = set(self._seen)
            inner.compare(branch, writer, place)
            if not inner.found:
                return
        if alike:
            self.compare(alike[0], writer, place)
            return
        name = branch_name(writer)
        self._say(
            "MISSING_UNION_BRANCH",
            f"The new schema is missing a type inside a union field at path '{place}' in the old schema",
            f"reader union lacking writer type: {name.upper()}",
        )

    def _compare_plain(self, reader: Type, writer: Type, place: str) -> None:
        if reader.kind != writer.kind:
            if (writer.kind, reader.kind) not in _WIDER:
                self._say(
                    "TYPE_MISMATCH",
                    f"The type (path '{place}') of a field in the new schema differs from the old one",
                    f"reader type: {reader.kind.upper()}, writer type: {writer.kind.upper()}",
                )
        elif isinstance(reader, avro.AvroArray) and isinstance(writer, avro.AvroArray):
            self.compare(reader.items, writer.items, f"{place.rstrip('/')}/items")
        elif isinstance(reader, avro.Map) and isinstance(writer, avro.Map):
            self.compare(reader.values, writer.values, f"{place.rstrip('/')}/values")
        elif isinstance(reader, avro.NamedType) and isinstance(writer, avro.NamedType):
            self._compare_named(reader, writer, place)

    def _compare_named(self, reader: avro.NamedType, writer: avro.NamedType, place: str) -> None:
        if reader.short_name != writer.short_name and writer.name not in reader.aliases:
            self._say(
                "NAME_MISMATCH",
                f"The name of the schema has changed (path '{place.rstrip('/')}/name')",
                f"expected: {writer.name}",
            )
        if isinstance(reader, avro.AvroFixed) and isinstance(writer, avro.AvroFixed):
            if reader.size != writer.size:
                self._say(
                    "FIXED_SIZE_MISMATCH",
                    f"The size of FIXED type field at path '{place}' in the new schema does not match",
                    f"expected: {writer.size}, found: {reader.size}",
                )
        elif isinstance(reader, avro.Enum) and isinstance(writer, avro.Enum):
            missing = [each for each in writer.symbols if each not in reader.symbols]
            if missing and reader.default is None:
                self._say(
                    "MISSING_ENUM_SYMBOLS",
                    f"The new schema is missing enum symbols at path '{place.rstrip('/')}/symbols'",
                    f"[{', '.join(missing)}]",
                )
        elif isinstance(reader, avro.AvroRecord) and isinstance(writer, avro.AvroRecord):
            written = {each.name: each for each in writer.fields}
            for number, each in enumerate(reader.fields):
                names = (each.name, *each.aliases)
                match = next((written[name] for name in names if name in written), None)
                inner = f"{place.rstrip('/')}/fields/{number}"
                if match is not None:
                    self.compare(each.type, match.type, f"{inner}/type")
                elif each.default is NO_DEFAULT:
                    self._say(
                        "READER_FIELD_MISSING_DEFAULT_VALUE",
                        f"The field '{each.name}' at path '{inner}' in the new schema has no default value "
                        "and is missing in the old schema",
                        each.name,
                    )


def _is_alike(branch: Type, writer: Type) -> bool:
    if isinstance(branch, avro.NamedType) and isinstance(writer, avro.NamedType):
        is_same_name = branch.short_name == writer.short_name or writer.name in branch.aliases
        return branch.kind == writer.kind and is_same_name
    return branch.kind == writer.kind and not isinstance(branch, avro.NamedType)
