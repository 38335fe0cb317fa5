"""Penstock and Apache Kafka serve one data directory in turn, while clients stay connected."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.handover import IN_TRANSACTIONS, PLAIN, Connected, Turns
from compat.handover_accounts import SETTINGS, fill, picture
from compat.peers import LEAKY_CLIENTS, until
from penstock import Admin, Producer, read_topic
from penstock.broker.metadata.directory_levels import describe, set_level

pytestmark = [
    pytest.mark.compat,
    pytest.mark.timeout(600),
    *LEAKY_CLIENTS,
]


@pytest.mark.parametrize(
    ("version", "level", "rounds", "killed"),
    [
        ("4.4.0", "4.0", 1, False),
        *(
            pytest.param(version, level, 5, killed, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])
            for version, level in (("4.4.0", "4.0"), ("4.3.0", "4.0"), ("3.9.1", "3.9"))
            for killed in (False, True)
        ),
    ],
)
def test_clients_stay_connected(version: str, level: str, rounds: int, killed: bool, tmp_path: Path) -> None:
    """Penstock and Apache Kafka, in a dynamic quorum, take turns on one port, stopped cleanly or killed."""
    turns = Turns(tmp_path, dynamic_quorum=True)
    setting = f"penstock.metadata.version={level}"
    with turns.ours(setting, killed=killed):
        with Admin(turns.servers) as admin:
            for topic in (PLAIN, IN_TRANSACTIONS):
                admin.create_topic(topic, 2)
        clients = Connected(turns.servers)
        clients.advance()
    try:
        for number in range(rounds):
            is_last = number == rounds - 1
            with turns.kafka(version, killed=killed):
                clients.advance()
            with turns.ours(setting, killed=killed and not is_last):
                clients.advance()
                if is_last:
                    clients.finish()
                    clients.check()
    finally:
        clients.stop()


OURS = tuple(f"{name}={value}" for name, value in SETTINGS.items())


def settled(servers: str) -> dict[str, object]:
    """Return `picture` once the markers of all ended transactions are written.

    A broker answers EndTxn before it writes the markers.
    """
    until(lambda: not preparing(servers), "transactions end")
    return picture(servers)


def preparing(servers: str) -> bool:
    with Admin(servers) as admin:
        return any(each.state.startswith("Prepare") for each in admin.list_transactions())


def there_and_back(
    turns: Turns, version: str, rounds: int, *settings: str, kills: bool = False
) -> dict[str, object]:
    """Let two brokers serve a directory in turn; check that each has the former one's data, and add data."""
    before: dict[str, object] | None = None
    for number in range(rounds):
        killed = kills and number % 2 == 1
        with turns.ours(*OURS, *settings, killed=killed) as servers:
            if before is not None:
                assert picture(servers) == before
            fill(servers, f"ours-{number}")
            before = settled(servers)
        with turns.kafka(version, SETTINGS, killed=killed) as servers:
            assert picture(servers) == before
            fill(servers, f"kafka-{number}", deletes_records=not killed)
            before = settled(servers)
    with turns.ours(*OURS, *settings) as servers:
        after = picture(servers)
        assert after == before
    log = (turns.root / "server.log").read_text(errors="replace")
    assert "stray" not in log.lower()
    assert "conflicting entries" not in log
    return after


def test_everything_goes_to_3_9_and_back(tmp_path: Path) -> None:
    seen = there_and_back(Turns(tmp_path), "3.9", 1, "penstock.metadata.version=3.9")
    assert len([name for name in seen if name.startswith("topic ")]) == 8


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [False, True], ids=["in order", "killed"])
@pytest.mark.parametrize(("version", "level"), [("4.3.0", "4.0"), ("3.9.1", "3.9")])
def test_five_times_there_and_back(version: str, level: str, kills: bool, tmp_path: Path) -> None:
    there_and_back(Turns(tmp_path), version, 5, f"penstock.metadata.version={level}", kills=kills)


@pytest.mark.soak
def test_segments_that_are_too_small_for_apache_kafka_4(tmp_path: Path) -> None:
    """Setting the level to 4.0 raises `segment.bytes`; before that, Apache Kafka does not start."""
    turns = Turns(tmp_path)
    with turns.ours(*OURS) as servers, Admin(servers) as admin:
        admin.create_topic("small", 1, config={"segment.bytes": "300"})
        with Producer(servers) as producer:
            for _ in range(30):
                producer.send("small", bytes(100)).result(30)
    assert len(list((turns.directory / "small-0").glob("*.log"))) > 5
    assert describe(str(turns.directory)).releases == []
    with pytest.raises(pytest.fail.Exception, match=r"segment.bytes: Value must be at least 1048576"):  # noqa: SIM117
        with turns.kafka("4.3.0"):
            pass
    assert "4.3" in set_level(str(turns.directory), "4.0").releases
    with turns.kafka("4.3.0") as servers:
        assert read_topic("small", servers).num_rows == 30
    with turns.ours(*OURS) as servers:
        assert read_topic("small", servers).num_rows == 30
