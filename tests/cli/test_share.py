"""Tests of `penstock share` against a broker with share groups."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cli.test_listing import check
from penstock import Admin, Broker, Producer
from penstock.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin, Producer(broker.bootstrap_servers) as producer:
            admin.create_topic("t", partitions=2)
            for number in range(10):
                producer.send("t", b"%d" % number, partition=number % 2)
        yield broker.bootstrap_servers


@pytest.fixture
def group(servers: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """Create a share group without members, with start offsets in both partitions; yield its name."""
    name = f"g-{request.node.name.partition('[')[0]}"
    with Admin(servers) as admin:
        admin.alter_share_group_offsets(name, {("t", 0): 2, ("t", 1): 5})
        yield name
        if name in [each.group_id for each in admin.list_share_groups()]:
            admin.delete_groups([name])


@pytest.fixture
def run(servers: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["share", words[0], "-b", servers, *words[1:]])
        ended = capsys.readouterr()
        return code, ended.out, ended.err

    return call


def cells(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_a_group_from_its_beginning_to_its_end(run: Run, group: str) -> None:
    assert group in run("list")[1].split()
    assert [group, "Empty"] in cells(run("list", "-v")[1])
    assert run("list", "--state", "Stable")[1] == ""
    assert run("describe", group)[1].startswith(f"share group {group}, Empty, epoch ")
    assert [row[:3] for row in cells(run("lag", group)[1])[1:3]] == [["t", "0", "2"], ["t", "1", "5"]]

    plan = run("reset", group, "--to-earliest")[1]
    assert cells(plan)[1:3] == [["t", "0", "2", "0"], ["t", "1", "5", "0"]]
    assert plan.endswith("nothing has been changed; add --execute to do it\n")
    done = run("reset", group, "-t", "t:1", "--to-latest", "--execute")[1]
    assert cells(done)[1] == ["t", "1", "5", "5"]
    assert done.endswith(f"share group {group} begins there\n")

    assert run("delete", group, "-t", "t") == (0, f"deleted what share group {group} has of t\n", "")
    assert run("delete", group) == (0, f"deleted share group {group}\n", "")
    assert group not in run("list")[1].split()


@pytest.mark.parametrize(
    ("noun", "words"),
    [
        ("share group", "list"),
        ("share member", "describe {}"),
        ("share lag", "lag {}"),
        ("share reset", "reset {} --to-earliest"),
    ],
)
def test_lines_of_json_have_the_fields_of_their_noun(run: Run, group: str, noun: str, words: str) -> None:
    code, out, _ = run(*words.format(group).split(), "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, bool(rows)) == (0, True)
    for row in rows:
        check(noun, row)


def test_groups_that_are_not_there_are_named(run: Run) -> None:
    for words in (("lag", "nothing"), ("describe", "nothing"), ("delete", "nothing")):
        code, _, err = run(*words)
        assert (code, err) == (1, "penstock: group 'nothing' does not exist, or is no share group\n")
    assert run("reset", "nothing", "--to-earliest")[0] == 2


def test_a_share_group_is_described_among_the_groups(
    servers: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["group", "describe", "-b", servers, group]) == 0
    assert capsys.readouterr().out.startswith(f"group {group}, Empty")
    assert main(["group", "lag", "-b", servers, group]) == 2
    assert capsys.readouterr().err.endswith(f"penstock share lag {group}\n")
    assert main(["group", "list", "-v", "-b", servers]) == 0
    assert [group, "Empty", "share"] in cells(capsys.readouterr().out)


@pytest.fixture(scope="module")
def quick() -> Iterator[str]:
    """Start a broker that gives partitions to members of share groups without delay; yield its address."""
    settings = {
        "group.share.min.heartbeat.interval.ms": 100,
        "group.share.heartbeat.interval.ms": 100,
        "group.share.assignment.interval.ms": 0,
    }
    with Broker(config=settings) as broker:
        with Admin(broker.bootstrap_servers) as admin, Producer(broker.bootstrap_servers) as producer:
            admin.create_topic("t", partitions=2)
            admin.alter_config(group="g", set={"share.auto.offset.reset": "earliest"})
            for number in range(20):
                producer.send("t", b"%d" % number, partition=number % 2)
        yield broker.bootstrap_servers


def test_what_is_printed_is_accepted_and_the_rest_is_left(
    quick: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    words = ["consume", "-b", quick, "t", "--share", "g"]
    assert main([*words, "-c", "5", "-q"]) == 0
    first = capsysbinary.readouterr()
    assert (len(first.out.split()), first.err) == (5, b"")
    with Admin(quick) as admin:
        assert sum(at.lag or 0 for at in admin.list_share_group_offsets("g").values()) <= 15
        assert admin.describe_share_groups(["g"])[0].state == "Empty"
    assert main([*words, "-e", "-J"]) == 0
    rest = [json.loads(line)["payload"].encode() for line in capsysbinary.readouterr().out.splitlines()]
    assert sorted(map(int, [*first.out.split(), *rest])) == list(range(20))
    assert main(["share", "lag", "-b", quick, "g"]) == 0
    assert capsysbinary.readouterr().out.endswith(b"total lag 0\n")


def test_top_has_the_lag_of_share_groups(run: Run, servers: str, group: str, capsys: Any) -> None:
    assert main(["top", "-b", servers, "-n", "1", "--json", "-G", group]) == 0
    (row,) = [each for each in map(json.loads, capsys.readouterr().out.splitlines()) if "group" in each]
    with Admin(servers) as admin:
        expected = sum(at.lag or 0 for at in admin.list_share_group_offsets(group).values())
    assert (row["group"], row["state"], row["partitions"], row["lag"]) == (group, "Empty", 2, expected)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-G", "g", "--share", "g"], "-G and --share exclude each other"),
        (["--share", "g", "-p", "0"], "-p and --share exclude each other"),
        (["--share", "g", "-o", "end"], "penstock share reset moves a share group"),
        (["--share", "g", "--isolation", "read_committed"], "share.isolation.level of the group"),
        (["--share", "g", "-f", "csv"], "leave out --share"),
    ],
)
def test_what_a_member_does_not_choose(
    servers: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["consume", "-b", servers, "t", *words]) == 2
    assert message in capsys.readouterr().err
