"""The functions that are fuzzed: each takes any bytes; an exception that it raises is a bug.

A target also checks results: a value that was decoded must be equal after encoding and decoding again, and no
output may exceed its limit. The tests replay `corpus/` through the same functions, so that a bug once found
does not return.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from column_rows import rows_of
from penstock.broker.security.distinguished_names import subject_of
from penstock.cloudevents import Event, InvalidEventError, from_record, to_record
from penstock.errors import DecodeError, EncodeError, UnsupportedVersionError
from penstock.protocol import messages
from penstock.protocol.codec import codec_for
from penstock.protocol.framing import decode_request_header
from penstock.protocol.inspect.json_form import from_json, to_json
from penstock.protocol.inspect.version_prefix import read_leading
from penstock.protocol.message import Message
from penstock.protocol.message_index import HOMES
from penstock.protocol.schema.definition import DefinitionError
from penstock.protocol.schema.parser import parse_definition
from penstock.records.batch import decode_batch
from penstock.records.checking import walk_batch
from penstock.records.compression.codecs import CompressionCodec, UnpackBudget, compress, decompress
from penstock.records.convert import convert_down, convert_up
from penstock.records.decode import decode_columns
from penstock.records.format.batch_header import read_header, split_batches
from penstock.records.rows import decode_rows
from penstock.v07 import message_set, wire

if TYPE_CHECKING:
    from penstock.broker.security.bearer_tokens import Keys

LIMIT_BYTES = 1 << 20
"""The most bytes to which targets let compressed data decompress."""

CORPUS = Path(__file__).parent / "corpus"

NAMES = sorted(HOMES)


def chosen(data: bytes) -> tuple[type[Message], int, bytes]:
    """Return the message class and version that the first three bytes select, and the other bytes."""
    head = data[:3].ljust(3, b"\0")
    message_class = getattr(messages, NAMES[int.from_bytes(head[:2], "big") % len(NAMES)])
    low, high = message_class.VERSIONS
    return message_class, low + head[2] % (high - low + 1), data[3:]


def choice(message_class: type[Message], version: int) -> bytes:
    """Return the three bytes with which `chosen` selects a message class and version."""
    return NAMES.index(message_class.NAME).to_bytes(2, "big") + bytes([version - message_class.VERSIONS[0]])


def message(data: bytes) -> None:
    """Decode any message: bytes and a memoryview give the same, and the message survives re-encoding."""
    message_class, version, body = chosen(data)
    codec = codec_for(message_class, version)
    try:
        made, end = codec.decode(body)
    except DecodeError:
        return
    assert end <= len(body)
    # Bytes are compared, not messages: a NaN equals nothing.
    written = codec.encode(made)
    assert codec.encode(codec.decode(memoryview(bytearray(body)))[0]) == written
    again, size = codec.decode(written)
    assert size == len(written)
    assert codec.encode(again) == written


def header(data: bytes) -> None:
    """Decode request headers and the leading fields of stored records."""
    with contextlib.suppress(DecodeError, UnsupportedVersionError):
        decode_request_header(memoryview(data))
    with contextlib.suppress(DecodeError):
        read_leading(messages.TopicRecord, data)
    with contextlib.suppress(DecodeError):
        read_leading(messages.GroupMetadataValue, data)


def json_form(data: bytes) -> None:
    """Convert JSON to a message: one that is accepted can be encoded and gives the same JSON."""
    message_class, version, body = chosen(data)
    try:
        source = json.loads(body)
    except (ValueError, RecursionError):
        return
    try:
        made = from_json(message_class, source, version)
        written = codec_for(message_class, version).encode(made)
    except (DecodeError, EncodeError):
        return
    again = codec_for(message_class, version).decode(written)[0]
    assert json.dumps(to_json(again, version)) == json.dumps(to_json(made, version))


def definition(data: bytes) -> None:
    """Parse JSON as a message definition: it is refused, or its messages can be encoded and decoded."""
    from penstock.protocol.loaded_classes import message_class

    try:
        source = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        parsed = parse_definition(source, "fuzzed.json")
    except DefinitionError:
        return
    made = message_class(parsed)
    for version in list(range(made.VERSIONS[0], made.VERSIONS[1] + 1))[:4]:
        codec = codec_for(made, version)
        data = codec.encode(made())
        assert codec.decode(data) == (made(), len(data))


def magics(data: bytes) -> list[int]:
    """Return the magic byte of each entry of a record set, up to the first invalid entry."""
    found = []
    with contextlib.suppress(DecodeError):
        for _, _, magic in split_batches(data):
            found.append(magic)
    return found


def batches(data: bytes) -> None:
    """Decode records of any magic: rows and columns agree, and format conversions give readable records."""
    bounded = {"limit_bytes": LIMIT_BYTES}
    try:
        rows, _ = decode_rows(data, "t", 0, verify=False, **bounded)
    except DecodeError:
        rows = None
    try:
        columns = decode_columns(data, verify_crcs=False, **bounded)
    except DecodeError:
        columns = None
    # A batch outside of the range is passed over by one and looked into by the other.
    if rows is not None and columns is not None:
        # Rows believe a header that no record is outside of its span; columns look at each.
        # At the end of what 64 bits can hold, they draw the line in different places.
        by_row = [row for row in rows if 0 <= row.offset < 1 << 62]
        by_column = [row for row in rows_of(columns, "t", 0) if row.offset < 1 << 62]
        assert by_row == by_column, (by_row, by_column)
    try:
        for start, end, _ in split_batches(data):
            decode_batch(data, start, end, "t", 0, verify=False, **bounded)
            decode_batch(data, start, end, "t", 0, verify=True, **bounded)
            walked_alike(data[start:end])
    except DecodeError:
        pass
    for magic in (0, 1):
        try:
            down = convert_down(data, magic, budget=UnpackBudget(LIMIT_BYTES))
        except (DecodeError, UnsupportedVersionError):
            continue
        assert all(found <= magic for _, _, found in split_batches(down))
        if all(found == 2 for found in magics(data)):
            # Nothing was passed through as it is, so all of it is ours and right.
            decode_rows(down, "t", 0, **bounded)
    for options in ({}, {"base_offset": 0, "mixed": True, "nested": True, "may_be_cut": True}):
        try:
            up = convert_up(data, budget=UnpackBudget(LIMIT_BYTES), **options)
        except DecodeError:
            continue
        rows, _ = decode_rows(up, "t", 0, **bounded)
        if options:
            assert [row.offset for row in rows] == list(range(len(rows)))


def walked_alike(batch: bytes) -> None:
    """Check that scanning a batch finds the offsets, timestamps and keys of its decoded records."""
    if batch[16] != 2:
        return
    header = read_header(batch)
    rows = decode_batch(batch, 0, len(batch), "t", 0, verify=False, limit_bytes=LIMIT_BYTES)
    try:
        chunks = list(walk_batch(batch, header, UnpackBudget(LIMIT_BYTES)))
    except DecodeError:
        assert any(abs(row.timestamp) >= 1 << 63 for row in rows)
        return
    assert [row.offset - header.base_offset for row in rows] == [
        d for each in chunks for d in each.offset_deltas
    ]
    assert [row.timestamp for row in rows] == [time for each in chunks for time in each.timestamps]
    keyless = [index for each in chunks for index in each.keyless]
    assert [index for index, row in enumerate(rows) if row.key is None] == keyless


def codecs(data: bytes) -> None:
    """Decompress any data: the size is limited, and compressing the result again loses nothing."""
    codec = CompressionCodec(data[0] % len(CompressionCodec)) if data else CompressionCodec.NONE
    try:
        out = decompress(codec, data[1:], LIMIT_BYTES)
    except DecodeError:
        return
    assert codec == CompressionCodec.NONE or len(out) <= LIMIT_BYTES
    assert decompress(codec, compress(codec, out), LIMIT_BYTES + len(out)) == out


def v07(data: bytes) -> None:
    """Decode requests, responses and message sets of Kafka 0.7."""
    view = memoryview(data)
    for read in (
        wire.decode_request,
        wire.decode_response,
        wire.decode_offsets,
        lambda body: wire.decode_multifetch(body, 2),
        lambda body: list(message_set.iter_messages(body)),
        message_set.judge,
    ):
        with contextlib.suppress(DecodeError):
            read(view)  # type: ignore[operator]


def cloudevent(data: bytes) -> None:
    """Convert any record to a CloudEvent, strictly and leniently, and back: no exception may be raised.

    In binary mode all attributes are text, so a numeric extension is read back as text.
    """
    key, value, *rest = [*data.split(b"\xff", 9), b"", b""][:10]
    headers = [
        (name.decode("utf-8", "replace"), content)
        for name, _, content in (each.partition(b"\xfe") for each in rest if each)
    ]
    for profile in ("strict", "lenient"):
        outcome = from_record(key or None, value or None, headers, profile=profile)  # type: ignore[arg-type]
        if isinstance(outcome, Event):
            for mode in ("binary", "structured"):
                try:
                    written = to_record(outcome, mode=mode)  # type: ignore[arg-type]
                except InvalidEventError:
                    continue
                again = from_record(*written)
                assert isinstance(again, Event), (mode, again, outcome)
                assert mode == "binary" or again == outcome, (mode, again, outcome)
                assert to_record(again, mode=mode) == written, (mode, again, outcome)


def security(data: bytes) -> None:
    """Parse SASL messages, JAAS texts and key stores: an error is one of Penstock's exceptions."""
    from penstock.client.security.authenticator import Authenticator
    from penstock.client.security.mechanisms import OAuthBearer, Plain, Scram
    from penstock.errors import AuthenticationError, ConfigError
    from penstock.protocol.messages import SaslAuthenticateResponse, SaslHandshakeResponse
    from penstock.security.jaas import parse_jaas
    from penstock.security.oauth import claims_of, read_client_message
    from penstock.security.scram import ScramServer
    from penstock.security.secrets import Secret
    from penstock.security.stores import JKS_MAGIC, read_jks
    from penstock.security.tls import TlsConnection
    from penstock.security.tls_context import TlsSettings, client_context

    pieces = data.split(b"\n")
    for mechanism in (
        Plain("ann", Secret("pw")),
        Scram("SCRAM-SHA-256", "ann", Secret("pw")),
        OAuthBearer(b"n,,"),
    ):
        authenticator = Authenticator(mechanism, "b:1")
        authenticator.receive(SaslHandshakeResponse(mechanisms=[]))
        with contextlib.suppress(AuthenticationError):
            for piece in pieces:
                authenticator.receive(SaslAuthenticateResponse(auth_bytes=piece))
        assert not (authenticator.is_done and isinstance(mechanism, Scram)), "the broker proved nothing"
    server = ScramServer("SCRAM-SHA-512")
    for read in (server.receive_first, read_client_message):
        with contextlib.suppress(AuthenticationError):
            read(data)
    tls = TlsConnection(client_context(TlsSettings(verify=False)), is_server=False, server_name="b")
    tls.start()
    with contextlib.suppress(AuthenticationError):
        tls.receive(data)
        tls.read_into(bytearray(100))
        tls.receive_end()
    assert not tls.is_ready
    text = data.decode("utf-8", "replace")
    claims_of(text)
    for read_file in (lambda: parse_jaas(text), lambda: read_jks("x", JKS_MAGIC + data, None)):
        with contextlib.suppress(ConfigError):
            read_file()


