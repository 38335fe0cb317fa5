"""Record a broker's answers to a script as trees, in a form that can be compared between brokers.

A script is a function of a `Talk`. It runs once against each broker and sends the same requests in the same
order. The two transcripts are compared field by field. Requests and answers are dicts from the attribute
names of the version's fields to their values.

Values that always differ are replaced: generated ids of topics, producers, sessions and directories, times
near now, host, port, directory paths, disk sizes, and throttle times. Member ids are numbered as they appear.
Error messages are left out.
"""

from __future__ import annotations

import contextlib
import random
import re
import select
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from penstock.errors import PenstockError
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.compile import classes_of
from penstock.protocol.compiler.struct_types import Structure
from penstock.protocol.compiler.wire_type import StructLayout
from penstock.protocol.compiler.wire_types import Array, RecordSet, Uuid
from penstock.protocol.framing import decode_response, encode_request
from penstock.protocol.message import Message
from penstock.records.batch import decode_batch
from penstock.records.format.batch_header import read_header, split_batches

Tree = Any

CLOSED = "connection closed"
SILENCE = "no answer"
WAITS_MAX = 5_000
"""The number of times that a script repeats a request while it waits for a broker.

The pauses of 5 to 20 ms add up to some minutes.
"""

INVENTED = {
    "member_id", "leader", "topic_id", "directory_id", "cluster_id", "log_dir", "session_id",
    "replica_directory_id", "token_id", "hmac",
}  # fmt: skip
PLACES = {"host", "port", "usable_bytes", "total_bytes"}
DROPPED = {"throttle_time_ms", "error_message", "batch_index_error_message", "documentation"}
NAMES = (
    "api_key", "name", "topic", "topic_name", "group_id", "resource_name", "key", "transactional_id", "value",
    "partition_index", "partition", "index", "broker_id", "node_id", "replica_id", "producer_id",
    "base_offset", "topic_id", "member_id", "entity", "entity_type",
)  # fmt: skip
"""Fields that identify the entries of a list, since the order of most lists has no meaning."""


class Exchange(NamedTuple):
    """A request and its answer, as recorded by a `Talk`."""

    api: str
    version: int
    request: Tree
    answer: Tree


# --- trees and messages -------------------------------------------------------------------------------------


def build(message_class: type[Message], tree: Tree, version: int) -> Message:
    """Make a message from a tree of its fields; leave out fields that the version lacks."""
    classes = classes_of(message_class)

    def struct_of(layout: StructLayout, tree: Tree) -> Any:
        if tree is None:
            return None
        fields = [*layout.fields, *(field for _, field in layout.tagged)]
        wires = {field.spec.attribute: field.wire for field in fields}
        return classes[layout.spec.name](**{k: value_of(wires[k], v) for k, v in tree.items() if k in wires})

    def value_of(wire: Any, value: Tree) -> Any:
        if isinstance(wire, Array):
            return None if value is None else [value_of(wire.element, each) for each in value]
        return struct_of(wire.layout, value) if isinstance(wire, Structure) else value

    message: Message = struct_of(codec_for(message_class, version).layout, tree)
    return message


def tree_of(message: Message, version: int) -> Tree:
    """Return a message as a tree of the fields that its version has.

    Records are decoded, and `Uuid` values become bytes.
    """

    def struct_tree(layout: StructLayout, struct: Any) -> Tree:
        if struct is None:
            return None
        fields = [*layout.fields, *(field for _, field in layout.tagged)]
        return {f.spec.attribute: value_tree(f.wire, getattr(struct, f.spec.attribute)) for f in fields}

    def value_tree(wire: Any, value: Any) -> Tree:
        if value is None:
            return None
        if isinstance(wire, Array):
            return [value_tree(wire.element, each) for each in value]
        if isinstance(wire, Structure):
            return struct_tree(wire.layout, value)
        if isinstance(wire, RecordSet):
            return records_tree(bytes(value))
        return bytes(value) if isinstance(wire, Uuid) or isinstance(value, memoryview) else value

    return struct_tree(codec_for(type(message), version).layout, message)


