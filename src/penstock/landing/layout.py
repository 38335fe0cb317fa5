"""The layout of a table of landed Parquet files: its columns, partition columns and file format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import ConfigError, DecodeError

FORMAT_VERSION = 1
"""The version of table.json and of manifests. A reader refuses a newer one."""

FORMATS = ("parquet", "delta", "iceberg")

DERIVED: Mapping[str, str] = {"date": "date", "hour": "int"}
"""A dict from each partition column that is computed from a record's time (UTC) to its type in Spark's
spelling.
"""

PARTITION_TYPES = ("string", "int", "bigint", "date")


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns of a table with their types in Spark's spelling, and its partition columns.

    `time_column` is the column from which `date` and `hour` are made, if `partition_by` names them.
    """

    columns: tuple[tuple[str, str], ...]
    partition_by: tuple[str, ...] = ()
    time_column: str = "timestamp"
    format: str = "parquet"
    versions: tuple[tuple[str, int], ...] = ()
    """Pairs of "key" or "value" and the version of the registry's subject from which these columns come."""

    def check(self) -> None:
        """Check that the partition columns can be made from the columns.

        Raises:
            ConfigError: a partition column is missing, is named twice, has an unusable type, or no other
                column is left.
        """
        types = dict(self.columns)
        if len(set(self.partition_by)) < len(self.partition_by):
            raise ConfigError(f"landing.partitionBy names a column twice: {', '.join(self.partition_by)}")
        for name in self.partition_by:
            if name in types:
                if types[name] not in PARTITION_TYPES:
                    raise ConfigError(
                        f"landing.partitionBy: column {name!r} is {types[name]}; a directory can be "
                        f"named after {', '.join(PARTITION_TYPES)}{_advice(name)}"
                    )
            elif name not in DERIVED:
                raise ConfigError(
                    f"landing.partitionBy: no column {name!r} among {', '.join(types)}; "
                    f"{' and '.join(DERIVED)} are made of the time of a record"
                )
            elif types.get(self.time_column) != "timestamp":
                raise ConfigError(
                    f"landing.partitionBy: {name!r} is made of the column {self.time_column!r}, "
                    "which landing.columns does not name"
                )
        if not self.file_columns():
            raise ConfigError("landing.partitionBy names every column: there is nothing left for the files")

    def file_columns(self) -> tuple[str, ...]:
        """Return the columns in the table's files: those without partition columns, except in Iceberg."""
        if self.format == "iceberg":
            return tuple(name for name, _ in self.columns)
        return tuple(name for name, _ in self.columns if name not in self.partition_by)

    def partition_types(self) -> dict[str, str]:
        """Return the type of each partition column, in Spark's spelling."""
        types = dict(self.columns)
        return {name: types.get(name) or DERIVED[name] for name in self.partition_by}

    def to_json(self) -> str:
        """Return the layout as the text of table.json."""
        return json.dumps(
            {
                "formatVersion": FORMAT_VERSION,
                "format": self.format,
                "columns": [{"name": name, "type": kind} for name, kind in self.columns],
                "partitionBy": list(self.partition_by),
                "timeColumn": self.time_column,
                **({"versions": dict(self.versions)} if self.versions else {}),
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> TableLayout:
        """Return the layout in the text of table.json.

        Raises:
            DecodeError: the text has another form, or is of a newer version.
        """
        document = versioned_object(text, "table.json")
        try:
            return cls(
                tuple((str(each["name"]), str(each["type"])) for each in document["columns"]),
                tuple(map(str, document["partitionBy"])),
                str(document["timeColumn"]),
                str(document["format"]),
                tuple((str(name), int(each)) for name, each in document.get("versions", {}).items()),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DecodeError(f"table.json is damaged: {error!r}") from None

    def differences(self, other: TableLayout) -> list[str]:
        """Return a sentence for each difference between this layout and `other`; an empty list if equal."""
        mine, theirs = dict(self.columns), dict(other.columns)
        found = [
            f"column {name}: {mine.get(name, 'none')} there, {theirs.get(name, 'none')} here"
            for name in dict.fromkeys([*mine, *theirs])
            if mine.get(name) != theirs.get(name)
        ]
        if not found and self.columns != other.columns:
            found.append("the order of columns")
        if self.partition_by != other.partition_by:
            found.append(
                f"partitionBy: {_listed(self.partition_by)} there, {_listed(other.partition_by)} here"
            )
        if self.time_column != other.time_column and set(DERIVED) & set(self.partition_by):
            found.append(f"time: {self.time_column} there, {other.time_column} here")
        if self.format != other.format:
            found.append(f"format: {self.format} there, {other.format} here")
        return found


def versioned_object(text: str | bytes, what: str) -> dict[str, Any]:
    """Parse the JSON object in `text`, and check its format version; errors call the text `what`.

    Raises:
        DecodeError: the text is no such object, or of a newer version.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DecodeError(f"{what} is damaged: {error}") from None
    version = document.get("formatVersion") if isinstance(document, dict) else None
    if not isinstance(version, int):
        raise DecodeError(f"{what} is damaged: it has no formatVersion")
    if version > FORMAT_VERSION:
        raise DecodeError(f"{what} has format version {version}; this release reads up to {FORMAT_VERSION}")
    return dict(document)


def _advice(name: str) -> str:
    return f": say '{name} string' in landing.columns" if name in ("key", "value", "data") else ""


def _listed(names: tuple[str, ...]) -> str:
    return ",".join(names) or "none"
