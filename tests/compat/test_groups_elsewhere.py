"""The client tests of consumer groups and poll loops, run again against Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from client import test_groups, test_loops
from compat.peers import real_kafka

pytestmark = pytest.mark.compat

SETTINGS = {"group.min.session.timeout.ms": "100", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module", params=["4.3.0", "2.8.2"])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    with real_kafka(request.param, SETTINGS) as found:
        yield found


topic = test_groups.topic
globals().update({name: test for name, test in vars(test_groups).items() if name.startswith("test_")})
test_loops_of_every_shape = test_loops.test_loops_of_every_shape
