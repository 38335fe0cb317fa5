"""The two settings in which tests run third-party clients: one broker, and a cluster of three."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock import Broker, Cluster
from penstock.broker.security.throwaway import Security
from penstock.testing import KafkaBroker, KafkaCluster

ONE, THREE = PLACES = ("one broker", "three brokers")
"""Parameters of fixtures that run a test at one broker and at three; the answers must be equal."""

THREE_AND_AGAIN_ONE = (pytest.param(ONE, marks=pytest.mark.again), THREE)
"""Parameters for tests that start many programs: `.ci/run` runs them with three brokers only."""

ONE_AND_LATER_THREE = (ONE, pytest.param(THREE, marks=pytest.mark.soak))
"""Parameters for suites that run for minutes: only `make soak` runs them with three brokers."""


def made(
    place: str, directory: Path | None = None, config: Mapping[str, object] | None = None, **settings: object
) -> Broker | Cluster:
    """Return one broker or a cluster of three, not yet started, with its data in memory or in a directory."""
    if place == ONE:
        return Broker(directory, config=config, **settings)
    return Cluster(3, directory, config=config, **settings)


def made_secure(place: str, security: Security, config: Mapping[str, object]) -> KafkaBroker | KafkaCluster:
    """Return one secured broker or a secured cluster of three, not yet started."""
    if place == ONE:
        return KafkaBroker(security=security, config=config)
    return KafkaCluster(3, security=security, config=config)


def listening(served: Broker | Cluster) -> dict[str, str]:
    """Return the addresses of a broker, or of a cluster's first broker, keyed by listener name."""
    server = served.server if isinstance(served, Broker) else served._nodes[1].server
    assert server is not None
    return {name: f"{host}:{port}" for name, (host, port) in server.addresses.items()}
