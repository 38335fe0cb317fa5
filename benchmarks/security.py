"""Measure the cost of TLS, handshakes and ACLs, compared with Apache Kafka and librdkafka.

Both brokers run at the same time, each with a listener of every kind, the same EC certificate, and an
authorizer. CPU is user and system time: the broker's where brokers are compared, the client's where clients
are. ``--base DIR`` only compares plaintext with an older Penstock, whose work tree is in DIR. ``--alone``
leaves out Apache Kafka. Compare figures of one run only.
"""

from __future__ import annotations

import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import broker
from broker_sides import API_VERSIONS, Side, kafka_side, penstock_side, receive
from compat.peers import free_ports  # broker_sides has put tests/ on the path
from harness import arguments, print_table
from penstock import Admin, scan_topic, write_topic
from penstock.protocol.api import API_TABLE
from penstock.protocol.framing import decode_response, encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.security.acls import parse_rule
from penstock.security.scram import ScramClient
from security_certificates import authority, issue

PASSWORD = "bench-password"
ACLS = 1_000
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
VERSIONS = {"TLS 1.2": ssl.TLSVersion.TLSv1_2, "TLS 1.3": ssl.TLSVersion.TLSv1_3}


class Secured:
    """A broker with a listener for each security protocol, and the client settings for them."""

    def __init__(self, side: Side, ports: Sequence[int], ca: str) -> None:
        self.side = side
        self.name = side.name
        self.ports = dict(zip(PROTOCOLS, ports, strict=True))
        self.ca = ca

    def settings(self, protocol: str, user: str = "ann") -> dict[str, object]:
        """Return client settings for a security protocol, which librdkafka and Penstock both accept."""
        found: dict[str, object] = {
            "bootstrap.servers": f"127.0.0.1:{self.ports[protocol]}",
            "security.protocol": protocol,
        }
        if protocol.endswith("SSL"):
            found["ssl.ca.location"] = self.ca
        if protocol.startswith("SASL"):
            found |= {
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": user,
                "sasl.password": PASSWORD,
            }
        return found


def stores(directory: Path) -> None:
    """Write the files of a CA and of the server certificate that both brokers use."""
    trusted = authority()
    server = issue(trusted)
    (directory / "ca.pem").write_text(trusted.certificate_pem)
    (directory / "server.pem").write_text(server.key_pem + server.certificate_pem)


def settings_of(directory: Path, ports: Sequence[int]) -> dict[str, object]:
    """Return broker settings that Penstock and Apache Kafka both accept."""
    pairs = zip(PROTOCOLS, ports, strict=True)
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in pairs),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": directory / "server.pem",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:ann",
    }


def _with_users(side: Secured) -> Secured:
    with Admin(config=side.settings("PLAINTEXT")) as admin:
        for user in ("ann", "bob"):
            admin.set_password(user, PASSWORD, ["SCRAM-SHA-256"])
    return side


@contextmanager
def secured_penstock(directory: Path) -> Iterator[Secured]:
    ports = free_ports(len(PROTOCOLS))
    path = directory / "penstock.properties"
    path.write_text("".join(f"{k}={v}\n" for k, v in settings_of(directory, ports).items()))
    with penstock_side("--config-file", str(path)) as side:
        yield _with_users(Secured(side, ports, str(directory / "ca.pem")))


@contextmanager
def secured_kafka(directory: Path) -> Iterator[Secured]:
    *ports, controller = free_ports(len(PROTOCOLS) + 1)
    settings = settings_of(directory, ports)
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    settings |= {
        "advertised.listeners": settings["listeners"],
        "listeners": f"{settings['listeners']},CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,"
        + ",".join(f"{name}:{name}" for name in PROTOCOLS),
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": module,
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": module,
    }
    with kafka_side(settings, plain_port=ports[0]) as side:
        yield _with_users(Secured(side, ports, str(directory / "ca.pem")))


