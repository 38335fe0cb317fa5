"""Parse the names of tables: ``iceberg://catalog/db.table``, ``delta://s3://…``, ``s3://bucket/orders/``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from penstock.errors import ConfigError
from penstock.lake.contract import LakeTable, TableSettings
from penstock.lake.credentials import StoreOptions, without_secrets

TOPIC = "{topic}"
"""The part of a table's name that is replaced by the name of the topic."""

DEAD_SUFFIX = "_dead_letters"
"""The default suffix of the name of a dead-letter table."""


def open_table(where: str, topic: str, settings: TableSettings, options: StoreOptions) -> LakeTable:
    """Return the table at a path or URL; it may not exist yet.

    Raises:
        ConfigError: `where` names no table, or a setting does not apply to its kind.
        MissingDependencyError: a library is not installed.
    """
    scheme = urlsplit(where).scheme if "://" in where else ""
    if scheme == "iceberg":
        from penstock.lake.kinds.iceberg import IcebergTable

        catalog, _, name = where.removeprefix("iceberg://").partition("/")
        if not catalog or not name:
            raise ConfigError(f"{where!r}: a table of Iceberg is named as iceberg://CATALOG/NAMESPACE.TABLE")
        return IcebergTable(catalog, name, settings, options)
    if settings.sort_by:
        raise ConfigError(
            f"{without_secrets(where)}: only tables of Iceberg have a sort order. Sort in iceberg://"
        )
    if scheme == "delta":
        from penstock.lake.kinds.delta import DeltaLakeTable

        url = where.removeprefix("delta://").removeprefix("file://")
        if not url:
            raise ConfigError("a table of Delta is named as delta://s3://BUCKET/PATH or delta:///PATH")
        return DeltaLakeTable(url, settings, options, topic)
    if settings.key:
        raise ConfigError(
            f"{without_secrets(where)}: files of Parquet alone take no updates. Upsert into iceberg:// or delta://"
        )
    if settings.renames or settings.drops:
        raise ConfigError(
            f"{without_secrets(where)}: the columns of a table of files stay. Rename in iceberg://, "
            "or land into another place"
        )
    if scheme in ("", "file"):
        from penstock.lake.kinds.directory_table import DirectoryTable

        if not where.removeprefix("file://"):
            raise ConfigError("--to names no directory")
        return DirectoryTable(where.removeprefix("file://"), settings)
    from penstock.lake.kinds.object_table import ObjectTable

    return ObjectTable(where, settings, options)


def place_of(where: str, topic: str) -> str:
    """Return the name of a topic's table: `where` with ``{topic}`` replaced by the topic's name.

    In names of Iceberg, every other character than an ASCII letter or digit becomes ``_``: a dot would begin
    another namespace.
    """
    is_iceberg = where.startswith("iceberg://")
    return where.replace(TOPIC, re.sub(r"[^A-Za-z0-9]", "_", topic) if is_iceberg else topic)


def places_of(where: str, topics: Sequence[str]) -> dict[str, str]:
    """Return a dict from each topic to the name of its table.

    Raises:
        ConfigError: two topics would get the same table.
    """
    if len(topics) > 1 and TOPIC not in where:
        raise ConfigError(
            f"{len(topics)} topics, and each has a table of its own: put {TOPIC} into its name, as in "
            f"--to s3://lake/{TOPIC}/ or --to iceberg://prod/sales.{TOPIC}"
        )
    found: dict[str, str] = {}
    for topic in topics:
        place = place_of(where, topic)
        if place in found:
            raise ConfigError(
                f"topics {found[place]!r} and {topic!r} would both go into {without_secrets(place)}: land "
                "one of them by a command of its own"
            )
        found[place] = topic
    return {topic: place for place, topic in found.items()}


def dead_letters_of(where: str) -> str:
    """Return the name of the dead-letter table that belongs to the table `where`."""
    return where.rstrip("/") + DEAD_SUFFIX + ("/" if where.endswith("/") else "")


def dead_settings(settings: TableSettings) -> TableSettings:
    """Return the settings for a dead-letter table: append-only, without partitions."""
    return replace(settings, partition_by=(), key=(), renames={}, drops=(), sort_by=())
