"""Tests of records in network captures: each record once, at the offset that the broker assigned."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.captures import ACK, SYN, Packet, pcap, stream, timed
from penstock import Broker, Consumer, Producer, capture_dataset, read_topic, sql
from penstock.errors import ConfigError, DecodeError

CLIENT_HOST, BROKER_PLACE = "10.0.0.1", ("10.0.0.2", 9092)


class Recorder:
    """A proxy between clients and a broker that records the bytes of both directions per connection."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target = 0
        self.said: list[tuple[bytearray, bytearray]] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self.target))
                pair = (bytearray(), bytearray())
                self.said.append(pair)
                for source, sink, kept in ((client, broker, pair[0]), (broker, client, pair[1])):
                    threading.Thread(target=self._pass_on, args=(source, sink, kept), daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
        with suppress(OSError), closing(source), closing(sink):
            while data := source.recv(1 << 16):
                kept += data
                sink.sendall(data)

    def close(self) -> None:
        self._listener.close()

    def capture(self) -> bytes:
        """Return the recorded bytes as a pcap capture, with one connection after the other."""
        packets: list[Packet] = []
        for number, (asked, answered) in enumerate(self.said):
            client = (CLIENT_HOST, 40_000 + number)
            packets += stream(client, BROKER_PLACE, bytes(asked), size=1000)
            opening, *rest = stream(BROKER_PLACE, client, bytes(answered), size=1000)
            packets += [replace(opening, flags=SYN | ACK), *rest]
        return pcap(timed(packets))


@contextmanager
def recorded() -> Iterator[Recorder]:
    recorder = Recorder()
    with closing(recorder):
        listeners = f"PLAINTEXT://127.0.0.1:{recorder.port}"
        with Broker(config={"advertised.listeners": listeners}, log_retention_ms=-1) as broker:
            recorder.target = int(broker.bootstrap_servers.rpartition(":")[2])
            yield recorder


def test_it_has_what_crossed_the_wire(tmp_path: Path) -> None:
    with recorded() as recorder:
        servers = f"127.0.0.1:{recorder.port}"
        with Producer(servers, config={"compression.type": "gzip"}) as producer:
            for number in range(20):
                producer.send("orders", b'{"n": %d}' % number, key=b"k", headers=[("h", b"1")])
                if number == 9:
                    producer.flush()
            producer.send("others", b"x")
        with Consumer(servers, auto_offset_reset="earliest", group_id="g") as consumer:
            consumer.subscribe(["orders"])
            assert sum(1 for _ in zip(range(20), consumer, strict=False)) == 20
        path = tmp_path / "talk.pcap"
        path.write_bytes(recorder.capture())
        expected = read_topic("orders", servers)

    found = capture_dataset(path, "orders")
    names = [name for name in found.schema.names if name != "timestampType"]
    assert found.to_table(columns=names).to_pylist() == expected.select(names).to_pylist()
    assert capture_dataset(path).count_rows() == 21
    assert capture_dataset(path, port=1).count_rows() == 0
    answer = sql(
        'select count(*) as n, max("offset") as last from wire where n >= 15',
        tables={"wire": capture_dataset(path, "orders", value_format="json")},
    )
    assert answer.to_pylist() == [{"n": 5, "last": 19}]
    assert found.to_table(newest=3, columns=["offset"])["offset"].to_pylist() == [17, 18, 19]
    assert found.head(2).num_rows == 2


def test_what_is_no_capture_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"hello")
    with pytest.raises(DecodeError, match="is no capture"):
        capture_dataset(path).count_rows()
    with pytest.raises(FileNotFoundError):
        capture_dataset(tmp_path / "nothing").count_rows()
    with pytest.raises(ConfigError, match="the name of one topic"):
        capture_dataset(path, 5)  # type: ignore[arg-type]
