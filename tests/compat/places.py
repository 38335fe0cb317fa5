"""Where other people's clients are judged: at one broker by itself, and at a cluster of three."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock import Broker, Cluster
from penstock.broker.security.throwaway import Security
from penstock.testing import KafkaBroker, KafkaCluster

ONE, THREE = PLACES = ("one broker", "three brokers")
"""For ``params`` of a fixture: what both answer is to be the same."""

THREE_AND_AGAIN_ONE = (pytest.param(ONE, marks=pytest.mark.again), THREE)
"""For tests that start many programs of others: `.ci/run` has them at three brokers only."""

ONE_AND_LATER_THREE = (ONE, pytest.param(THREE, marks=pytest.mark.soak))
"""For suites that run for minutes: at three brokers in `make soak`."""


def made(
    place: str, directory: Path | None = None, config: Mapping[str, object] | None = None, **settings: object
) -> Broker | Cluster:
    """Return what serves at a place, to be entered: in memory, or with its data in a directory."""
    if place == ONE:
        return Broker(directory, config=config, **settings)
    return Cluster(3, directory, config=config, **settings)


def made_secure(place: str, security: Security, config: Mapping[str, object]) -> KafkaBroker | KafkaCluster:
    """Return what serves at a place with users, to be entered."""
    if place == ONE:
        return KafkaBroker(security=security, config=config)
    return KafkaCluster(3, security=security, config=config)


def listening(served: Broker | Cluster) -> dict[str, str]:
    """Return the addresses of a broker, or of the first of several, by the names of its listeners."""
    server = served.server if isinstance(served, Broker) else served._nodes[1].server
    assert server is not None
    return {name: f"{host}:{port}" for name, (host, port) in server.addresses.items()}