def records_tree(data: bytes) -> Tree:
    """Return the headers and records of batches as a tree.

    The size in bytes of an incomplete batch at the end follows.
    """
    found: list[Tree] = []
    end = 0
    try:
        for start, end, magic in split_batches(data):
            frame: dict[str, Any] = {"magic": magic}
            if magic == 2:
                header = read_header(data, start)
                frame |= header._asdict()
                frame.pop("crc")
                if header.codec:
                    frame.pop("batch_length")
            rows = decode_batch(data, start, end, "t", 0)
            frame["rows"] = [[r.offset, r.timestamp, r.key, r.value, list(r.headers)] for r in rows]
            found.append(frame)
    except PenstockError as error:
        found.append({"magic": f"unreadable: {type(error).__name__}"})
    return {"batches": found, "rest_bytes": len(data) - end}


# --- a conversation -----------------------------------------------------------------------------------------


class Talk:
    """A connection to one broker that records answers. `versions` are those that both brokers offer."""

    def __init__(
        self,
        servers: str,
        ranges: dict[str, tuple[int, int]],
        seed: int,
        *,
        settle_s: float,
        prefix: str,
        patience_s: float = 4,
    ) -> None:
        """`settle_s` is how many seconds a change may take to propagate.

        No answer within `patience_s` seconds is recorded as `SILENCE`.
        """
        self.port = int(servers.rpartition(":")[2])
        self.ranges = ranges
        self.random = random.Random(seed)
        self.exchanges: list[Exchange] = []
        self.prefix = prefix
        self._settle_s = settle_s
        self._patience_s = patience_s
        self.sockets: dict[int, socket.socket] = {}
        self._symbols: dict[bytes | str | int, str] = {}
        self._producers: dict[int, str] = {}
        self._due: dict[int, list[tuple[str, int, Tree]]] = {}
        self._sent = 0

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *error: object) -> None:
        for each in self.sockets.values():
            each.close()

    def versions(self, api: str) -> Iterator[int]:
        """Yield the versions of `api` that both brokers offer; none if a broker lacks the API."""
        low, high = self.ranges.get(api, (0, -1))
        return iter(range(low, high + 1))

    def some_versions(self, api: str) -> list[int]:
        """Return the first, middle and last of `versions`, for scripts that send many requests."""
        every = list(self.versions(api))
        return sorted({every[0], every[len(every) // 2], every[-1]}) if every else []

    def latest(self, api: str) -> int:
        return self.ranges[api][1]

    def offers(self, *apis: str) -> bool:
        return all(api in self.ranges for api in apis)

    def name(self, name: str) -> str:
        """Return a topic or group name that only this run of the script uses."""
        return f"{self.prefix}-{name}"

    # --- asking ---------------------------------------------------------------------------------------------

    def ask(self, api: str, version: int, tree: Tree, *, on: int = 0) -> Tree:
        """Send a request and record the answer; return the original answer, or `CLOSED` or `SILENCE`."""
        self.send(api, version, tree, on=on)
        return self.receive(on=on)

    def ask_quietly(self, api: str, version: int, tree: Tree) -> Tree:
        """Send a request without recording the answer, to find out ids or to wait for an event."""
        noted = len(self.exchanges)
        try:
            return self.ask(api, version, tree, on=-1)
        finally:
            del self.exchanges[noted:]

    def fetched(self, api: str, version: int, tree: Tree) -> bytes:
        """Fetch records of one partition without recording the answer; return their bytes."""
        self.send(api, version, tree, on=-1)
        self._due[-1].pop(0)
        frame = self._frame(-1)
        assert isinstance(frame, bytes), frame
        message: Any = decode_response(frame, API_TABLE[ApiKey[_constant(api)]].response, version)[1]
        return bytes(message.responses[0].partitions[0].records or b"")

    def each(self, api: str, *trees: Tree) -> None:
        """Send each of the request trees in every version of the API."""
        for version in self.versions(api):
            for tree in trees:
                self.ask(api, version, tree)

    def send(self, api: str, version: int, tree: Tree, *, on: int = 0) -> None:
        request = build(API_TABLE[ApiKey[_constant(api)]].request, tree, version)
        self._sent += 1
        frame = b"".join(map(bytes, encode_request(request, version, self._sent, "differ")))
        self._due.setdefault(on, []).append((api, version, tree))
        self._write(frame, on)

    def receive(self, *, on: int = 0) -> Tree:
        api, version, request = self._due[on].pop(0)
        frame = self._frame(on)
        answer: Tree = frame
        if isinstance(frame, bytes):
            message = decode_response(frame, API_TABLE[ApiKey[_constant(api)]].response, version)[1]
            answer = tree_of(message, version)
        if api in ("InitProducerId", "EndTxn") and isinstance(answer, dict):
            self._know_producer(answer.get("producer_id", -1))
        if api == "DescribeTransactions" and isinstance(answer, dict):
            for transaction in answer["transaction_states"]:
                for topic in transaction["topics"]:
                    topic["partitions"].sort()  # in the order of a Java set
        self.exchanges.append(Exchange(api, version, request, self.plain(answer)))
        return answer

    def has_answer(self, on: int, patience_s: float) -> bool:
        """Return True if an answer begins to arrive on a connection within `patience_s` seconds."""
        return bool(select.select([self.sockets[on]], [], [], patience_s)[0])

    def note(self, word: str, about: Tree) -> None:
        """Record a value of the script's own, so that it is compared like an answer."""
        self.exchanges.append(Exchange(word, 0, about, about))

    def raw(self, label: str, frame: bytes, *, size: int | None = None) -> None:
        """Send bytes that need not be a valid request; record whether the broker answers at all."""
        framed = struct.pack(">i", len(frame) if size is None else size) + frame
        self._write(framed, -2)
        answer = self._frame(-2)
        self.exchanges.append(
            Exchange("raw", 0, label, answer if isinstance(answer, str) else {"answered": True})
        )
        self.sockets.pop(-2).close() if -2 in self.sockets else None

    def _write(self, data: bytes, on: int) -> None:
        if on not in self.sockets:
            self.sockets[on] = socket.create_connection(("127.0.0.1", self.port), self._patience_s)
        with contextlib.suppress(OSError):  # reading tells
            self.sockets[on].sendall(data)

    def _frame(self, on: int) -> bytes | str:
        try:
            head = self._exactly(4, on)
            return self._exactly(struct.unpack(">i", head)[0], on)
        except TimeoutError:
            outcome = SILENCE
        except OSError:
            outcome = CLOSED
        self.sockets.pop(on).close()
        return outcome

    def _exactly(self, size: int, on: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self.sockets[on].recv(size - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return bytes(data)

    # --- what scripts need to go on -------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait for a change to reach all parts of a broker, which may apply metadata with a delay."""
        time.sleep(self._settle_s)

    def topic_id(self, name: str) -> bytes:
        """Return the id of a topic, zero if the topic does not exist."""
        topic = {"name": name, "topic_id": bytes(16)}
        asked = {"topics": [topic], "allow_auto_topic_creation": False}
        found = self.ask_quietly("Metadata", 12, asked)
        return bytes(found["topics"][0]["topic_id"])

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> str:
        """Create a topic without recording the answer; return its full name."""
        full = self.name(name)
        settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        topic = {"name": full, "num_partitions": partitions, "replication_factor": 1, "configs": settings}
        answer = self.ask_quietly("CreateTopics", 5, {"topics": [topic], "timeout_ms": 10_000})
        assert answer["topics"][0]["error_code"] == 0, answer
        places = [
            {"partition_index": n, "timestamp": -1, "current_leader_epoch": -1} for n in range(partitions)
        ]
        asked = {"replica_id": -1, "topics": [{"name": full, "partitions": places}]}
        for _ in range(WAITS_MAX):  # Kafka announces a partition before it can be used
            [found] = self.ask_quietly("ListOffsets", 1, asked)["topics"]
            if all(place["error_code"] == 0 for place in found["partitions"]):
                break
            time.sleep(0.02)
        return full

    # --- what must differ is made the same ------------------------------------------------------------------

    def plain(self, value: Tree, field: str = "") -> Tree:
        """Return a tree in which values that a broker generates are replaced with comparable ones."""
        if isinstance(value, dict):
            return {k: self.plain(v, k) for k, v in value.items() if k not in DROPPED}
        if isinstance(value, list):
            is_set = value and isinstance(value[0], dict) and field != "batches"
            return [self.plain(each, field) for each in (sorted(value, key=self._order) if is_set else value)]
        if value is None:
            return None
        if field in PLACES:
            return field
        if field in INVENTED or (field == "producer_id" and value in self._producers):
            return self._symbol(field, value)
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, int) and abs(value - time.time() * 1000) < 4_000_000:
            return "now"
        return value

    def _order(self, entry: Tree) -> tuple[str, ...]:
        """Return a sort key: members in the order of their first appearance, other entries by their name."""
        known = self._symbols.get(entry.get("member_id", ""), "")
        return (known.rjust(16), *_order(entry))

    def _know_producer(self, producer_id: int) -> None:
        """Number a producer id in the order of appearance, since its value has no meaning."""
        if producer_id >= 0:
            self._producers.setdefault(producer_id, f"producer {len(self._producers) + 1}")

    def _symbol(self, field: str, value: Tree) -> Tree:
        if field == "producer_id":
            return self._producers[value]
        if value in ("", b"", -1, 0, bytes(16)):
            return "" if value == "" else "none"
        if field not in ("member_id", "leader"):
            return field
        kind = "member_id"
        number = 1 + sum(symbol.startswith(kind) for symbol in self._symbols.values())
        return self._symbols.setdefault(value, f"{kind} {number}")


def _constant(api: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", api).upper()


def _order(entry: Tree) -> tuple[str, ...]:
    return tuple(str(entry.get(name, "")).rjust(8) for name in NAMES if name not in INVENTED)


# --- comparing ----------------------------------------------------------------------------------------------


class Mismatch(NamedTuple):
    """A field in which two answers differ. In `path`, ``[]`` stands for any entry of a list."""

    api: str
    version: int
    path: str
    ours: Tree
    theirs: Tree
    request: Tree

    def __str__(self) -> str:
        ours, theirs = (repr(each)[:300] for each in (self.ours, self.theirs))
        asked = repr(self.request)[:700]
        return f"{self.api} v{self.version} {self.path}: ours {ours}, theirs {theirs}\n    asked {asked}"


def compare(ours: list[Exchange], theirs: list[Exchange]) -> Iterator[Mismatch]:
    """Yield every field in which two brokers' answers to one script differ."""
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        assert mine[:2] == other[:2], f"different ways from {ours[number - 3 : number + 1]}: {other}"
    assert len(ours) == len(theirs), "the script took different ways"
    for mine, other in zip(ours, theirs, strict=True):
        for path, left, right in _differing("", mine.answer, other.answer):
            yield Mismatch(mine.api, mine.version, path or ".", left, right, mine.request)


def _differing(path: str, ours: Tree, theirs: Tree) -> Iterator[tuple[str, Tree, Tree]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        # What follows from another outcome is not listed beside it.
        code = "error_code"
        for field in [code] if ours.get(code) != theirs.get(code) else {**ours, **theirs}:
            at = f"{path}.{field}" if path else field
            yield from _differing(at, ours.get(field), theirs.get(field))
    elif isinstance(ours, list) and isinstance(theirs, list):
        if all(isinstance(each, dict) for each in [*ours, *theirs]):
            mine, other = _by_name(ours), _by_name(theirs)
            for key in {**mine, **other}:
                if key in mine and key in other:
                    yield from _differing(f"{path}[]", mine[key], other[key])
                else:
                    yield f"{path}[]", mine.get(key, "missing"), other.get(key, "missing")
        elif ours != theirs:
            yield path, ours, theirs
    elif ours != theirs or type(ours) is not type(theirs):
        yield path, ours, theirs


def _by_name(entries: list[Tree]) -> dict[Any, Tree]:
    """Return a list's entries keyed by their identifying field, and by a number for repeated ones."""
    found: dict[Any, Tree] = {}
    for entry in entries:
        key = tuple(str(entry[name]) for name in NAMES if name in entry and name != "value")[:1]
        key = key or (str(entry.get("value", "")),)
        number = 0
        while (*key, number) in found:
            number += 1
        found[(*key, number)] = entry
    return found