def bulk(sides: Sequence[Secured], total_bytes: float, rounds: int) -> None:
    """Measure librdkafka writing and reading 1 KB records, plaintext and with TLS.

    Prints the CPU of the broker and of librdkafka.
    """
    size = 1_000
    count = int(total_bytes / size)
    found: dict[tuple[str, str, str], list[tuple[float, float, float]]] = {}
    for protocol in ("PLAINTEXT", "SSL"):
        for each in sides:
            each.side.create(f"bulk{size}{protocol}", broker.PARTITIONS)
    for turn in range(rounds + 1):
        for protocol in ("PLAINTEXT", "SSL"):
            for each in sides:
                broker.recycle(3 * count * size)
                first = turn * (count // broker.PARTITIONS)
                for way in ("in", "out"):
                    figures = moved_by_librdkafka(each, protocol, way, size, count, first)
                    if turn:
                        found.setdefault((way, protocol, each.name), []).append(figures)
    rows = []
    for (way, protocol, name), figures in sorted(found.items()):
        rate, cpu, client = map(statistics.median, zip(*figures, strict=True))
        gigabytes = count * size / 1e9
        row = f"{rate * size / 1e6:,.0f}", f"{cpu / gigabytes:.2f}", f"{client / gigabytes:.2f}"
        rows.append((f"{way}, {protocol}, {name}", *row))
    head = ("", "MB/s", "broker's CPU s/GB", "librdkafka's CPU s/GB")
    print_table("Bulk with librdkafka, 1 KB, acks=all, 4 partitions", head, rows)


def moved_by_librdkafka(
    each: Secured, protocol: str, way: str, size: int, count: int, first: int
) -> tuple[float, float, float]:
    """Return records/s, the broker's CPU seconds and librdkafka's, for writing or reading a topic."""
    side = Side(each.name, each.side.pid, each.ports[protocol], 0)
    own = time.process_time()
    move = broker.write_bulk if way == "in" else broker.read_bulk
    more = each.settings(protocol)
    arguments_ = (side, size, count) if way == "in" else (side, size, count, first)
    rate, cpu = move(*arguments_, topic=f"bulk{size}{protocol}", more=more)  # type: ignore[operator]
    return rate, cpu, time.process_time() - own


def clients(side: Secured, total_bytes: float, rounds: int) -> None:
    """Measure the CPU of Penstock's client and librdkafka at Penstock's broker, plaintext and with TLS."""
    import pyarrow as pa

    size = 1_000
    count = int(total_bytes / size)
    table = pa.table(
        {"value": [b"v" * size] * count, "partition": [index % broker.PARTITIONS for index in range(count)]},
        schema=pa.schema([("value", pa.binary()), ("partition", pa.int32())]),
    )
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for turn in range(rounds + 1):
        for protocol in ("PLAINTEXT", "SSL"):
            settings, topic = side.settings(protocol), f"client{protocol}{turn}"
            server = str(settings.pop("bootstrap.servers"))
            side.side.create(topic, broker.PARTITIONS)

            def write(topic: str = topic, server: str = server, config: object = settings) -> None:
                write_topic(table, topic, server, config=config)  # type: ignore[arg-type]

            def read(topic: str = topic, server: str = server, config: object = settings) -> None:
                batches = scan_topic(topic, server, columns=["value"], config=config)  # type: ignore[arg-type]
                assert sum(each.num_rows for each in batches) >= count

            for way, ours in (("in", write), ("out", read)):
                broker.recycle(2 * count * size)
                own, begin = time.process_time(), time.perf_counter()
                ours()
                figures = count / (time.perf_counter() - begin), time.process_time() - own
                rate, _, cpu = moved_by_librdkafka_at(side, protocol, way, size, count, topic)
                if turn:
                    found.setdefault((way, protocol, "Penstock's client"), []).append(figures)
                    found.setdefault((way, protocol, "librdkafka"), []).append((rate, cpu))
    rows = []
    for (way, protocol, name), figures in sorted(found.items()):
        rate, cpu = map(statistics.median, zip(*figures, strict=True))
        rows.append(
            (f"{way}, {protocol}, {name}", f"{rate * size / 1e6:,.0f}", f"{cpu / count / size * 1e9:.2f}")
        )
    print_table("Clients at our broker, 1 KB, tables and rows", ("", "MB/s", "client's CPU s/GB"), rows)


def moved_by_librdkafka_at(
    each: Secured, protocol: str, way: str, size: int, count: int, topic: str
) -> tuple[float, float, float]:
    """Measure librdkafka in the topic of Penstock's client: appending to it, or reading it from the start."""
    side = Side(each.name, each.side.pid, each.ports[protocol], 0)
    own, more = time.process_time(), each.settings(protocol)
    if way == "in":
        rate, cpu = broker.write_bulk(side, size, count, topic=topic, more=more)
    else:
        rate, cpu = broker.read_bulk(side, size, count, 0, topic=topic, more=more)
    return rate, cpu, time.process_time() - own


def handshakes(sides: Sequence[Secured], count: int, rounds: int) -> None:
    """Measure new connections, one after another: TLS, and TLS with a SCRAM login.

    A connection is timed until its first response.
    """
    rows = []
    attempts: dict[str, Callable[[Secured], None]] = {
        **{name: _encrypted(version) for name, version in VERSIONS.items()},
        "TLS 1.3 and SCRAM-SHA-256": _logged_in,
    }
    for what, attempt in attempts.items():
        found: dict[str, list[tuple[float, float]]] = {each.name: [] for each in sides}
        for turn in range(rounds + 1):
            for each in sides:
                cpu, begin = each.side.cpu_seconds, time.perf_counter()
                for _ in range(count):
                    attempt(each)
                seconds = time.perf_counter() - begin
                if turn:
                    found[each.name].append((count / seconds, (each.side.cpu_seconds - cpu) / count))
        for who, figures in found.items():
            rate, cpu = map(statistics.median, zip(*figures, strict=True))
            rows.append((f"{what}, {who}", f"{rate:,.0f}", f"{cpu * 1e6:,.0f}"))
    head = ("", "a second", "broker's CPU µs")
    print_table("New connections, one after another, up to an answered ApiVersions", head, rows)


def _encrypted(version: ssl.TLSVersion) -> Callable[[Secured], None]:
    context = ssl._create_unverified_context()
    context.minimum_version = context.maximum_version = version

    def attempt(each: Secured) -> None:
        with context.wrap_socket(connect(each, "SSL")) as tls:
            tls.sendall(API_VERSIONS)
            receive(tls)

    return attempt


def _logged_in(each: Secured) -> None:
    context = ssl._create_unverified_context()
    with context.wrap_socket(connect(each, "SASL_SSL")) as tls:
        log_in(tls, "ann")
        tls.sendall(API_VERSIONS)
        receive(tls)


def connect(each: Secured, protocol: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", each.ports[protocol]))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def log_in(connection: socket.socket, user: str) -> None:
    """Authenticate a connection by SCRAM."""

    def ask(request: Message, version: int) -> Any:
        connection.sendall(b"".join(map(bytes, encode_request(request, version, 1, "bench"))))
        assert request.API_KEY is not None
        answer = decode_response(receive(connection), API_TABLE[request.API_KEY].response, version)[1]
        assert not answer.error_code, answer
        return answer

    scram = ScramClient("SCRAM-SHA-256", user, PASSWORD)
    ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
    challenge = ask(SaslAuthenticateRequest(auth_bytes=scram.first()), 1).auth_bytes
    ask(SaslAuthenticateRequest(auth_bytes=scram.final(challenge)), 1)


class Authenticated(Side):
    """A measured broker whose new connections authenticate as a user."""

    def __init__(self, secured: Secured, user: str) -> None:
        super().__init__(secured.name, secured.side.pid, secured.ports["SASL_PLAINTEXT"], 0)
        self._secured = secured
        self._user = user

    def connect(self) -> socket.socket:
        connection = connect(self._secured, "SASL_PLAINTEXT")
        log_in(connection, self._user)
        return connection


def access(sides: Sequence[Secured], seconds: float, rounds: int) -> None:
    """Measure one-record requests of a super user, and of a user that needs ACLs, with few and many ACLs."""
    for each in sides:
        each.side.create("one", broker.CONNECTIONS)
    rows: list[tuple[str, ...]] = []
    few = list(parse_rule("allow bob write,read,describe topic:one"))
    others = [f"allow u{n} read topic:{('one', 'on*', 'o*', f'other{n}')[n % 4]}" for n in range(ACLS)]
    many = [rule for text in others for rule in parse_rule(text)]
    for what, user, rules in (
        ("a super user", "ann", []),
        ("a user, 3 rules", "bob", few),
        (f"a user, {ACLS + 3:,} rules", "bob", many),
    ):
        for each in sides:
            with Admin(config=each.settings("PLAINTEXT")) as admin:
                for position in range(0, len(rules), 200):
                    admin.create_acls(rules[position : position + 200])
        time.sleep(0.5)
        for name, frame in (("Produce", broker.produce_frame), ("Fetch", broker.fetch_frame)):
            found: dict[str, list[tuple[float, float]]] = {each.name: [] for each in sides}
            for turn in range(rounds + 1):
                for each in sides:
                    figures = broker.hammer(Authenticated(each, user), frame, 1, seconds)
                    if turn:
                        found[each.name].append(figures)
            for who, both in found.items():
                rate, cpu = map(statistics.median, zip(*both, strict=True))
                rows.append((f"{name}, {what}, {who}", f"{rate:,.0f}", f"{cpu * 1e6:.1f}"))
    head = ("", "requests/s", "CPU µs/request")
    print_table("One-record requests, 16 connections with SASL, an authorizer", head, sorted(rows))


def plaintext(base: Path, seconds: float, total_bytes: float, rounds: int) -> None:
    """Compare plaintext connections of this version and of an older work tree, in turn."""
    with penstock_side() as now, penstock_side(source=base) as before:
        broker.one_record([now, before], seconds, rounds)
        broker.bulk([now, before], total_bytes, rounds)


def main() -> None:
    base = None
    if "--base" in sys.argv:
        position = sys.argv.index("--base")
        base = Path(sys.argv[position + 1]).resolve()
        del sys.argv[position : position + 2]
    alone = "--alone" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--alone"]
    options = arguments("Security", rounds=5, quick_rounds=1)
    rounds, quick = options.rounds, options.quick
    if base is not None:
        plaintext(base, 1.0 if quick else 3.0, 1e8 if quick else 6e8, rounds)
        return
    with tempfile.TemporaryDirectory(prefix="security-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        stores(directory)
        sides = [stack.enter_context(secured_penstock(directory))]
        if not alone and broker.has_java():
            sides.append(stack.enter_context(secured_kafka(directory)))
        handshakes(sides, 50 if quick else 300, rounds)
        access(sides, 0.5 if quick else 2.0, rounds)
        bulk(sides, 1e8 if quick else 4e8, rounds)
        clients(sides[0], 1e8 if quick else 4e8, rounds)


if __name__ == "__main__":
    main()
