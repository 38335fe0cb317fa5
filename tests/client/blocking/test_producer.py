"""Tests of the background event loop of blocking clients: Ctrl-C, forks, callbacks, process exit."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable

import pytest

from penstock import Consumer, Producer, TopicPartition, read_topic
from penstock.client.background_loop import background_loop, run
from penstock.errors import PenstockError

NewTopic = Callable[..., str]


def test_results_and_errors_come_back() -> None:
    async def good() -> int:
        return 7

    async def bad() -> None:
        raise ValueError("no")

    assert run(good()) == 7
    with pytest.raises(ValueError, match="no"):
        run(bad())


def test_many_threads_share_one_loop() -> None:
    async def where() -> int:
        await asyncio.sleep(0.001)
        return threading.get_ident()

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(run(where()))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len(found) == 20
    assert len(set(found)) == 1


def test_waiting_for_oneself_is_refused() -> None:
    async def outer() -> None:
        run(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="would wait for itself"):
        run(outer())


def test_ctrl_c_interrupts_at_once_and_cancels() -> None:
    cancelled = threading.Event()

    async def sleep_long() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(sleep_long())
    assert time.monotonic() - start < 5
    assert cancelled.wait(5)
    timer.join()


def test_ctrl_c_leaves_a_poll_and_the_consumer_usable(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    with Consumer(servers, auto_offset_reset="earliest") as consumer, Producer(servers) as producer:
        consumer.assign([TopicPartition(topic, 0)])
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(60_000)
        timer.join()
        producer.send(topic, b"a").result(10)
        assert [record.value for record in consumer.poll(5000)] == [b"a"]


def test_callbacks_run_and_may_not_block_their_own_loop(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    with Producer(servers, linger_ms=200) as producer:
        done = threading.Event()
        found: list[object] = []

        def callback(delivery: object) -> None:
            try:
                producer.flush()
            except RuntimeError as error:
                found.append(error)
            done.set()

        producer.send(topic, b"a").add_done_callback(callback)
        assert done.wait(5)
        assert "would wait for itself" in str(found[0])


def test_many_threads_may_send(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    with Producer(servers, batch_size=2000, linger_ms=1) as producer:

        def send(name: int) -> None:
            for n in range(500):
                producer.send(topic, b"%d-%d" % (name, n), key=b"%d" % name)

        threads = [threading.Thread(target=send, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    values = [value.split(b"-") for value in read_topic(topic, servers)["value"].to_pylist()]
    for name in range(4):
        assert [int(n) for who, n in values if int(who) == name] == list(range(500))


def script(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a separate process; return the completed process."""
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(code), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_broker_under_a_name_is_reached_while_the_program_ends(servers: str, new_topic: NewTopic) -> None:
    """While Python exits, it starts no more threads, which asyncio needs to resolve host names."""
    topic = new_topic()
    done = script(
        """
        import atexit, sys
        from penstock import Producer

        def write_the_last_record():
            with Producer(sys.argv[1].replace("127.0.0.1", "localhost")) as producer:
                producer.send(sys.argv[2], b"last").result(20)

        atexit.register(write_the_last_record)
        """,
        servers,
        topic,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert read_topic(topic, servers)["value"].to_pylist() == [b"last"]


def test_a_forked_child_has_a_loop_of_its_own(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    done = script(
        """
        import os, sys
        from penstock import Producer, read_topic
        servers, topic = sys.argv[1:]
        producer = Producer(servers)
        producer.send(topic, b"parent").result(10)
        child = os.fork()
        if child == 0:
            try:
                producer.send(topic, b"lost")
            except Exception as error:
                print("child:", error)
            producer.close()
            with Producer(servers) as own:
                own.send(topic, b"child").result(10)
            print("child reads", read_topic(topic, servers).num_rows, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        producer.send(topic, b"parent again").result(10)
        producer.close()
        print("parent reads", read_topic(topic, servers)["value"].to_pylist())
        """,
        servers,
        topic,
    )
    assert done.returncode == 0, done.stderr
    assert "child: this Producer was made before the process forked" in done.stdout
    assert "child reads 2" in done.stdout
    assert "parent reads [b'parent', b'child', b'parent again']" in done.stdout


def test_a_child_that_inherits_a_busy_loop_works(servers: str, new_topic: NewTopic) -> None:
    """The parent has used its event loop; each of its forked children uses a loop of its own, many times.

    Spark's workers do so.
    """
    topic = new_topic()
    done = script(
        """
        import os, sys
        from penstock import Consumer, Producer, TopicPartition, read_topic
        servers, topic = sys.argv[1:]
        with Producer(servers) as producer:
            producer.send(topic, b"x").result(10)
        consumer = Consumer(servers)
        consumer.assign([TopicPartition(topic, 0)])
        consumer.poll(10)
        children = []
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if read_topic(topic, servers).num_rows == 1 else 1)
            children.append(pid)
        print([os.waitpid(pid, 0)[1] for pid in children])
        """,
        servers,
        topic,
    )
    assert done.stdout.strip() == "[0, 0, 0, 0, 0]", done.stderr


def test_what_nobody_flushed_is_sent_at_the_end_of_the_process(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    done = script(
        """
        import sys
        from penstock import Producer
        producer = Producer(sys.argv[1], linger_ms=10_000)
        for n in range(10):
            producer.send(sys.argv[2], b"%d" % n)
        """,
        servers,
        topic,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert read_topic(topic, servers).num_rows == 10


def test_ctrl_c_ends_a_program_that_iterates(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    program = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys\n"
            "from penstock import Consumer, TopicPartition\n"
            "consumer = Consumer(sys.argv[1])\n"
            "consumer.assign([TopicPartition(sys.argv[2], 0)])\n"
            "print('up', flush=True)\n"
            "try:\n"
            "    for record in consumer: pass\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted')\n",
            servers,
            topic,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "up\n"
    time.sleep(0.5)
    start = time.monotonic()
    program.send_signal(signal.SIGINT)
    output, _ = program.communicate(timeout=10)
    assert output == "interrupted\n"
    assert time.monotonic() - start < 5


def test_importing_the_client_loads_nothing_heavy() -> None:
    done = script(
        """
        import sys
        import penstock.client.blocking.consumer, penstock.client.fetch.offsets, penstock.client.fetch.ranges
        print([name for name in ("numpy", "pyarrow", "pyspark", "cramjam") if name in sys.modules])
        """
    )
    assert done.stdout.strip() == "[]"


def test_rows_need_nothing_heavy_either(servers: str, new_topic: NewTopic) -> None:
    done = script(
        """
        import sys
        from penstock import Admin, Consumer, Producer, TopicPartition
        servers, topic = sys.argv[1:]
        with Producer(servers) as producer:
            producer.send(topic, b"a").result(10)
        with Consumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            print(len(consumer.poll(5000)))
        print([name for name in ("numpy", "pyarrow") if name in sys.modules])
        """,
        servers,
        new_topic(),
    )
    assert done.stdout.split("\n")[:2] == ["1", "[]"]


def test_the_background_loop_is_one() -> None:
    assert background_loop() is background_loop()
    assert issubclass(PenstockError, Exception)
