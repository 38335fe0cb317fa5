"""Tests of the fork server for Spark's Python workers.

A test module stands in for Spark's worker, and this process for the JVM.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.spark.runtime import fork_client, fork_server
from penstock.spark.runtime.fork_client import FRESH, address

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="fork servers are for Linux")

MODULE = """
import os, sys, threading
PID = os.getpid()
import a_library
if __name__ == "__main__":
    if os.environ["ITS_OWN"] == "leaves one behind":
        if (left := os.fork()) == 0:
            os.closerange(0, 3)
            threading.Event().wait()
        print(left)
        sys.exit(0)
    if os.environ["ITS_OWN"] == "tells":
        print(os.environ.get("SET_BY_AN_IMPORT"))
        sys.exit(0)
    print(sys.argv, os.getcwd(), __spec__.name, sys.path)
    print(os.environ["ITS_OWN"], os.environ.get("LEFT_OUT"), sys.stdin.read())
    print("an error", file=sys.stderr)
    print(os.environ.get("PENSTOCK_FORK_SERVER_FOR"), os.getppid(), flush=True)
    if os.environ["ITS_OWN"] == "waits":
        threading.Event().wait()
    sys.exit(int(os.environ["ITS_OWN"]))
"""
LIBRARY = """
import os
os.environ.setdefault("SET_BY_AN_IMPORT", "yes")
"""
SERVER = """
import sys
from penstock.spark.runtime import fork_server
fork_server._SOURCE = ()
fork_server.OWN_NAMES += (b"ITS_OWN",)
fork_server.main(int(sys.argv[1]), "a_stream")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a_stream.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "a_library.py").write_text(LIBRARY, encoding="utf-8")
    (tmp_path / "a_server.py").write_text(SERVER, encoding="utf-8")
    return tmp_path


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    source = Path(fork_server.__file__).parents[3]
    return {**os.environ, "PYTHONPATH": f"{source}:{folder}", "ITS_OWN": "0"}


@pytest.fixture
def server(folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a fork server for this process's clients, and yield it once it listens."""
    with subprocess.Popen(
        [sys.executable, "-m", "a_server", str(os.getpid())], cwd=folder, env=environment
    ) as process:
        until(lambda: is_listening(os.getpid()))
        yield process
        process.kill()


@pytest.fixture
def client(folder: Path, environment: dict[str, str]) -> Callable[..., subprocess.Popen[str]]:
    def start(**changes: str) -> subprocess.Popen[str]:
        program = [sys.executable, "-I", "-S", fork_client.__file__, sys.executable, "-m", "a_stream"]
        return subprocess.Popen(
            program,
            cwd=folder,
            env={**environment, **changes},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_listening(jvm: int) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(address(jvm)) == 0


def is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_forked_process_is_what_a_new_one_would_be(
    server: subprocess.Popen[bytes], client: Callable[..., subprocess.Popen[str]]
) -> None:
    forked = client(ITS_OWN="7")
    out, err = forked.communicate("some input")
    assert (forked.returncode, err) == (7, "an error\n")
    *told, last = out.splitlines()
    assert last == f"None {server.pid}"
    anew = client(ITS_OWN="7", LEFT_OUT="another environment")
    out, err = anew.communicate("some input")
    assert (anew.returncode, err) == (7, "an error\n")
    told[1] = told[1].replace("None", "another environment")
    assert out.splitlines() == [*told, f"{os.getpid()} {os.getpid()}"]


def test_without_a_server_python_starts_anew(client: Callable[..., subprocess.Popen[str]]) -> None:
    process = client(ITS_OWN="3")
    out, _ = process.communicate("")
    assert process.returncode == 3
    assert out.splitlines()[-1] == f"{os.getpid()} {os.getpid()}"


def test_what_was_forked_ends_with_its_client(
    server: subprocess.Popen[bytes], client: Callable[..., subprocess.Popen[str]]
) -> None:
    with client(ITS_OWN="waits") as waiting:
        assert waiting.stdin is not None
        assert waiting.stdout is not None
        waiting.stdin.close()
        while not (line := waiting.stdout.readline()).startswith("None "):
            assert line
        (forked,) = children(server.pid)
        waiting.kill()
        until(lambda: not is_there(forked))
    assert server.poll() is None


def test_the_server_ends_with_the_jvm(folder: Path, environment: dict[str, str]) -> None:
    with subprocess.Popen(["sleep", "600"]) as jvm:
        server = subprocess.Popen(
            [sys.executable, "-m", "a_server", str(jvm.pid)], cwd=folder, env=environment
        )
        until(lambda: is_listening(jvm.pid))
        second = subprocess.run(
            [sys.executable, "-m", "a_server", str(jvm.pid)], cwd=folder, env=environment, check=False
        )
        assert second.returncode == 0
        assert server.poll() is None
        jvm.send_signal(signal.SIGKILL)
    assert server.wait(60) == 0


def test_a_request_that_makes_no_sense_ends_itself(
    server: subprocess.Popen[bytes], client: Callable[..., subprocess.Popen[str]]
) -> None:
    for garbage in (b"", b"\xff\xff\xff\xff", b"\x00\x00\x00\x02()", b"\x00\x00\x00\x01?"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(address(os.getpid()))
            socket.send_fds(connection, [garbage], [0, 1, 2])
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    process = client()
    out, _ = process.communicate("")
    assert out.splitlines()[-1] == f"None {server.pid}"


def test_a_process_that_the_stream_leaves_behind_does_not_keep_the_client(
    server: subprocess.Popen[bytes], client: Callable[..., subprocess.Popen[str]]
) -> None:
    with client(ITS_OWN="leaves one behind") as process:
        assert process.stdout is not None
        left = int(process.stdout.readline())
        try:
            assert process.wait(20) == 0
        finally:
            os.kill(left, signal.SIGKILL)
            process.kill()


def test_what_imports_add_to_the_environment_stays(
    server: subprocess.Popen[bytes], client: Callable[..., subprocess.Popen[str]]
) -> None:
    out, _ = client(ITS_OWN="tells").communicate("")
    assert out == "yes\n"


def test_what_a_shell_sets_of_its_own_does_not_matter(
    server: subprocess.Popen[bytes], client: Callable[..., subprocess.Popen[str]]
) -> None:
    """Bash sets variables such as `SHLVL`, which may differ between the fork server and its client."""
    out, _ = client(ITS_OWN="0", SHLVL="7", _="/usr/bin/python", OLDPWD="/elsewhere").communicate("")
    assert out.splitlines()[-1] == f"None {server.pid}"


def test_a_server_is_started_where_no_other_served(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **others: commands.append(command))
    fork_server.start_server()
    assert commands == []
    monkeypatch.setenv("PENSTOCK_FORK_SERVER", "no")
    monkeypatch.setenv(FRESH, "42")
    fork_server.start_server()
    assert commands == []
    monkeypatch.delenv("PENSTOCK_FORK_SERVER")
    monkeypatch.setenv(FRESH, "42")
    fork_server.start_server()
    fork_server.start_server()
    assert [command[-1] for command in commands] == ["42"]


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
