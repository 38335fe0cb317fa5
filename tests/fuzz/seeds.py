"""The initial inputs of the fuzzer: valid inputs for every target."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from fuzz.targets import choice, kept
from penstock.cloudevents import Event, to_record
from penstock.protocol.codec import codec_for
from penstock.protocol.framing import encode_request
from penstock.protocol.inspect.json_form import to_json
from penstock.protocol.messages import FetchRequest
from penstock.protocol.schema.loader import definitions_directory
from penstock.records.batch import ABORT_MARKER, encode_batch, encode_marker
from penstock.records.compression.codecs import CompressionCodec, compress
from penstock.records.legacy import encode_message_set
from penstock.v07 import message_set, wire
from protocol.catalogue import NAMES, versions
from protocol.samples import sample

ROWS = [(b"key", b"value" * 5, (), 1_700_000_000_000 + number) for number in range(5)]


def seeds(name: str) -> list[bytes]:
    """Return the initial inputs of a target: its valid inputs and its corpus."""
    return [*_BEGINNINGS[name](), *kept(name)]


def _messages() -> list[bytes]:
    return [
        choice(message_class, version) + codec_for(message_class, version).encode(made)
        for each in NAMES
        for message_class, definition, version in islice(versions(each), 0, None, 3)
        for made in (message_class(), sample(message_class, definition, version, 4))
    ]


def _json_forms() -> list[bytes]:
    found = []
    for each in NAMES[::3]:
        for message_class, definition, version in islice(versions(each), 0, None, 5):
            made = to_json(sample(message_class, definition, version, 4), version)
            found.append(choice(message_class, version) + json.dumps(made).encode())
    return found


def _headers() -> list[bytes]:
    return [
        b"".join(encode_request(FetchRequest(), version, 7, client_id))[4:]
        for version in (4, 12)
        for client_id in ("client", "", None)
    ]


def _definitions() -> list[bytes]:
    paths = sorted(Path(definitions_directory()).glob("*.json"))[::6]
    small = [
        b'{"name":"A","type":"data","validVersions":"0-2","flexibleVersions":"1+","fields":[%s]}' % field
        for field in (
            b'{"name":"B","type":{"0":"int32","1+":"varint32"},"versions":"0+"}',
            b'{"name":"B","type":"[]C","versions":"0+","nullableVersions":"1+","default":"null",'
            b'"fields":[{"name":"D","type":"uuid","versions":"0+","ignorable":true}]}',
            b'{"name":"B","type":"string","versions":"1+","tag":0,"taggedVersions":"1+"}',
            b'{"name":"B","type":"int64","encoding":{"0":"fixed64","1+":"unsigned64"},"versions":"0+"}',
        )
    ]
    return [*small, *(path.read_bytes() for path in paths if path.stat().st_size < 3000)]


def _batches() -> list[bytes]:
    found = [encode_batch(ROWS, base_offset=3, codec=codec) for codec in CompressionCodec]
    found.append(encode_batch([(None, None, [("h", b"v"), ("n", None)], -1)], base_offset=0, producer_id=4))
    found.append(
        encode_marker(
            ABORT_MARKER, base_offset=9, producer_id=7, producer_epoch=0, coordinator_epoch=2, timestamp=5
        )
    )
    rows = [(key, value, timestamp) for key, value, _, timestamp in ROWS]
    for magic in (0, 1):
        found += [encode_message_set(rows, magic=magic, codec=codec) for codec in list(CompressionCodec)[:4]]
    return found


def _codecs() -> list[bytes]:
    payload = b"penstock " * 40
    found = [bytes([codec]) + compress(codec, payload) for codec in CompressionCodec]
    return found + [
        bytes([codec]) + 2 * compress(codec, payload)
        for codec in (CompressionCodec.GZIP, CompressionCodec.ZSTD)
    ]


def _v07() -> list[bytes]:
    payloads = [b"one", b"", b"three" * 9]
    sets = [
        message_set.encode_set(payloads, codec=codec, magic=magic)
        for magic, codec in (
            (0, message_set.CompressionCodec.NONE),
            (1, message_set.CompressionCodec.NONE),
            (1, message_set.CompressionCodec.GZIP),
            (1, message_set.CompressionCodec.SNAPPY),
        )
    ]
    return [*sets, wire.response_head(2) + sets[0], wire.encode_offsets([3, 2, 1])]


def _cloudevents() -> list[bytes]:
    found = []
    for event in (
        Event(id="1", source="/here", type="t"),
        Event(id="2", source="/here", type="t", datacontenttype="application/json", data=b'{"a": 1}'),
    ):
        for mode in ("binary", "structured"):
            _, value, sent = to_record(event, mode=mode)  # type: ignore[arg-type]
            headers = b"\xff".join(header.encode() + b"\xfe" + content for header, content in sent)
            found.append(b"\xff".join((b"key", value or b"", headers)))
    return found


def _logins() -> list[bytes]:
    from broker.security import test_authenticator as sasl

    versions, handshake = sasl.frame(sasl.ApiVersionsRequest(), 0), sasl.handshake("SCRAM-SHA-256")
    flows = [
        (versions, sasl.handshake(), sasl.token(b"\0ann\0wrong")),
        (handshake, sasl.token(b"n,,n=ann,r=abc"), sasl.token(b"c=biws,r=abc,p=AAAA")),
        (sasl.handshake("OAUTHBEARER"), sasl.token(sasl.bearer("forged")), sasl.token(b"\x01")),
        (sasl.handshake(version=0), memoryview(b"\0ann\0wrong")),
    ]
    return [b"".join(bytes([len(each)]) + bytes(each) for each in flow) for flow in flows]


def _certificates() -> list[bytes]:
    name = bytes.fromhex("300e310c300a06035504030c03616e6e")
    body = bytes.fromhex("a003020102020107300030003000") + name
    body = b"\x30" + bytes([len(body)]) + body
    return [b"\x30" + bytes([len(body)]) + body]


def _security() -> list[bytes]:
    alert = bytes.fromhex("15030300020250")
    hello = bytes.fromhex("160303003a020000360303") + bytes(32) + bytes.fromhex("00130100000e002b00020304")
    entry = (1).to_bytes(4, "big") + b"\0\x01a" + bytes(8) + (3).to_bytes(4, "big") + b"key" + bytes(4)
    return [
        b"r=abc,s=QUFB,i=4096\nv=QUFB",
        b"n,a=ann,n=ann,r=abc,tokenauth=true",
        b'{"status":"invalid_token","scope":"s"}\n\x01',
        b"n,,\x01auth=Bearer a.e30.c\x01host=b\x01\x01",
        b"a.b.PlainLoginModule required username=\"ann\" password='p\\'w'; // end",
        alert,
        hello,
        (2).to_bytes(4, "big") + (1).to_bytes(4, "big") + entry + bytes(20),
    ]


def _bearer_tokens() -> list[bytes]:
    from broker.security import test_bearer_tokens as bearer

    tokens = [bearer.token(), bearer.token(bearer.rsa_key()), bearer.token(header={"alg": "none"})]
    return [*(each.encode() for each in tokens), bearer.key_set().encode()]


def _rules() -> list[bytes]:
    return [
        b"allow ann read,write topic:orders* from 10.0.0.1",
        b"deny * all group:g",
        b"User:ann;User:CN=b,OU=c",
        rb"RULE:^CN=(.*?),OU=(.*)$/$1@$2/L,DEFAULT",
        b"RULE:[2:$1-$2@$0](.*@EX)s/-/_/g/L, DEFAULT",
        b"ann/host@EX DEFAULT",
    ]


def _json_values() -> list[bytes]:
    return [
        b'\0{"a": 1, "b": -2.5e3}\0{"b":9007199254740993,"a":null}\0 { "c" : [1, {}], "a":-0 } ',
        b'\1{"text": "a\\u00e9\\ud83d\\ude00", "any": [1.0, {"x": "y"}], "list": [{"t": true}, null]}',
        b'\1{"map":{"a":1,"b":0.1},"list":[],"text":"\xc3\xa9"}\0{"text":"a","text":"b"}',
        b'\2[["a", "b"], [], null]',
    ]


_BEGINNINGS = {
    "message": _messages,
    "header": _headers,
    "json_form": _json_forms,
    "json_values": _json_values,
    "definition": _definitions,
    "batches": _batches,
    "codecs": _codecs,
    "v07": _v07,
    "cloudevent": _cloudevents,
    "security": _security,
    "login": _logins,
    "certificate": _certificates,
    "bearer_token": _bearer_tokens,
    "rules": _rules,
}
