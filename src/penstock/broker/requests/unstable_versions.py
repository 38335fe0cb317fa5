"""Unstable API versions: a message definition marks them as unstable, because they may still change.

A broker offers them if `unstable.api.versions.enable` is true, as Apache Kafka does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.protocol.api import API_TABLE

if TYPE_CHECKING:
    from penstock.broker.requests.routes import Route


def without_unstable(routes: Mapping[int, Route]) -> Mapping[int, Route]:
    """Return the routes limited to their stable versions; routes without a stable version are left out."""
    found = {}
    for key, route in routes.items():
        highest = API_TABLE[key].stable_versions[1]
        if highest < route.max_version:
            if highest < route.min_version:
                continue
            route = route._replace(max_version=highest)
        found[key] = route
    return found
