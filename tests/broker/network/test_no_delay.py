"""Tests that every connection that a Penstock server accepts has TCP_NODELAY set.

With Nagle's algorithm the second of two answers waits up to 40 ms for the peer's delayed acknowledgement.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from urllib.parse import urlsplit

import psutil
import pytest

from broker.replication.test_cluster import until
from penstock.broker import Broker
from penstock.registry import Registry
from penstock.testing import KafkaCluster


@contextmanager
def one_broker() -> Iterator[str]:
    with Broker(port=0) as broker:
        yield broker.bootstrap_servers


@contextmanager
def a_cluster() -> Iterator[str]:
    with KafkaCluster(3) as cluster:
        yield cluster.bootstrap_servers.split(",")[1]


@contextmanager
def a_registry() -> Iterator[str]:
    with Registry() as registry:
        yield urlsplit(registry.url).netloc


def accepted(client: socket.socket) -> list[socket.socket]:
    """Return sockets for the server's side of a connection, if it is in this process."""
    found = []
    for each in psutil.Process().net_connections("tcp"):
        if each.raddr and tuple(each.raddr) == client.getsockname() and each.fd >= 0:
            with suppress(OSError):
                found.append(socket.fromfd(each.fd, socket.AF_INET, socket.SOCK_STREAM))
    return found


@pytest.mark.parametrize("server", [one_broker, a_cluster, a_registry])
def test_what_is_accepted_sends_at_once(server: Callable[[], AbstractContextManager[str]]) -> None:
    with server() as address:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port))) as client:
            ends: list[socket.socket] = []

            def sends_at_once() -> bool:
                for end in ends:
                    end.close()
                ends[:] = accepted(client)
                return any(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for end in ends)

            try:
                until(sends_at_once)
            finally:
                for end in ends:
                    end.close()
