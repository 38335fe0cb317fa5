"""Tests of `penstock group` and `penstock consume --group` against a broker."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from penstock import Broker, Consumer, Producer, TopicPartition
from penstock.cli import main
from penstock.cli.group_reset import ResetTarget, To, parse_target, parse_topics, planned
from penstock.client.blocking.admin import Admin
from penstock.errors import ConfigError

Penstock = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        servers = broker.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("t", 2)
        with Producer(servers) as producer:
            for number in range(20):
                producer.send("t", b"%d" % number, partition=number % 2)
        yield servers


@pytest.fixture
def penstock(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Penstock:
    """Return a function that runs a command in this process: exit code, stdout and stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        code = main(words)
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def cells(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_a_group_from_its_first_record_to_its_end(penstock: Penstock, address: str) -> None:
    where = ("-b", address)
    code, out, err = penstock("consume", *where, "-t", "t", "-G", "life", "-e")
    assert (code, len(out.split())) == (0, 20)
    assert err == "% assigned: t-0, t-1\n% revoked: t-0, t-1\n"
    assert "life" in penstock("group", "list", *where)[1].split()
    assert ["life", "Empty", "consumer"] in cells(penstock("group", "list", "-v", *where)[1])
    assert penstock("group", "describe", *where, "life")[1].startswith("group life, Empty, coordinator 1 at ")

    plan = penstock("group", "reset", *where, "life", "--shift-by", "-3")
    assert cells(plan[1])[1:3] == [["t", "0", "10", "7"], ["t", "1", "10", "7"]]
    assert "add --execute" in plan[1]
    lag = ("group", "lag", *where, "life")
    assert penstock(*lag)[1].endswith("total lag 0\n")
    assert penstock("group", "reset", *where, "life", "-t", "t:1", "--to-offset", "4", "--execute")[0] == 0
    assert cells(penstock(*lag)[1])[1:] == [
        ["t", "0", "10", "10", "0", "-"],
        ["t", "1", "4", "10", "6", "-"],
        ["total", "lag", "6"],
    ]
    code, out, err = penstock("consume", *where, "-t", "t", "-G", "life", "-c", "2", "-q", "-f", "%p/%o\n")
    assert (code, out, err) == (0, "1/4\n1/5\n", "")
    assert penstock(*lag)[1].endswith("total lag 4\n")

    assert penstock("group", "delete", *where, "life", "-t", "t")[0] == 0
    assert penstock("group", "delete", *where, "life") in [
        (0, "deleted group life\n", ""),
        (1, "", "penstock: group 'life' does not exist\n"),
    ]
    assert penstock(*lag) == (1, "", "penstock: group 'life' does not exist\n")


def test_a_group_with_members_is_shown_and_left_alone(penstock: Penstock, address: str) -> None:
    where = ("-b", address)
    with Consumer(address, group_id="busy", group_instance_id="i1", client_id="me") as consumer:
        consumer.subscribe("t")
        while len(consumer.assignment()) < 2:
            consumer.poll(20)
        out = penstock("group", "describe", *where, "busy")[1]
        assert ", Stable, assignor range, " in out.splitlines()[0]
        assert out.splitlines()[2].split()[1:3] == ["i1", "me"]
        assert out.endswith(" t:0,1\n")
        assert penstock("group", "lag", *where, "busy")[1].splitlines()[1].endswith(" i1")
        refusal = (1, "", "penstock: group 'busy' has members: stop them first\n")
        assert penstock("group", "delete", *where, "busy") == refusal
        reset = penstock("group", "reset", *where, "busy", "-t", "t", "--to-earliest", "--execute")
        assert (reset[0], reset[2]) == (1, refusal[2])


def test_a_member_that_is_terminated_leaves_its_group(penstock: Penstock, address: str) -> None:
    words = ["consume", "-b", address, "-t", "t", "-G", "ended", "-q"]
    with subprocess.Popen([sys.executable, "-m", "penstock", *words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert len([process.stdout.readline() for _ in range(20)]) == 20
        process.terminate()
        assert process.wait(20) == 143
    assert ["ended", "Empty", "consumer"] in cells(penstock("group", "list", "-v", "-b", address)[1])
    assert penstock("group", "lag", "-b", address, "ended")[1].endswith("total lag 0\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["group", "reset", "g"], "exactly one of --to-earliest"),
        (["group", "reset", "g", "--to-earliest", "--to-latest"], "exactly one of"),
        (
            ["share", "reset", "g"],
            "exactly one of --to-earliest, --to-latest, --to-offset, --to-time, --by-duration\n",
        ),
        (["group", "reset", "g", "--to-earliest"], "has committed nothing: give the --topic"),
        (["group", "reset", "g", "-t", "t:", "--to-earliest"], "give TOPIC, or TOPIC:0,1"),
        (
            ["group", "reset", "g", "-t", "t:7", "--to-earliest"],
            "has no partition 7; it has 2 partitions, 0 to 1",
        ),
        (["group", "reset", "g", "-t", "t", "--shift-by", "1"], "there is nothing to shift"),
        (["consume", "-t", "t", "-G", "g", "-p", "1"], "-p and -G exclude each other"),
        (["consume", "-t", "t", "-G", "g", "-o", "5"], "penstock group reset moves a group"),
        (["consume", "-t", "t", "-t", "u"], "several topics need a group"),
    ],
)
def test_mistakes_take_one_line(penstock: Penstock, address: str, words: list[str], message: str) -> None:
    code, _, err = penstock(*words, "-b", address)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_times() -> None:
    for word in ("1700000000000", "2023-11-14T22:13:20Z", "2023-11-14T22:13:20"):
        assert parse_target({To.EARLIEST: False, To.TIME: word}) == ResetTarget(To.TIME, 1_700_000_000_000)
    with pytest.raises(ConfigError, match="--to-time: 'yesterday' is no time; write a time"):
        parse_target({To.TIME: "yesterday"})


def test_places_are_topics_with_partitions() -> None:
    assert parse_topics(["a", "b:2,0", "b:1", "a:3"]) == {"a": None, "b": [0, 1, 2]}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (ResetTarget(To.EARLIEST), 10),
        (ResetTarget(To.LATEST), 20),
        (ResetTarget(To.OFFSET, 15), 15),
        (ResetTarget(To.OFFSET, 5), 10),
        (ResetTarget(To.SHIFT, 3), 18),
        (ResetTarget(To.SHIFT, -30), 10),
        (ResetTarget(To.TIME, 99), 12),
    ],
)
def test_plans_stay_inside_the_log(target: ResetTarget, expected: int) -> None:
    where = TopicPartition("t", 0)
    plan = planned(target, [where], {where: 15}, {where: 10}, {where: 20}, {where: 12})
    assert plan == {where: expected}
    assert parse_target({To.EARLIEST: True, To.OFFSET: None}) == ResetTarget(To.EARLIEST)
