"""A program that removes features an operating system lacks, then runs a broker and a client.

Usage: ``python other_systems.py macos|windows|musl DIRECTORY``.

It cannot simulate differences in how other systems treat the same calls. The program prints `whole` at its
end.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import pickle
import select
import signal
import socket
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn


def take_modules(*names: str) -> None:
    """Make imports of these modules fail, as if they were not installed."""
    for loaded in [each for each in sys.modules if each.partition(".")[0] in names]:
        del sys.modules[loaded]
    finders: list[Any] = list(sys.meta_path)
    for finder in finders:
        found = finder.find_spec

        def find_spec(name: str, *more: Any, found: Callable[..., Any] = found) -> Any:
            return None if name.partition(".")[0] in names else found(name, *more)

        finder.find_spec = find_spec


def take_attributes(owner: Any, *names: str) -> None:
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)


def no_signal_handlers(*_: object) -> NoReturn:
    raise NotImplementedError


def be_macos() -> None:
    take_attributes(os, "fdatasync", "memfd_create", "posix_fadvise", "sched_getaffinity")
    take_attributes(socket, "TCP_CORK", "SO_REUSEPORT")
    take_attributes(select, "epoll")


def be_windows() -> None:
    be_macos()
    import subprocess  # noqa: F401
    import tempfile  # noqa: F401  these have taken what they need, as there they have something else
    import threading  # noqa: F401
    from fcntl import LOCK_EX, LOCK_NB, lockf

    msvcrt: Any = ModuleType("msvcrt")
    msvcrt.LK_NBLCK = 2
    msvcrt.locking = lambda fd, mode, size: lockf(fd, LOCK_EX | LOCK_NB, size)
    sys.modules["msvcrt"] = msvcrt
    take_modules("fcntl", "resource", "termios", "pwd", "grp", "tty", "pty", "syslog")
    take_attributes(
        os, "pread", "preadv", "pwrite", "pwritev", "sendfile", "fork", "forkpty", "register_at_fork"
    )
    take_attributes(os, "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "statvfs", "getuid", "geteuid", "getgid")
    take_attributes(os, "sysconf", "mkfifo", "chown", "killpg", "getloadavg", "pipe2", "ST_NOEXEC")
    take_attributes(mmap, "MADV_SEQUENTIAL", "MADV_DONTNEED")
    take_attributes(signal, "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGPIPE", "SIGWINCH")
    loop_class: Any = asyncio.SelectorEventLoop
    loop_class.add_signal_handler = no_signal_handlers
    os.name = "nt"  # for what is chosen by it here; the standard library would look for more of Windows
    import penstock.common.operating_system  # noqa: F401

    os.name = "posix"


def be_musl() -> None:
    """Simulate Alpine, where Penstock may have been installed without a C compiler."""
    take_modules("penstock._kernels")


def run(directory: str, columns: bool) -> None:
    from penstock import Admin, Broker, Consumer, Producer, TopicPartition

    data = os.path.join(directory, "data")
    large = os.urandom(300_000)
    for round_number in range(2):  # the second time from what the first has left
        with Broker(data_dir=data) as broker:
            servers = broker.bootstrap_servers
            if not round_number:
                with Admin(servers) as admin:
                    admin.create_topic("orders", 2, config={"segment.bytes": "1048576"})
            with Producer(servers) as producer:
                for number in range(100):
                    producer.send("orders", b"%d" % number, key=b"k", partition=0)
                producer.send("orders", large, partition=1).result(timeout=30)
            with Consumer(servers, group_id="billing", auto_offset_reset="earliest") as consumer:
                consumer.subscribe("orders")
                got: list[Any] = []
                while len(got) < 101:
                    got += consumer.poll(timeout_ms=1000)
            assert sorted(r.value for r in got if r.key) == sorted(b"%d" % n for n in range(100)), got[:3]
            assert [r.value for r in got if not r.key] == [large]
            with Admin(servers) as admin:
                assert admin.list_topics() == ["orders"]
            if columns:
                tables(servers, data, (round_number + 1) * 101)
    with Broker() as broker, Producer(broker.bootstrap_servers) as producer:
        assert producer.send("in-memory", b"x").result(timeout=10).offset == 0
    assert TopicPartition("a", 0) == pickle.loads(pickle.dumps(TopicPartition("a", 0)))


def tables(servers: str, data: str, rows: int) -> None:
    from penstock import read_log, read_topic, write_topic

    assert read_topic("orders", bootstrap_servers=servers).num_rows == rows
    assert read_log(os.path.join(data, "orders-0")).num_rows == rows // 101 * 100
    table = read_topic("orders", bootstrap_servers=servers, columns=["value"], end=10, partitions=[0])
    write_topic(table, "copies", bootstrap_servers=servers)
    assert read_topic("copies", bootstrap_servers=servers).num_rows % 10 == 0
    from penstock import Admin

    with Admin(servers) as admin:
        admin.delete_topics(["copies"])


SYSTEMS: dict[str, Callable[[], None]] = {"macos": be_macos, "windows": be_windows, "musl": be_musl}

if __name__ == "__main__":
    SYSTEMS[sys.argv[1]]()
    run(sys.argv[2], columns=True)
    print("whole")
