"""Tests of `penstock cluster`, which controls a cluster in another process.

It uses a Unix socket that only the user of that process can open.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.wire_client import is_well
from penstock.broker.lever_socket import (
    CONNECTIONS_MAX,
    LEVERS,
    check_is_private,
    read_request,
    serving_levers,
)
from penstock.cli import main
from penstock.cli.listing import NOUNS
from penstock.errors import ConfigError, StorageError
from penstock.testing import KafkaCluster

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="levers need Unix sockets")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the directory in which this process and the processes that it starts create Unix sockets."""
    path = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(path))
        yield path


@pytest.fixture(scope="module")
def address(runtime: Path) -> Iterator[str]:
    """Start a cluster of three brokers in another process; yield the address of its first broker."""
    command = [sys.executable, "-m", "penstock.broker", "--port", "0", "--brokers", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield line.split(" listening on ")[1].split(",")[0]
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert not list((runtime / "penstock").iterdir())


def asked(path: Path, *sent: bytes) -> dict[str, object]:
    """Send bytes to a Unix socket that controls a cluster, and return the decoded JSON response."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(path))
        with contextlib.suppress(BrokenPipeError):  # refused before it was whole
            for each in sent:
                connection.sendall(each)
            connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answers:
            found: dict[str, object] = json.loads(answers.readline())
            return found


def run(capsys: pytest.CaptureFixture[str], address: str, *words: str) -> tuple[int, str]:
    """Run `penstock cluster`; return its exit code and what it printed."""
    code = main(["cluster", *words, "-b", address])
    out, err = capsys.readouterr()
    return code, out + err


def nodes(capsys: pytest.CaptureFixture[str], address: str) -> dict[int, dict[str, object]]:
    code, out = run(capsys, address, "nodes", "--json")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    assert all(list(row) == [field.name for field in NOUNS["node"]] for row in rows)
    return {row["broker"]: row for row in rows}


def test_each_lever_moves(capsys: pytest.CaptureFixture[str], address: str) -> None:
    assert (
        main(["topic", "create", "t", "--partitions", "1", "--replication-factor", "3", "-b", address]) == 0
    )
    capsys.readouterr()
    code, moved = run(capsys, address, "move-leader", "t", "0")
    found = re.fullmatch(r"broker ([123]) leads t-0\n", moved)
    assert (code, bool(found)) == (0, True), moved
    leader = int(found[1])  # type: ignore[index]
    follower, third = (each for each in (1, 2, 3) if each != leader)
    for words, said in (
        (["shrink-isr", "t", "0", str(follower)], f"broker {follower} is not in sync with t-0; thaw ends it"),
        (["thaw", str(follower)], f"broker {follower} follows its leaders"),
        (["slow", "1", "2", "5ms"], "all between broker 1 and broker 2 takes 5ms longer; heal ends it"),
        (["cut", "1", "2"], "nothing passes between broker 1 and broker 2; heal ends it"),
        (
            ["cut", str(third), "--from", "clients"],
            f"nothing passes between broker {third} and clients; heal ends it",
        ),
        (["clock", "stop"], "the clock of all brokers stands still"),
        (["advance", "1s"], "the clock of all brokers is 1s further on"),
        (["clock", "start"], "the clock of all brokers goes on"),
    ):
        assert run(capsys, address, *words) == (0, f"{said}\n"), words
    assert nodes(capsys, address)[third]["is_cut_from_clients"] is True
    for words in (["heal"], ["freeze", str(third)], ["pause", str(follower)]):
        assert run(capsys, address, *words, "-q") == (0, ""), words
    found = nodes(capsys, address)
    assert [found[each]["state"] for each in (follower, third)] == ["paused", "running"]
    assert [found[each]["is_frozen"] for each in (follower, third)] == [False, True]
    for words in (["resume", str(follower)], ["thaw", str(third)], ["kill", str(third), "--fence"]):
        assert run(capsys, address, *words, "-q") == (0, ""), words
    assert nodes(capsys, address)[third]["state"] == "stopped"
    assert run(capsys, address, "start", str(third)) == (0, f"broker {third} runs\n")
    assert {each["state"] for each in nodes(capsys, address).values()} == {"running"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["kill", "9"], "there is no broker 9"),
        (["move-leader", "none", "0"], "there is no partition none-0"),
        (["move-coordinator"], "either --group or"),
        (["cut", "1", "2", "--from", "clients"], "not both"),
        (["advance", "blue"], "DURATION: 'blue' is no duration"),
        (["advance", "5"], "DURATION: '5' is no duration"),
        (["slow", "1", "2", "200"], "DURATION: '200' is no duration"),
        (["cut", "1", "1"], "no link to itself"),
        (["move-coordinator", "--group", "none"], "there is no group 'none'"),
        (["advance", "10000d"], "takes 0 to"),
    ],
)
def test_a_lever_that_cannot_be_moved_says_why(
    capsys: pytest.CaptureFixture[str], address: str, words: list[str], reason: str
) -> None:
    code, printed = run(capsys, address, *words)
    assert code != 0
    assert reason in printed


def test_the_socket_is_its_users_alone(runtime: Path, address: str) -> None:
    (path,) = (runtime / "penstock").iterdir()
    assert path.name == f"{address.rpartition(':')[2]}.levers"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_comes_through_the_socket_has_limits(runtime: Path, address: str) -> None:
    (path,) = (runtime / "penstock").iterdir()
    for sent in (
        b"x" * 5000 + b"\n",
        b"[]\n",
        b'{"lever": "close"}\n',
        b'{"lever": "kill", "with": {"node": "1"}}\n',
        b'{"lever": "kill"}\n',
        b'{"lever": "cut_link", "with": {"one": 1}}\n',
        b'{"lever": "move_coordinator"}\n',
    ):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(path))
            connection.sendall(sent)
            with connection.makefile("rb") as answers:
                assert "error" in json.loads(answers.readline())


def test_half_a_request_and_one_that_is_too_long_are_refused(runtime: Path, address: str) -> None:
    (path,) = (runtime / "penstock").iterdir()
    for sent in (
        b"",
        b'{"lever": "no',
        b'{"lever": "nodes"}',
        b"x" * 10_000_000 + b"\n",
        b"\xff\n",
        b"[" * 4000 + b"\n",
    ):
        assert set(asked(path, sent)) == {"error"}, sent[:20]
    assert set(asked(path, b'{"lever": ', b'"nodes"}\n')) == {"value"}


def test_every_request_has_an_answer_whatever_its_arguments(runtime: Path, address: str) -> None:
    (path,) = (runtime / "penstock").iterdir()
    values = {int: (-(10**30), -1, 0, 99, 10**30), str: ("", "none", "\ud800", "x" * 900), bool: (True,)}
    for name, wanted in LEVERS.items():
        names = sorted(wanted)
        for size in range(len(names) + 1):
            for chosen in itertools.combinations(names, size):
                for number in range(5):
                    given = {
                        each: values[wanted[each]][number % len(values[wanted[each]])] for each in chosen
                    }
                    line = json.dumps({"lever": name, "with": given}).encode() + b"\n"
                    if given or "node" in wanted or "topic" in wanted:
                        assert len(asked(path, line)) == 1, line
    found = json.loads(json.dumps(asked(path, b'{"lever": "nodes"}\n')["value"]))
    assert [(each["broker"], each["is_cut_from_clients"]) for each in found] == [
        (1, False),
        (2, False),
        (3, False),
    ]
    assert asked(path, b'{"lever": "slow", "with": {"one": 1}}\n') == {
        "error": "slow: missing a required argument: 'other'"
    }
    assert "no broker 99" in str(
        asked(path, b'{"lever": "slow", "with": {"one": 1, "other": 99, "ms": 1}}\n')
    )


def test_a_thousand_connections_stop_neither_clients_nor_levers(runtime: Path, address: str) -> None:
    (path,) = (runtime / "penstock").iterdir()
    with contextlib.ExitStack() as stack:
        for number in range(1_000):
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.settimeout(30)
            connection.connect(str(path))
            if number >= CONNECTIONS_MAX:
                # Those before may have been given up meanwhile, on a busy machine.
                assert json.loads(connection.recv(200)).keys() == {"error"}
                connection.close()
        assert is_well(int(address.rpartition(":")[2]))
    # Until it has noticed their end, another one may be too many.
    answers = (asked(path, b'{"lever": "nodes"}\n') for _ in range(1_000))
    assert any(answer.keys() == {"value"} for answer in answers)


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0,
    reason="only root starts programs as another user; modes and owners are tested without that",
)
def test_another_user_gets_through_no_earlier_than_the_modes_allow(
    capsys: pytest.CaptureFixture[str],
) -> None:
    as_another = """
import os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
with socket.socket(socket.AF_UNIX) as connection:
    try:
        connection.connect(sys.argv[1])
    except PermissionError:
        sys.exit(13)
"""

    def code() -> int:
        command = [sys.executable, "-S", "-c", as_another, str(path)]
        return subprocess.run(command, check=False).returncode

    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        os.chmod(place, 0o755)
        patch.setenv("XDG_RUNTIME_DIR", place)
        with KafkaCluster(1) as cluster:
            serving = serving_levers(cluster, cluster.ports[0])
            asyncio.run_coroutine_threadsafe(serving.__aenter__(), cluster._loop()).result(30)
            (path,) = (Path(place) / "penstock").iterdir()
            assert code() == 13
            os.chmod(path, 0o666)
            assert code() == 13, "the directory alone keeps others out"
            os.chmod(path.parent, 0o711)
            assert code() == 0, "it is nothing else that kept this user out"
            assert main(["cluster", "nodes", "-b", cluster.address(1)]) == 1
            assert "is not a directory of this user alone" in capsys.readouterr().err
            os.chmod(path.parent, 0o700)
            os.chown(path.parent, 65534, 65534)
            with pytest.raises(StorageError, match="of this user alone"):
                check_is_private(str(path.parent))
            os.chown(path.parent, 0, 0)
            asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), cluster._loop()).result(30)


@pytest.mark.parametrize("sent", [b"", b'{"lever": "nodes"}\n'], ids=["nothing", "a request"])
def test_no_connection_is_left_when_the_levers_end(sent: bytes, runtime: Path) -> None:
    """The event loop outlives the socket's server, so a connection that is not closed now would stay open."""
    with KafkaCluster(1) as cluster, socket.socket(socket.AF_UNIX) as connection:
        serving = serving_levers(cluster, cluster.ports[0])
        path = asyncio.run_coroutine_threadsafe(serving.__aenter__(), cluster._loop()).result(30)
        assert path is not None
        connection.settimeout(30)
        connection.connect(path)
        connection.sendall(sent)
        asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), cluster._loop()).result(30)
        with contextlib.suppress(ConnectionResetError), connection.makefile("rb") as answers:
            answers.read()


def test_without_a_cluster_the_command_says_how_to_start_one(
    capsys: pytest.CaptureFixture[str], runtime: Path
) -> None:
    code, printed = run(capsys, "127.0.0.1:1", "kill", "1")
    assert code == 1
    assert "--brokers 3" in printed


def test_a_directory_that_others_can_enter_is_not_used(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    with pytest.raises(StorageError, match="of this user alone"):
        check_is_private(str(tmp_path))


@pytest.mark.parametrize(
    "line",
    [
        b"", b"1", b"{}", b'{"lever": 1}', b'{"lever": "start"}', b'{"lever": "serving"}',
        b'{"lever": "kill", "with": []}',
        b'{"lever": "kill", "with": {"node": true}}', b'{"lever": "advance", "with": {"ms": -1}}',
    ],
)  # fmt: skip
def test_only_levers_are_called(line: bytes) -> None:
    with pytest.raises(ConfigError):
        read_request(line)
