"""Where other people's clients are judged: at one broker by itself, and at a cluster of three."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock import Broker, Cluster

ONE, THREE = PLACES = ("one broker", "three brokers")
"""For ``params`` of a fixture: what both answer is to be the same."""


def made(
    place: str, directory: Path | None = None, config: Mapping[str, object] | None = None, **settings: object
) -> Broker | Cluster:
    """Return what serves at a place, to be entered: in memory, or with its data in a directory."""
    if place == ONE:
        return Broker(directory, config=config, **settings)
    return Cluster(3, directory, config=config, **settings)