def login(data: bytes) -> None:
    """Send SASL frames to a broker's authenticator: none of them may log in.

    The input has a size byte before each frame.
    """
    from broker.security.test_authenticator import NOW, NOW_MS, authenticator

    sasl = authenticator()
    position = 0
    while position < len(data):
        stop = position + 1 + data[position]
        verdict = sasl.receive(memoryview(data[position + 1 : stop]), NOW, NOW_MS)
        position = stop
        if b"ann-secret" in data:
            continue  # the password of the test's own user
        assert verdict.authenticated is None
        assert verdict.closes or verdict.reply is not None
        assert len(verdict.reply or b"") < LIMIT_BYTES


def certificate(data: bytes) -> None:
    """Parse the subject of a client's certificate."""
    with contextlib.suppress(DecodeError):
        subject_of(data)


def bearer_token(data: bytes) -> None:
    """Parse bearer tokens and a provider's keys: a token is refused unless it has a valid signature."""
    from penstock.broker.security.bearer_tokens import Keys, TokenClaims, TokenError, verify
    from penstock.errors import ConfigError

    with contextlib.suppress(ConfigError):
        Keys(lambda: data.decode("utf-8", "replace"), lambda: 0.0, 3600).load()
    claims = TokenClaims("sub", None, frozenset(), 30)
    try:
        good = verify(data.decode("utf-8", "replace"), bearer_keys(), claims, 1_700_000_000.0)
    except TokenError:
        return
    assert good.principal == "ann", "a token of another user is good"


