"""Tests of the schema registry, through Penstock's client and over HTTP.

They cover versions, ids, compatibility levels, modes, deletions and contexts.
"""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Broker, read_topic
from penstock.errors import ConfigError, NetworkError
from penstock.registry import Reference, Registry, RegistryClient, RegistryError, Schema
from penstock.registry.server.state import RegistryState


def record(*fields: Any, name: str = "R") -> str:
    made = [
        {"name": each[0], "type": each[1], **({"default": each[2]} if len(each) > 2 else {})}
        for each in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": made})


A = Schema(record(("a", "int")))
AB = Schema(record(("a", "int"), ("b", "string", "")))
ABC = Schema(record(("a", "int"), ("c", "string")))


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


def ask(registry: Registry, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    parts = urllib.parse.urlsplit(registry.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_versions_and_ids(registry: Registry) -> None:
    client = registry.client()
    assert client.register("t-value", A) == 1
    assert client.register("t-value", AB) == 2
    assert client.register("t-value", A) == 1
    assert client.register("other", AB) == 2
    assert client.versions("t-value") == [1, 2]
    assert client.subjects() == ["other", "t-value"]
    assert client.subjects("t-") == ["t-value"]
    latest = client.version("t-value")
    assert (latest.version, latest.id) == (2, 2)
    assert json.loads(latest.schema.text) == json.loads(AB.text)
    assert client.schema_by_guid(str(latest.guid)) == latest.schema
    assert client.lookup("t-value", A).version == 1
    assert ask(registry, "GET", "/schemas/ids/2/subjects") == (200, ["other", "t-value"])
    assert ask(registry, "GET", "/schemas/ids/2/versions") == (
        200,
        [{"subject": "other", "version": 1}, {"subject": "t-value", "version": 2}],
    )
    assert ask(registry, "GET", "/subjects/t-value/versions/1/schema") == (200, json.loads(A.text))


REFUSALS = [
    ("GET", "/subjects/x/versions", None, 404, 40401, "Subject 'x' not found."),
    ("GET", "/subjects/t/versions/9", None, 404, 40402, "Version 9 not found."),
    ("GET", "/subjects/t/versions/zero", None, 422, 42202, "not a valid version id"),
    ("GET", "/schemas/ids/9", None, 404, 40403, "Schema 9 not found"),
    ("GET", "/schemas/ids/x", None, 404, 40403, "not found"),
    ("GET", "/schemas/guids/x", None, 404, 40403, "not found"),
    ("POST", "/subjects/t/versions", {"schema": "{"}, 422, 42201, "no JSON"),
    ("POST", "/subjects/t/versions", {"schema": ""}, 422, 42201, "Empty schema"),
    (
        "POST",
        "/subjects/t/versions",
        {"schema": "{}", "schemaType": "XML"},
        422,
        42201,
        "Invalid schema type XML",
    ),
    ("POST", "/subjects/t/versions", {"schema": ABC.text}, 409, 409, "READER_FIELD_MISSING_DEFAULT_VALUE"),
    ("POST", "/subjects/t", {"schema": ABC.text}, 404, 40403, "Schema not found"),
    ("POST", "/subjects/x", {"schema": ABC.text}, 404, 40401, "Subject 'x' not found."),
    ("POST", "/subjects/t/versions", b"nonsense", 400, 400, "JSON"),
    ("POST", "/subjects/t/versions", b"[1]", 422, 422, "object"),
    ("POST", "/subjects/t/versions", b" " * (9 << 20), 413, 413, "bytes"),
    ("PUT", "/config", {"compatibility": "UPWARD"}, 422, 42203, "Invalid compatibility level"),
    ("GET", "/config/t", None, 404, 40408, "does not have subject-level"),
    ("PUT", "/mode", {"mode": "WRITE"}, 422, 42204, "Invalid mode"),
    ("GET", "/mode/t", None, 404, 40409, "does not have subject-level"),
    ("DELETE", "/subjects/x", None, 404, 40401, "not found"),
    ("DELETE", "/subjects/t?permanent=true", None, 404, 40405, "was not deleted first"),
    ("DELETE", "/subjects/t/versions/1?permanent=true", None, 404, 40407, "was not deleted first"),
    ("GET", "/nowhere", None, 404, 404, "Not Found"),
    ("PATCH", "/config", {}, 405, 405, "Not Allowed"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=[f"{each[0]} {each[1]} {each[4]}" for each in REFUSALS])
def test_refusals_are_those_of_confluent(registry: Registry, case: Any) -> None:
    method, path, body, status, code, message = case
    registry.client().register("t", A)
    found, answer = ask(registry, method, path, body)
    assert (found, answer["error_code"]) == (status, code)
    assert message in answer["message"]


def test_deletions_are_soft_first(registry: Registry) -> None:
    client = registry.client()
    client.register("t", A)
    client.register("t", AB)
    assert ask(registry, "DELETE", "/subjects/t/versions/1") == (200, 1)
    assert client.versions("t") == [2]
    assert ask(registry, "GET", "/subjects/t/versions?deleted=true") == (200, [1, 2])
    assert client.delete_subject("t") == [2]
    assert client.subjects() == []
    assert client.subjects(deleted=True) == ["t"]
    status, answer = ask(registry, "DELETE", "/subjects/t")
    assert (status, answer["error_code"]) == (404, 40404)
    assert client.schema_by_id(1) is not None
    assert client.delete_subject("t", permanent=True) == [1, 2]
    assert client.subjects(deleted=True) == []
    for number in (1, 2):
        assert ask(registry, "GET", f"/schemas/ids/{number}")[0] == 404
    assert client.register("t", A) == 3


LEVEL_CASES = {
    # level: whether (a field with a default is added, one is removed that had none, one without is added)
    "NONE": (True, True, True),
    "BACKWARD": (True, True, False),
    "FORWARD": (True, False, True),
    "FULL": (True, False, False),
    "BACKWARD_TRANSITIVE": (True, True, False),
    "FORWARD_TRANSITIVE": (True, False, True),
    "FULL_TRANSITIVE": (True, False, False),
}


@pytest.mark.parametrize("level", LEVEL_CASES)
def test_levels(registry: Registry, level: str) -> None:
    client = registry.client()
    client.register("t", A)
    client.set_compatibility(level, "t")
    assert client.compatibility("t") == level
    assert client.compatibility() == "BACKWARD"
    changes = (AB, Schema(record()), ABC)
    found = [client.is_compatible("t", each) for each in changes]
    assert tuple(is_compatible for is_compatible, _ in found) == LEVEL_CASES[level]
    for (is_compatible, messages), change in zip(found, changes, strict=True):
        assert bool(messages) is not is_compatible
        if not is_compatible:
            with pytest.raises(RegistryError) as refused:
                client.register("t", change)
            assert refused.value.code == 409


def test_transitive_levels_look_at_all_versions(registry: Registry) -> None:
    client = registry.client()
    steps = [Schema(record(("a", "int"))), Schema(record()), Schema(record(("a", "string", "")))]
    for each in steps[:2]:
        client.register("t", each)
    assert client.is_compatible("t", steps[2])[0]
    client.set_compatibility("BACKWARD_TRANSITIVE", "t")
    path = "/compatibility/subjects/t/versions?verbose=true"
    status, answer = ask(registry, "POST", path, steps[2].as_json())
    assert status == 200
    assert not answer["is_compatible"]
    assert any("TYPE_MISMATCH" in each for each in answer["messages"])
    assert "{oldSchemaVersion: 1}" in answer["messages"]


def test_modes(registry: Registry) -> None:
    client = registry.client()
    client.register("t", A)
    assert ask(registry, "PUT", "/mode/t", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
    with pytest.raises(RegistryError, match="read-only mode"):
        client.register("t", AB)
    assert client.register("t", A) == 1
    assert ask(registry, "DELETE", "/mode/t") == (200, {"mode": "READONLY"})
    assert client.register("t", AB) == 2
    status, answer = ask(registry, "PUT", "/mode", {"mode": "IMPORT"})
    assert (status, answer["error_code"]) == (422, 42205)
    assert ask(registry, "PUT", "/mode/new", {"mode": "IMPORT"})[0] == 200
    body = {**ABC.as_json(), "id": 77, "version": 5}
    assert ask(registry, "POST", "/subjects/new/versions", body)[1]["id"] == 77
    assert client.version("new", 5).id == 77
    assert client.schema_by_id(77) == client.version("new").schema


def test_contexts_have_ids_of_their_own(registry: Registry) -> None:
    client = registry.client()
    client.register("t", A)
    assert client.register(":.team:t", AB) == 1
    assert ask(registry, "GET", "/contexts") == (200, [".", ".team"])
    status, answer = ask(registry, "GET", "/schemas/ids/1?subject=:.team:t")
    assert (status, json.loads(answer["schema"])) == (200, json.loads(AB.text))


def test_references(registry: Registry) -> None:
    client = registry.client()
    outer = record(("to", "Address"), name="Order")
    with pytest.raises(RegistryError, match="no schema reference found"):
        client.register("order", Schema(outer, references=(Reference("Address", "address", 1),)))
    client.register("address", Schema(record(("city", "string"), name="Address")))
    schema = Schema(outer, references=(Reference("Address", "address", 1),))
    number = client.register("order", schema)
    assert list(client.referenced(client.schema_by_id(number))) == ["Address"]
    assert ask(registry, "GET", "/subjects/address/versions/1/referencedby") == (200, [number])
    status, answer = ask(registry, "DELETE", "/subjects/address")
    assert (status, answer["error_code"]) == (422, 42206)


PROTO = """syntax = "proto3";
package p;

message A {
  int32 x = 1;
  oneof o {
    string s = 2;
    B b = 3;
  }
  map<string, B> m = 4;
}
message B {
  optional bool y = 1;
}
"""


def test_protobuf_and_json(registry: Registry) -> None:
    client = registry.client()
    number = client.register("p", Schema(PROTO, "PROTOBUF"))
    status, answer = ask(registry, "GET", f"/schemas/ids/{number}?format=serialized")
    assert status == 200
    assert answer["schemaType"] == "PROTOBUF"
    # The descriptor, the text and what the registry prints are one schema.
    for text in (answer["schema"], PROTO, client.schema_by_id(number).text):
        assert client.register("p", Schema(text, "PROTOBUF")) == number
    is_compatible, messages = client.is_compatible(
        "p", Schema(PROTO.replace("int32 x", "string x"), "PROTOBUF")
    )
    assert not is_compatible
    assert "FIELD_SCALAR_KIND_CHANGED" in messages[0]
    assert client.is_compatible("p", Schema(PROTO.replace("int32 x", "int64 x"), "PROTOBUF"))[0]
    assert "MESSAGE_REMOVED" in str(client.is_compatible("p", Schema("message Z { }", "PROTOBUF"))[1])
    assert not client.is_compatible("p", A)[0]
    closed = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    client.register("j", Schema(json.dumps(closed), "JSON"))
    wider = {**closed, "properties": {"a": {"type": "number"}, "b": {"type": "string"}}}
    assert client.is_compatible("j", Schema(json.dumps(wider), "JSON")) == (True, [])
    for change, problem in (
        ({**closed, "properties": {"a": {"type": "string"}}}, "TYPE_CHANGED"),
        ({**closed, "required": ["a"]}, "REQUIRED_ATTRIBUTE_ADDED"),
        ({**closed, "properties": {}}, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
        ({**closed, "properties": {"a": {"type": "integer", "maximum": 5}}}, "MAXIMUM_ADDED"),
    ):
        is_compatible, messages = client.is_compatible("j", Schema(json.dumps(change), "JSON"))
        assert not is_compatible
        assert problem in str(messages)


def test_a_schema_that_holds_itself_is_compared(registry: Registry) -> None:
    client = registry.client()
    node = record(("v", "int"), ("next", ["null", "Node"], None), name="Node")
    client.register("t", Schema(node))
    assert client.is_compatible(
        "t", Schema(record(("v", "long"), ("next", ["null", "Node"], None), name="Node"))
    )[0]


def test_users(registry: Registry) -> None:
    with Registry(users={"ada": "secret"}) as guarded:
        assert guarded.client(**{"basic.auth.user.info": "ada:secret"}).subjects() == []
        for settings in ({}, {"basic.auth.user.info": "ada:wrong"}, {"bearer.auth.token": "x"}):
            with pytest.raises(RegistryError) as refused:
                guarded.client(**settings).subjects()
            assert refused.value.status == 401


def test_schemas_are_kept_in_a_topic_in_confluents_records() -> None:
    with Broker() as broker:
        with Registry(broker.bootstrap_servers) as registry:
            client = registry.client()
            client.register("t-value", A)
            client.register("t-value", AB)
            client.register("p", Schema(PROTO, "PROTOBUF"))
            client.set_compatibility("FULL", "t-value")
            client.delete_subject("p")
        rows = read_topic("_schemas", broker.bootstrap_servers).to_pylist()
        keys = [json.loads(row["key"]) for row in rows]
        assert keys[0] == {"keytype": "SCHEMA", "subject": "t-value", "version": 1, "magic": 1}
        assert [each["keytype"] for each in keys] == [
            "SCHEMA",
            "SCHEMA",
            "SCHEMA",
            "CONFIG",
            "DELETE_SUBJECT",
        ]
        first = json.loads(rows[0]["value"])
        assert first.keys() == {"subject", "version", "id", "schema", "deleted"}
        with Registry(broker.bootstrap_servers) as again:
            client = again.client()
            assert client.subjects() == ["t-value"]
            assert client.subjects(deleted=True) == ["p", "t-value"]
            assert client.compatibility("t-value") == "FULL"
            assert client.register("t-value", AB) == 2


def test_a_registry_follows_what_another_one_writes_and_passes_over_what_is_none() -> None:
    from penstock import Producer

    with Broker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            for key, value in (
                (b"junk", b"x"),
                (None, None),
                (b'{"keytype":"NOOP","magic":0}', None),
                (b"{}", b"["),
            ):
                producer.send("_schemas", value, key=key, partition=0).result(timeout=10)
        with Registry(broker.bootstrap_servers) as one, Registry(broker.bootstrap_servers) as other:
            one.client().register("t", A)
            other.client().register("u", AB)
            assert other.client().version("t").id == 1
            assert other.client().version("u").id == 2


def test_what_cannot_start_says_why(registry: Registry) -> None:
    port = int(registry.url.rpartition(":")[2])
    with pytest.raises(NetworkError, match=f"cannot listen on 127.0.0.1:{port}"):
        Registry(port=port).start()
    with pytest.raises(ConfigError, match="not been started"):
        _ = Registry().url
    with pytest.raises(ConfigError, match="give both"):
        Registry(key="x")


def test_a_client_tries_the_next_url_and_a_new_connection(registry: Registry) -> None:
    client = RegistryClient(f"http://127.0.0.1:1,{registry.url}")
    assert client.register("t", A) == 1
    assert client.subjects() == ["t"]
    with pytest.raises(NetworkError, match="no schema registry answers"):
        RegistryClient("http://127.0.0.1:1").subjects()
    with pytest.raises(ConfigError, match="no setting"):
        RegistryClient({"url": registry.url, "uri": "x"})
    with pytest.raises(ConfigError, match="begins with http"):
        RegistryClient("localhost:8081")


def test_tls(tmp_path: Path) -> None:
    from security_certificates import self_signed

    pair = self_signed("127.0.0.1", ("127.0.0.1", "localhost"))
    certificate, key = pair.write(tmp_path, "registry")
    with Registry(certificate=certificate, key=key) as guarded:
        assert guarded.url.startswith("https://")
        assert guarded.client(**{"ssl.ca.location": certificate}).register("t", A) == 1
        with pytest.raises(NetworkError, match="certificate"):
            guarded.client().subjects()
    with pytest.raises(ConfigError, match="certificates"):
        RegistryClient({"url": "https://localhost", "ssl.ca.location": str(tmp_path / "none.pem")})


def test_schemas_of_another_registry_are_the_same_however_they_are_printed() -> None:
    state = RegistryState()
    texts = {
        "AVRO": (A.text.replace('"name": "R"', '"name"  :  "R"'), A.text),
        "PROTOBUF": (
            'syntax = "proto3";\n\n// A comment.\nmessage Z { int32 x=1; }',
            "syntax = 'proto3'; message Z { int32 x = 1; }",
        ),
    }
    for number, (kind, (theirs, ours)) in enumerate(texts.items(), 1):
        key = {"keytype": "SCHEMA", "subject": kind, "version": 1, "magic": 1}
        state.apply(key, {"subject": kind, "version": 1, "id": number, "schemaType": kind, "schema": theirs})
        version, records = state.register(kind, {"schema": ours, "schemaType": kind})
        assert (version.id, version.schema.text, records) == (number, theirs, [])
        assert state.register("other", {"schema": ours, "schemaType": kind})[0].id == number
