"""A readable name for a query: ``penstock[orders] on host:9092``.

Spark shows a Python source under the name of a JVM class of Spark, which a Python source cannot change. Spark
shows the name of a query everywhere: on its page, in descriptions of jobs, progress, logs and events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError
from penstock.printable import printable
from penstock.spark.source.options import Selection, read_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN_MAX = 5
"""The most topics in the name of a query; further topics are only counted."""

FORMAT = "penstock"


def query_name(frame: DataFrame) -> str:
    """Return the name for a query over `frame`, for ``writeStream.queryName``: its topics and broker.

    Several sources are joined by ``+``. Spark Connect is not supported, because its plans are in the server.

    Raises:
        ConfigError: `frame` reads no topic, or it belongs to a session of Spark Connect.
    """
    java: Any = getattr(frame, "_jdf", None)
    if java is None:
        raise ConfigError("plans of Spark Connect are in its server: give queryName a name of your own")
    leaves = java.queryExecution().analyzed().collectLeaves()
    found = []
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        if leaf.getClass().getSimpleName() == "StreamingRelationV2" and leaf.sourceName() == FORMAT:
            found.append(source_name(dict(leaf.extraOptions())))
    if not found:
        raise ConfigError("this frame reads no topic as a stream: give queryName a name of your own")
    return " + ".join(dict.fromkeys(found))


def source_name(options: Mapping[str, str]) -> str:
    """Return the topics and broker of a source with these options: ``penstock[orders, bills] on host:9092``.

    Raises:
        ConfigError: the options are wrong.
    """
    read = read_options(options, streaming=True)
    servers = [server.strip() for server in read.bootstrap_servers.split(",")]
    more = f" (and {len(servers) - 1} more)" if len(servers) > 1 else ""
    return printable(f"{FORMAT}[{_selected(read.selection)}] on {servers[0]}{more}")


def _selected(selection: Selection) -> str:
    if selection.pattern is not None:
        return f"/{selection.pattern}/"
    return shortened(selection.topics or sorted(map(str, selection.partitions)))


def shortened(names: tuple[str, ...] | list[str]) -> str:
    """Return the first `SHOWN_MAX` names, joined, and the number of further names."""
    more = [f"{len(names) - SHOWN_MAX} more"] if len(names) > SHOWN_MAX else []
    return ", ".join([*names[:SHOWN_MAX], *more])
