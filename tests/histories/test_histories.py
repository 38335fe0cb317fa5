"""A short test history with Penstock's clients and broker, and longer ones with all client libraries."""

from __future__ import annotations

import logging
import random
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from compat.peers import need, need_module
from histories import page, run
from histories.clients import CLIENTS, Java, Row
from histories.run import make
from histories.targets import Target
from penstock import Admin, Broker


@pytest.fixture(autouse=True)
def quiet_libraries(caplog: pytest.LogCaptureFixture) -> None:
    for library in ("aiokafka", "kafka", "penstock"):
        caplog.set_level(logging.CRITICAL, logger=library)


def test_a_short_one() -> None:
    entry = make("broker", ["penstock"], seed=3, seconds=2)
    assert entry.anomalies == {}
    assert entry.records > 0


def test_one_that_is_stopped_is_judged_as_far_as_it_has_come() -> None:
    stopping = threading.Event()
    stopping.set()
    entry = make("broker", ["penstock"], seed=4, seconds=3600, stopping=stopping)
    assert entry.anomalies == {}
    assert entry.seconds < 600
    assert entry.troubles == {}


@pytest.mark.parametrize("found", [{}, {"duplicate": ["stored 2 times"]}], ids=["none", "one"])
def test_the_data_of_an_anomaly_is_kept(
    found: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(run, "anomalies", lambda story: found)
    stopping = threading.Event()
    stopping.set()
    make("broker", ["penstock"], seed=6, seconds=3600, stopping=stopping)
    # A history that is stopped at once may have no record: only files of the broker itself are there.
    kept = [each for each in tmp_path.glob("histories-broker-6-*") if any(each.iterdir())]
    assert len(kept) == len(found)
    said = [f"broker seed 6: the brokers' data is kept in {each}\n" for each in kept]
    assert capsys.readouterr().err == "".join(said)


def test_troubles_that_cannot_be_undone_end_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(rng: random.Random) -> str:
        raise OSError("it does not start")

    target = Target("127.0.0.1:1", 1, [break_down])
    over = threading.Event()
    target.trouble(random.Random(1), over, (0.0, 0.0))
    assert over.is_set()
    assert str(target.error) == "it does not start"


def test_runs_side_by_side_take_turns_at_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "LEDGER", tmp_path / "ledger.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    made = [page.Entry("broker", ["penstock"], seed, 60, 10, 2, {}, {}, {}, {}) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(page.add, made))
    assert sorted(each.seed for each in page.entries()) == list(range(8))
    assert "| Penstock, one broker | 8 | 8 | 80 | 16 | 0 | 0 |" in page.PAGE.read_text(encoding="utf-8")


@pytest.mark.compat
def test_java_s_clients_take_part() -> None:
    for tool in ("java", "javac", "mvn"):
        need(tool)
    with Broker(port=0) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t", 2)
        with closing(Java(broker.bootstrap_servers, "mine")) as client:
            client.seek("t", {0: 0, 1: 0})
            client.begin()
            assert [wait() for wait in [client.send("t", 1, b"1.2"), client.send("t", 1, b"1.3")]] == [0, 1]
            client.commit()
            client.begin()
            client.send("t", 1, b"1.4")()
            client.abort()
            rows: list[Row] = []
            while len(rows) < 2:
                rows += client.poll(0.2)
        assert rows == [Row("t", 1, 0, None, b"1.2"), Row("t", 1, 1, None, b"1.3")]
        with (
            closing(Java(broker.bootstrap_servers, None)) as client,
            pytest.raises(RuntimeError, match="IllegalState"),
        ):
            client.begin()


@pytest.mark.soak
@pytest.mark.compat
@pytest.mark.filterwarnings("ignore")  # of clients that are left behind in mid-air
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target", ["broker", "cluster", "kafka"])
@pytest.mark.parametrize("seed", range(3))
def test_every_client(target: str, seed: int) -> None:
    for tool in ("java", "javac", "mvn"):
        need(tool)
    for name in ("confluent_kafka", "kafka", "aiokafka"):
        need_module(name)
    entry = make(target, list(CLIENTS), seed=1000 + seed, seconds=60)
    assert entry.anomalies == {}, entry.line()
    assert entry.transactions > 0
