"""Tests of `penstock wire`, `schema` and `event` on files of unknown origin: each reports what is wrong.

No file may cause a traceback or the message for an unexpected error, or run code.
"""

from __future__ import annotations

import io
import json
import random
import struct
import sys
from pathlib import Path

import pytest

from explorer import captures
from explorer.test_conversation import REQUESTS, packets
from penstock.cli import main
from penstock.cloudevents import Event, write_events
from penstock.protocol.schema.loader import definitions_directory

METADATA = {
    "name": "MetadataRequest", "version": 12,
    "json": {"topics": None, "allowAutoTopicCreation": True, "includeTopicAuthorizedOperations": False},
}  # fmt: skip


def metadata(**more: object) -> bytes:
    return json.dumps({**METADATA, **more}).encode()


EVENT = b'{"specversion":"1.0","id":"1","source":"/s","type":"t",'
PCAP = b"\xd4\xc3\xb2\xa1" + b"\0" * 16 + b"\1\0\0\0"

HOSTILE = {
    "lists": b"[" * 100_000,
    "closed lists": b"[" * 50_000 + b"]" * 50_000,
    "objects": b'{"a":' * 100_000,
    "nothing": b"",
    "zeros": bytes(100),
    "ones": b"\xff" * 100,
    "latin-1": b'"\xe9"',
    "byte order mark": b"\xef\xbb\xbf{}",
    "a number": b"7",
    "null": b"null",
    "digits": b"1" * 5000,
    "surrogate name": b'{"name":"\\ud800","version":1,"json":{}}',
    "surrogate value": metadata(
        json={**METADATA["json"], "topics": [{"topicId": "A" * 22, "name": "\ud800"}]}
    ),  # type: ignore[dict-item]
    "long number": b'{"name":"MetadataRequest","version":' + b"9" * 5000 + b',"json":{}}',
    "infinity": b'{"name":"MetadataRequest","version":1e400,"json":{}}',
    "list for a name": b'{"name":["a"],"version":1,"json":{}}',
    "object for a name": b'{"name":{},"version":1,"json":{}}',
    "tags of a class": metadata(unknownTags={"__class__": {"1": "00"}}),
    "tags of a method": metadata(unknownTags={"encode": {"1": "00"}}),
    "tags of nothing": metadata(unknownTags={"topics[999]": {"1": "00"}}),
    "tags at a long index": metadata(unknownTags={f"topics[{'9' * 5000}]": {"1": "00"}}),
    "negative tag": metadata(unknownTags={"": {"-1": "00"}}),
    "huge tag": metadata(unknownTags={"": {"9" * 20: "00"}}),
    "number for a header": metadata(header=7),
    "number for trailing bytes": metadata(trailingBytes=7),
    "capture without packets": PCAP,
    "capture that is cut": PCAP[:4],
    "capture with a huge packet": PCAP + struct.pack("<IIII", 2**32 - 1, 2**32 - 1, 2**31, 0) + bytes(30),
    "capture without sections": b"\n\r\r\n",
    "capture with zeros": b"\n\r\r\n" + struct.pack("<I", 12) + b"\x4d\x3c\x2b\x1a" + bytes(50),
    "event of lists": EVENT + b'"data":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "event with a long number": EVENT + b'"x":' + b"9" * 5000 + b"}",
    "event at the end of time": EVENT + b'"time":"9999-12-31T23:59:60Z"}',
    "record of a wrong form": b'{"key":"AAAAAAAAAA","value":5,"headers":[[1,2]]}',
    "record with a surrogate": b'{"key":null,"value":null,"headers":[["\\ud800","MQ=="]]}',
    "line with a surrogate": b'{"event":{"specversion":"1.0","id":"\\ud800","source":"/s","type":"t"}}',
    "varint without end": b"\xff" * 11,
    "avro with a huge map": b"\x01" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" * 2,
    "protobuf with a huge field": b"\x0a\xff\xff\xff\xff\x0f",
    "protobuf with groups": b"\x0b" * 5000,
    "code": b'{"name":"Evil","type":"data","validVersions":"0","flexibleVersions":"0+","fields":[{"name":"A",'
    b'"type":"string","versions":"0+","default":"\\" + str(__import__(\'sys\').exit(99)) + \\""}]}',
    "code for a key": b'{"name":"Evil","type":"data","apiKey":"__import__(\'sys\').exit(99)",'
    b'"validVersions":"0","flexibleVersions":"0+","fields":[]}',
}

