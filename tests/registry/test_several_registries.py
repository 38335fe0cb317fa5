"""Tests of several registries on one topic: the elected one writes, the others forward writes to it.

All read the schemas from the topic.
"""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, ClassVar

import pytest

from penstock import Broker
from penstock.errors import ConfigError, KafkaError, NetworkError
from penstock.model import TopicPartition
from penstock.registry import Registry, RegistryClient, RegistryError, Schema
from penstock.registry.server import app, forwarding
from penstock.registry.server import registry as registry_module
from penstock.registry.server.logs import TopicLog
from penstock.registry.server.state import RefusedError
from registry.test_registry import AB, ABC, A, ask

HERE = "127.0.0.1"


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def joined(kafka: str, name: str, **settings: Any) -> Registry:
    """Return a registry whose session timeout is long enough for pauses of a busy machine."""
    settings = {"session_timeout_ms": 30_000, "heartbeat_interval_ms": 100, "advertised": HERE, **settings}
    return Registry(kafka, topic=name, group_id=name, **settings)


def test_writes_go_to_the_elected_one_and_are_read_everywhere(kafka: str) -> None:
    with ExitStack() as stack:
        registries = [stack.enter_context(joined(kafka, "t1")) for _ in range(3)]
        clients = [each.client() for each in registries]
        ids = [client.register(f"s{number}", A) for number, client in enumerate(clients)]
        assert ids == [1, 1, 1]
        assert clients[2].register("s2", AB) == 2
        assert clients[2].versions("s2") == [1, 2]  # whoever forwards, reads what was written
        assert clients[1].schema_by_id(2) == clients[0].schema_by_id(2)  # and what is missing is looked for
        with pytest.raises(RegistryError) as refused:
            clients[1].register("s0", ABC)
        assert refused.value.code == 409
        assert clients[1].delete_subject("s0") == [1]
        assert ask(registries[1], "PUT", "/config/s1", {"compatibility": "NONE"})[0] == 200
        assert ask(registries[1], "GET", "/config/s1")[1]["compatibilityLevel"] == "NONE"
        assert sum(each.is_elected for each in registries) == 1
        gone = next(each for each in registries if each.is_elected)
        others = [each for each in registries if each is not gone]
        gone.stop()
        assert others[0].client().register("after", ABC) == 3
        assert others[1].client().version("after").id == 3


def test_a_name_with_a_slash_arrives_as_it_was_sent(kafka: str) -> None:
    with joined(kafka, "t2") as one, joined(kafka, "t2") as other:
        for number, registry in enumerate((one, other)):
            assert ask(registry, "POST", f"/subjects/a%2F{number}%20%3F/versions", A.as_json())[0] == 200
        assert sorted(other.client().subjects()) == ["a/0 ?", "a/1 ?"]