@functools.cache
def bearer_keys() -> Keys:
    """Return the keys for which `seeds` has one valid token, whose subject is ann."""
    from broker.security.test_bearer_tokens import key_set
    from penstock.broker.security.bearer_tokens import Keys

    made = Keys(key_set, lambda: 0.0, 3600)
    made.load()
    return made


def rules(data: bytes) -> None:
    """Parse ACL rules and the rules that map certificate and Kerberos names to principals.

    An error is one of Penstock's exceptions.
    """
    from penstock.broker.security.authorizer import Authorizer, parse_super_users
    from penstock.broker.security.principal_rules import parse_principal_rules
    from penstock.errors import ConfigError
    from penstock.security.acls import parse_rule, rule_of, why_invalid
    from penstock.security.kerberos_names import parse_name_rules, short_name

    text = data.decode("utf-8", "replace")
    for read in (parse_super_users, parse_principal_rules):
        with contextlib.suppress(ConfigError):
            read(text)
    with contextlib.suppress(ConfigError, ValueError):
        short_name(text.partition(" ")[0], parse_name_rules("RULE:[2:$1-$2](.*)s/-/_/g,DEFAULT"), "EX")
    with contextlib.suppress(ConfigError):
        parse_name_rules(text)
    try:
        found = parse_rule(text)
    except ConfigError:
        return
    authorizer = Authorizer()
    for acl in found:
        rule_of(acl)
        if why_invalid(acl) is None:
            authorizer.add(acl)
    for acl in found:
        authorizer.operations("User:x", "h", acl.resource_type, acl.resource_name)


