"""One module for each API. Importing this package registers them all.

A module translates: message in, a call to the cluster or a partition, message out. Its opening lines say
which versions it speaks and what each version changed.
"""

from __future__ import annotations

from penstock.broker.handlers import (
    api_versions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_configs,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    produce,
)

__all__ = [
    "api_versions",
    "create_topics",
    "delete_topics",
    "describe_cluster",
    "describe_configs",
    "fetch",
    "find_coordinator",
    "init_producer_id",
    "list_offsets",
    "metadata",
    "produce",
]