def test_one_that_may_not_be_elected_reads(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with joined(kafka, "t3", leader_eligibility=False) as reader:
        assert not reader.is_elected
        assert reader.client().subjects() == []
        monkeypatch.setattr(forwarding, "ELECTION_PATIENCE_S", 0.0)
        assert ask(reader, "POST", "/subjects/s/versions", A.as_json()) == (
            500,
            {"error_code": 50004, "message": "No registry is elected to write: try again in some seconds"},
        )
        monkeypatch.undo()
        with joined(kafka, "t3") as writer:
            assert writer.is_elected
            assert reader.client().register("s", A) == 1


def test_users_go_along(kafka: str) -> None:
    users = {"ada": "secret"}
    with joined(kafka, "t4", users=users), joined(kafka, "t4", users=users) as other:
        client = RegistryClient({"url": other.url, "basic.auth.user.info": "ada:secret"})
        assert client.register("s", A) == 1
        with pytest.raises(RegistryError):
            other.client().register("s", AB)


def test_two_of_one_url_are_refused(kafka: str) -> None:
    with joined(kafka, "t5") as one:
        other = joined(kafka, "t5", advertised=one.url.removeprefix("http://"))
        with pytest.raises(ConfigError, match="another registry has the URL"):
            other.start()
        assert one.client().register("s", A) == 1  # once the other has left again


def test_whoever_is_replaced_cannot_write_what_it_has_decided(kafka: str) -> None:
    old = TopicLog(kafka, topic="t6", transactional_id="t6")
    new = TopicLog(kafka, topic="t6", transactional_id="t6")
    fenced = []
    old.on_fenced = lambda: fenced.append(True)
    try:
        with pytest.raises(RefusedError):
            old.ready()
        old.lead()
        term = old.ready()
        version, records = old.state.register("s", A.as_json())
        new.lead()
        # The old one has not noticed, as one that was stopped for a while: its id may have been given out.
        other, others = new.state.register("s", AB.as_json())
        new.write(others, new.ready())
        with pytest.raises(RefusedError, match="No registry is elected"):
            old.write(records, term)
        assert (version.id, other.id, fenced) == (1, 1, [True])
        with pytest.raises(RefusedError, match="No registry is elected"):
            old.ready()
        old.catch_up()
        assert [each.text for each in old.state.ids["."].values()] == [new.state.by_id(1).text]
        new.resign()
        old.lead()
        assert old.state.register("s", A.as_json())[0].id == 2
        with pytest.raises(RefusedError):
            old.write(records, term)  # of a term that is over
    finally:
        old.close()
        new.close()


def test_a_write_whose_outcome_is_unknown_is_cleared_up_before_the_next(kafka: str) -> None:
    log = TopicLog(kafka, topic="t7", transactional_id="t7")
    try:
        log.lead()
        producer = log._producer
        assert producer is not None
        term = log.ready()
        _, records = log.state.register("s", A.as_json())

        def lost(*_: Any, **__: Any) -> Any:
            raise NetworkError("the answer is lost")

        producer.send = lost  # type: ignore[method-assign]
        with pytest.raises(NetworkError):
            log.write(records, term)
        assert log.ready() == term + 1
        version, records = log.state.register("s", AB.as_json())
        log.write(records, log.ready())
        assert log.state.by_id(version.id).text == version.schema.text
    finally:
        log.close()


def test_a_topic_of_transactions_is_read_by_one_that_stands_alone(kafka: str) -> None:
    with joined(kafka, "t8") as one:
        assert one.client().register("s", A) == 1
    with Registry(kafka, topic="t8") as alone:
        assert alone.client().register("s", AB) == 2
    with joined(kafka, "t8") as again:
        assert again.client().register("u", ABC) == 3


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """An HTTP server in place of the elected registry, which records its requests."""

    asked: ClassVar[list[tuple[str, str, Any, bytes]]] = []
    answer: ClassVar[tuple[int, bytes]] = 200, b'{"id": 7}'

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.command, self.path, self.headers, data))
        self.send_response(self.answer[0])
        self.end_headers()
        self.wfile.write(self.answer[1])

    def log_message(self, *_: object) -> None:
        return