COMMANDS = [
    "wire decode FILE", "wire decode FILE --tree", "wire decode FILE --answers FILE", "wire encode FILE",
    "wire decode -n FetchResponse -v 12 FILE", "wire decode -n FetchResponse -v 12 --header FILE",
    "wire decode -n GroupMetadataValue --framed FILE", "wire encode -n MetadataRequest -v 1 FILE",
    "wire decode -n FILE -v 0 00", "wire encode -n FILE -v 0 {}", "wire decode --jsonl FILE",
    "wire encode --jsonl FILE",
    "schema show FILE", "schema code FILE 0", "schema check FILE FILE", "schema check FILE FetchRequest",
    "schema sizes FILE FILE", "schema sizes MetadataRequest FILE",
    "event decode FILE", "event decode -H content-type=application/cloudevents+json FILE",
    "event decode -H content-type=application/cloudevents+avro FILE", "event encode FILE",
    "event validate FILE", "event validate --format avro FILE", "event validate --format protobuf FILE",
    "event convert --to avro FILE", "event convert --from avro --to json FILE",
    "event convert --from protobuf --to json-batch FILE", "event decode --jsonl FILE",
    "event encode --jsonl FILE", "event validate --jsonl FILE",
    "event convert --jsonl --mode structured --format avro FILE",
]  # fmt: skip


class Runner:
    """A test helper that writes bytes to a file and runs every command on that file."""

    def __init__(self, path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        self.path = path
        self._captured = capsysbinary

    def all_commands(self, data: bytes) -> None:
        self.path.write_bytes(data)
        for command in COMMANDS:
            code = main([str(self.path) if word == "FILE" else word for word in command.split(" ")])
            out, err = self._captured.readouterr()
            assert code in (0, 1, 2), command
            assert b"a bug" not in err, (command, err)
            assert b"Traceback" not in err + out, (command, err)
            assert (code == 0) or err or out, command
            assert b'"error":"unexpected ' not in out, (command, out)


@pytest.fixture
def runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Runner:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    return Runner(tmp_path / "hostile.json", capsysbinary)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_no_unexpected_error(name: str, runner: Runner) -> None:
    runner.all_commands(HOSTILE[name])


def test_the_error_names_the_file_and_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "evil.json"
    path.write_bytes(HOSTILE["code for a key"])
    assert main(["schema", "show", str(path)]) == 2
    assert capsys.readouterr().err == "penstock: evil.json: apiKey must be a number from 0 to 32767\n"
    path.write_bytes(HOSTILE["lists"])
    assert main(["schema", "show", str(path)]) == 2
    assert "evil.json: no definition: objects or lists nest too deep" in capsys.readouterr().err


GOOD = [
    captures.pcap(captures.timed(packets())),
    captures.pcapng(captures.timed(packets())),
    b"".join(len(each).to_bytes(4, "big") + each for each in REQUESTS),
    metadata(unknownTags={"": {"7": "00"}}),
    write_events([Event(id="1", source="/s", type="t", json={"a": 1.5})], "application/cloudevents+json"),
    write_events([Event(id="1", source="/s", type="t", data=b"x")], "application/cloudevents+avro"),
    Path(definitions_directory(), "MetadataRequest.json").read_bytes(),
]
PIECES = [
    b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"null", b'"', b"[", b"{", b"1e999", b"NaN", b"-1",
    b"9" * 20, b"\\ud800", b"\\u0000", b"true", b'"__class__"',
]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_damaged_files_are_no_unexpected_errors(seed: int, runner: Runner) -> None:
    chosen = random.Random(seed)
    for good in GOOD:
        data = bytearray(good)
        for _ in range(chosen.randrange(1, 6)):
            place = chosen.randrange(len(data))
            if chosen.random() < 0.5:
                data[place] = chosen.randrange(256)
            else:
                data[place : place + chosen.randrange(4)] = chosen.choice(PIECES)
        runner.all_commands(bytes(data))
