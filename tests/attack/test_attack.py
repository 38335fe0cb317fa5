"""Tests that a correct client works within the limits of `run` while others attack its broker."""

from __future__ import annotations

import os
import sys

import pytest

from attack.attacks import ATTACKS, NODE
from attack.clusters import CLUSTER_ATTACKS, false_replicas
from attack.logins import LOGIN_ATTACKS
from attack.run import run, run_cluster, run_logins
from broker.handlers.test_every_version import CASES, REQUESTS
from for_each import for_each
from penstock.protocol.api import ApiKey
from penstock.protocol.framing import encode_request

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(sys.platform != "linux", reason="the most memory of a process is read from /proc"),
]

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""A directory in memory, where fsync is fast even while the disk is busy; None without one."""


@pytest.mark.slow
@pytest.mark.alone
def test_a_short_attack_of_each_kind_harms_no_one() -> None:
    assert run(1.5, seed=1, directory=MEMORY).problems == []


@pytest.mark.slow
@pytest.mark.alone
def test_ten_thousand_connections_without_a_login_harm_no_client_that_has_one() -> None:
    assert run_logins(0.5, seed=1, directory=MEMORY).problems == []


@pytest.mark.slow
@pytest.mark.alone
def test_a_short_attack_on_a_cluster_harms_no_one() -> None:
    assert run_cluster(1, 1, "extremes", directory=MEMORY).problems == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", [2, 3])
def test_minutes_of_attacks_on_a_cluster_harm_no_one(seed: int) -> None:
    assert run_cluster(8, seed, directory=MEMORY).problems == []


@pytest.mark.soak
def test_nor_do_they_where_all_of_them_may_stay() -> None:
    outcome = run_logins(1, 1, "crowd_amid_handshakes", directory=MEMORY, unknown_max=20_000)
    assert outcome.problems == []


@pytest.mark.soak
def test_minutes_of_attacks_before_a_login_harm_no_one() -> None:
    assert run_logins(10, seed=2, directory=MEMORY).problems == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", [2, 3])
def test_minutes_of_attacks_harm_no_one(seed: int) -> None:
    assert run(10, seed, directory=MEMORY).problems == []


def test_the_attacks_are_named_once() -> None:
    every = ATTACKS + LOGIN_ATTACKS + (CLUSTER_ATTACKS[0],)
    assert len({attack.run.__name__ for attack in every}) == len(every)
    assert {attack.run for attack in CLUSTER_ATTACKS} - {attack.run for attack in ATTACKS} == {false_replicas}


@for_each(CASES)
def test_every_request_can_be_made_without_a_node(key: ApiKey, version: int) -> None:
    request = REQUESTS[key](NODE, version)
    assert b"".join(map(bytes, encode_request(request, version, 1, "attack")))