def test_what_is_forwarded_and_what_is_answered(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An HTTP server stands in for the elected registry.

    Forwarded requests have the header `X-Forward`, as with Confluent's registry.
    """
    with (
        joined(kafka, "t9") as registry,
        http.server.ThreadingHTTPServer((HERE, 0), Elsewhere) as server,
    ):
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        election = registry._election
        assert election is not None
        election.outcome = forwarding.ElectionOutcome(f"http://{HERE}:{server.server_port}", False)
        try:
            body = json.dumps(A.as_json()).encode()
            path = "/subjects/s/versions?normalize=true"
            assert ask(registry, "POST", path, body, Authorization="x") == (200, {"id": 7})
            (asked,) = Elsewhere.asked
            assert (asked[0], asked[1], asked[3]) == ("POST", path, body)
            assert (asked[2]["X-Forward"], asked[2]["Authorization"]) == ("true", None)
            Elsewhere.answer = 409, b'{"error_code": 409, "message": "no"}'
            assert ask(registry, "POST", path, body) == (409, {"error_code": 409, "message": "no"})
            status, answer = ask(registry, "POST", path, body, **{"X-Forward": "true"})
            assert (status, answer["error_code"]) == (500, 50004)
        finally:
            server.shutdown()
            thread.join()
        server.server_close()
        monkeypatch.setattr(app, "ELECTION_PATIENCE_S", 0.0)
        status, answer = ask(registry, "POST", path, body)
        assert (status, answer["error_code"]) == (500, 50003)
        assert ask(registry, "GET", "/subjects") == (200, [])  # reads need nobody


def test_one_that_is_stopped_lets_no_write_wait_for_an_election(kafka: str) -> None:
    answers = []
    with joined(kafka, "t12", leader_eligibility=False) as reader:
        forwarder = reader._forwarder
        assert forwarder is not None
        path = "/subjects/s/versions"
        waiting = threading.Thread(target=lambda: answers.append(ask(reader, "POST", path, A.as_json())))
        waiting.start()
        while forwarder._under_way == 0:
            time.sleep(0.005)
        forwarder.stop()
        waiting.join()
    assert [(status, answer["error_code"]) for status, answer in answers] == [(500, 50004)]


def test_a_write_under_way_at_one_that_is_stopped_has_an_answer(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The elected registry never responds.

    The stopped registry does not wait for it, and still sends its client an error code.
    """
    monkeypatch.setattr(registry_module, "STOP_PATIENCE_S", 0.2)
    arrived, answers = threading.Event(), []
    with socket.create_server((HERE, 0)) as listener, ExitStack() as stack:

        def silent() -> None:
            connection = stack.enter_context(listener.accept()[0])
            connection.recv(1)
            arrived.set()

        reader = joined(kafka, "t13").start()
        election = reader._election
        assert election is not None
        election.outcome = forwarding.ElectionOutcome(f"http://{HERE}:{listener.getsockname()[1]}", False)
        threads = [
            threading.Thread(target=silent),
            threading.Thread(
                target=lambda: answers.append(ask(reader, "POST", "/subjects/s/versions", A.as_json()))
            ),
        ]
        for thread in threads:
            thread.start()
        arrived.wait()
        reader.stop()
        for thread in threads:
            thread.join()
    assert [(status, answer["error_code"]) for status, answer in answers] == [(500, 50004)]


@pytest.mark.parametrize(
    "address", ["", "a:b:c", "http://a:1", "a:0", "a:99999", "me@a:1", "a/b"], ids=lambda each: repr(each)
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="advertised is"):
        Registry("k:1", advertised=address)


def test_what_is_wrong_says_so(kafka: str) -> None:
    with pytest.raises(ConfigError, match="bootstrap_servers too"):
        Registry(advertised="a")
    with pytest.raises(ConfigError, match="session_timeout_ms 5"):
        Registry(kafka, advertised="a", session_timeout_ms=5)
    with pytest.raises(ConfigError, match="certificates of authorities"):
        joined(kafka, "t10", ca="/nowhere").start()
    with pytest.raises(KafkaError, match="session timeout"):
        joined(kafka, "t10", session_timeout_ms=100_000_000).start()


def test_records_are_those_of_confluents_registry(kafka: str) -> None:
    from penstock import Consumer

    with joined(kafka, "t11") as registry:
        registry.client().register("s", Schema('"string"'))
    with Consumer(kafka, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("t11", 0)])
        (record,) = consumer.poll(10_000)
    assert json.loads(record.key) == {"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1}
    assert json.loads(record.value) == {
        "subject": "s",
        "version": 1,
        "id": 1,
        "schema": '"string"',
        "deleted": False,
    }


def test_one_that_stands_alone_decides_after_all_that_was_written_before(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = TopicLog(kafka, topic="t9"), TopicLog(kafka, topic="t9")
    try:
        poll, is_late = other._consumer.poll, threading.Event()

        def late(*given: Any) -> Any:
            is_late.set()
            found = poll(*given)
            time.sleep(0.3)
            return found

        monkeypatch.setattr(other._consumer, "poll", late)
        assert is_late.wait(10)
        _, records = one.state.register("s", A.as_json())
        one.write(records, one.ready())
        term = other.ready()
        version, records = other.state.register("u", AB.as_json())
        assert version.id == 2
        other.write(records, term)
        assert other.state.by_id(1).text == one.state.by_id(1).text
    finally:
        one.close()
        other.close()