JSON_SHAPES = [
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "number"}}},
    {
        "properties": {
            "text": {"type": "string"},
            "any": {},
            "list": {
                "type": "array",
                "items": {"properties": {"t": {"type": "boolean"}, "n": {"type": "null"}}},
            },
            "map": {"type": "object", "additionalProperties": {"type": "number"}},
        }
    },
    {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
]
"""The JSON Schemas for the target `json_values`; the first byte of an input selects one."""


def json_values(data: bytes) -> None:
    """Decode JSON values to columns: the compiled decoder agrees with Python's JSON parser."""
    import numpy as np
    import pyarrow as pa

    from penstock.registry.json_schema.columns import loaded
    from penstock.registry.json_schema.program import JsonProgram
    from penstock.registry.json_schema.shapes import fitted, shape_of_schema

    if not data:
        return
    shape = shape_of_schema(JSON_SHAPES[data[0] % len(JSON_SHAPES)], {})
    rows = data[1:].split(b"\0")
    ends = np.cumsum(np.array([len(row) for row in rows], dtype=np.int64))
    starts = ends - np.array([len(row) for row in rows], dtype=np.int64)
    source = np.frombuffer(b"".join(rows) or b"\0", dtype=np.uint8)
    for chunk in JsonProgram(shape).read(source, starts, ends):
        chunk.array.validate(full=True)
        expected = pa.array([fitted(loaded(rows[row]), shape) for row in chunk.rows.tolist()], shape.type)
        assert repr(chunk.array.to_pylist()) == repr(expected.to_pylist())


TARGETS: dict[str, Callable[[bytes], None]] = {
    "message": message,
    "header": header,
    "json_form": json_form,
    "json_values": json_values,
    "definition": definition,
    "batches": batches,
    "codecs": codecs,
    "v07": v07,
    "cloudevent": cloudevent,
    "security": security,
    "login": login,
    "certificate": certificate,
    "bearer_token": bearer_token,
    "rules": rules,
}


def kept(name: str) -> list[bytes]:
    """Return the inputs in the corpus file of a target.

    Each line has one input as hexadecimal digits; # begins a comment.
    """
    path = CORPUS / f"{name}.hex"
    if not path.exists():
        return []
    lines = (line.partition("#")[0].strip() for line in path.read_text("ascii").splitlines())
    return [bytes.fromhex(line) for line in lines if line]


def keep(name: str, data: bytes, why: str) -> None:
    """Append an input to the corpus file of a target, with the reason as a comment."""
    with open(CORPUS / f"{name}.hex", "a", encoding="ascii") as file:
        file.write(f"{data.hex()}  # {why}{os.linesep}")
