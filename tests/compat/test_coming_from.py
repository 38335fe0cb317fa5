"""The migration page from other clients: the other clients' code examples run, and cover every call."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from compat.peers import need_module
from compat.test_broker_clients import pytestmark
from compat.test_habits_of_clients import PAIRS, public
from penstock import Broker, Producer
from test_documents import blocks

__all__ = ["pytestmark"]

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-other-clients.md"
MODULES = {"kafka-python": "kafka", "confluent-kafka": "confluent_kafka", "aiokafka": "aiokafka"}


@pytest.mark.parametrize("library", MODULES)
def test_their_side_does_what_the_page_says(library: str) -> None:
    """All code blocks of one library run in order, after a first record for their consumers."""
    need_module(MODULES[library])
    space: dict[str, Any] = {}
    with Broker(num_partitions=3) as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b"first")
        exec("import asyncio\nimport json", space)
        space["servers"] = broker.bootstrap_servers
        found = [code for info, code, _ in blocks(PAGE) if info == f"python no-run: {library}"]
        assert len(found) >= 2
        for code in found:
            exec(compile(code, f"{PAGE.name} ({library})", "exec"), space)


@pytest.mark.parametrize("place", ["Producer", "Consumer", "Admin"])
def test_the_page_names_every_call_of_theirs(place: str) -> None:
    named = set(
        re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`|```.*?```", PAGE.read_text("utf-8"), re.DOTALL)))
    )
    theirs = {
        name
        for ours, kind in PAIRS
        if ours.removeprefix("Async") == place
        for name in public(kind)
        if not name.isupper()
    }
    assert len(theirs) > 15
    assert theirs - named - {"DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735"} == set()
