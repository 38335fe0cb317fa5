"""Makes malformed records, which are not valid events, as in topics that many programs write to.

Each kind of malformed record is a valid departure that is corrupted in one way. The seed alone determines
which departures are corrupted, in which way, and where the results are placed among the valid events, so that
a resumed replay writes the same records.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

from penstock.headers import Header

MALFORMED_COUNT = 200
SEED = 2013

CONTENT_TYPE = "content-type"
STRUCTURED_TYPE = b"application/cloudevents+json; charset=UTF-8"
BATCH_TYPE = b"application/cloudevents-batch+json; charset=UTF-8"

Spoilt = tuple[bytes | None, bytes | None, list[Header]]
"""A malformed record, made from a valid event: its key, value and headers."""


class Good(NamedTuple):
    """A valid event before it is corrupted: the record's key and timestamp, its attributes, its JSON data."""

    key: bytes
    timestamp_ms: int
    attributes: Mapping[str, str]
    data: str

    def but(self, name: str, text: str | None) -> Good:
        """Return a copy in which the CloudEvents attribute `name` has the value `text` (None: is removed)."""
        kept = {n: t for n, t in self.attributes.items() if n != name}
        return self._replace(attributes=kept if text is None else kept | {name: text})

    def record(self) -> Spoilt:
        """Return the event as a record in binary content mode."""
        headers: list[Header] = [(CONTENT_TYPE, self.attributes["datacontenttype"].encode())]
        for name, text in self.attributes.items():
            if name != "datacontenttype":
                headers.append((f"ce_{name}", text.encode()))
        return self.key, self.data.encode(), headers

    def envelope(self) -> dict[str, object]:
        """Return the event as the JSON object of structured content mode."""
        return {**self.attributes, "data": json.loads(self.data)}


class Planted(NamedTuple):
    """A malformed record with its position in the replay: right after departure `after`, in `partition`."""

    kind: str
    after: int
    partition: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


def plant(events: int, partitions: int, event_at: Callable[[int], Good], seed: int = SEED) -> list[Planted]:
    """Return `MALFORMED_COUNT` malformed records at random positions among `events` valid events, in order.

    `event_at(n)` returns valid event number `n`, which is corrupted. The kinds of corruption take turns.
    """
    dice = random.Random(seed)
    names = list(KINDS)
    planted = []
    for number, after in enumerate(sorted(dice.randrange(events) for _ in range(MALFORMED_COUNT))):
        kind, good = names[number % len(names)], event_at(after)
        key, value, headers = KINDS[kind](good, dice)
        planted.append(
            Planted(kind, after, dice.randrange(partitions), good.timestamp_ms, key, value, headers)
        )
    return planted


def _without_required_attribute(good: Good, dice: random.Random) -> Spoilt:
    return good.but(dice.choice(["id", "source", "type"]), None).record()


def _unknown_specversion(good: Good, dice: random.Random) -> Spoilt:
    return good.but("specversion", dice.choice(["0.9", "1.7", "2.0", "one"])).record()


def _bad_time(good: Good, dice: random.Random) -> Spoilt:
    return good.but("time", dice.choice(["yesterday", "2013-13-01T10:00:00Z", "2013-02-30 25:00"])).record()


def _data_not_json(good: Good, dice: random.Random) -> Spoilt:
    cut = good.data[: len(good.data) // 2]
    return good._replace(data=dice.choice([cut, f"<departure>{good.data}</departure>", "n/a"])).record()


def _broken_envelope(good: Good, dice: random.Random) -> Spoilt:
    whole = json.dumps(good.envelope()).encode()
    return good.key, whole[: dice.randrange(1, len(whole))], [(CONTENT_TYPE, STRUCTURED_TYPE)]


def _attribute_not_utf8(good: Good, dice: random.Random) -> Spoilt:
    key, value, headers = good.record()
    spoilt = dice.choice(["ce_source", "ce_subject", "ce_id"])
    return (
        key,
        value,
        [(name, b"\xff\xfe" + (text or b"") if name == spoilt else text) for name, text in headers],
    )


def _batch(good: Good, dice: random.Random) -> Spoilt:
    events = [good.envelope()] * dice.randrange(1, 4)
    return good.key, json.dumps(events).encode(), [(CONTENT_TYPE, BATCH_TYPE)]


def _tombstone(good: Good, dice: random.Random) -> Spoilt:
    return good.key, None, []


def _plain_message(good: Good, dice: random.Random) -> Spoilt:
    return dice.choice([None, b"a key"]), dice.choice([b"hello", b"is this thing on?"]), []


KINDS: dict[str, Callable[[Good, random.Random], Spoilt]] = {
    "a required attribute is missing": _without_required_attribute,
    "specversion is unknown": _unknown_specversion,
    "time is not a time": _bad_time,
    "data is not JSON": _data_not_json,
    "the structured envelope is broken": _broken_envelope,
    "attribute bytes are not UTF-8": _attribute_not_utf8,
    "the content type says batch": _batch,
    "the record is a tombstone": _tombstone,
    "the message is no event": _plain_message,
}
