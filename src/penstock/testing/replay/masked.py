"""Applies mask rules to exchanges: masks records and client ids, and always removes secrets."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.errors import CorruptRecordError, DecodeError
from penstock.model import Record
from penstock.protocol.message import Message
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import (
    LAST_OFFSET_DELTA_POSITION,
    BatchHeader,
    read_header,
    refresh_crc,
    split_batches,
)
from penstock.testing.replay.exchanges import RecordedExchange, topic_names
from penstock.testing.replay.masking import CLIENT_IDS, HEADERS, KEYS, VALUES, MaskRule, Substitutes
from penstock.testing.replay.walking import Names, StructPlace, places

SECRETS = frozenset(("auth_bytes", "hmac", "salt", "salted_password"))
"""Fields that are always empty in a recording: SASL tokens, delegation tokens, salted passwords."""

HIDDEN = "hidden"
"""The text that replaces the value of a secret setting."""

_SECRET_SETTING = re.compile(r"password|secret|jaas|credential|token|\.key$|keystore\.key", re.IGNORECASE)
_MEMBERS = ("member_id", "leader", "client_id")
"""Names of fields with text that is a client id, or begins with a client id, as member ids do."""

_RECORD_PLACES = (VALUES, KEYS, HEADERS)


def mask_exchanges(exchanges: Sequence[RecordedExchange], rules: Iterable[MaskRule], secret: bytes) -> None:
    """Mask exchanges in place by `rules`, and remove secrets from them.

    Raises:
        DecodeError: a rule applies to records of magic 0 or 1, or a rule does not return bytes.
        MissingDependencyError: records are compressed with a codec that is not installed.
    """
    masker = Masker([*rules], Substitutes(secret), topic_names(exchanges))
    clients = {each.client_id for each in exchanges if each.client_id}
    masker.clients = {each: masker.client_id(each) for each in sorted(clients, key=len, reverse=True)}
    for exchange in exchanges:
        asked, answer = exchange.asked(), exchange.answer()
        if masker.mask(asked, exchange.version):
            exchange.request = asked.encode(exchange.version)
        if answer is not None and masker.mask(answer, exchange.response_version):
            exchange.response = answer.encode(exchange.response_version)
        if exchange.client_id:
            exchange.client_id = masker.clients[exchange.client_id]


class Masker:
    """Masks messages in place by a list of rules."""

    def __init__(self, rules: list[MaskRule], substitutes: Substitutes, names: Names) -> None:
        self._rules = rules
        self._substitutes = substitutes
        self._names = names
        self._masks_clients = any(CLIENT_IDS in rule.places for rule in rules)
        self._masks_records = any(rule.places.intersection(_RECORD_PLACES) for rule in rules)
        self.clients: dict[str, str] = {}
        """A dict from client ids to their replacements, longer ids first, since one id may begin with
        another."""

    def client_id(self, name: str) -> str:
        """Return the text that replaces a client id in a masked recording."""
        made = self._apply(CLIENT_IDS, None, name.encode())
        assert made is not None
        return made.decode("utf-8", "replace")

    def mask(self, message: Message, version: int) -> bool:
        """Mask a message in place; return True if the message has changed."""
        changed = False
        for place in places(message, version, self._names):
            for field in place.fields:
                value = getattr(place.struct, field.attribute)
                if field.layout is not None or not value:
                    continue
                made = self._masked(place, field.attribute, value, field.holds_records)
                if made is not value:
                    setattr(place.struct, field.attribute, made)
                    changed = True
        return changed

    def _masked(self, place: StructPlace, attribute: str, value: Any, holds_records: bool) -> Any:
        if holds_records:
            return self._records(value, place.topic) if self._masks_records else value
        if attribute in SECRETS:
            return b""
        if attribute == "value" and isinstance(value, str):
            name = getattr(place.struct, "name", None) or getattr(place.struct, "config_name", None)
            return HIDDEN if name and _SECRET_SETTING.search(name) else value
        if self._masks_clients and isinstance(value, str):
            if attribute in _MEMBERS:
                return self._member(value)
            if attribute == "client_host":
                return self._substitutes.text(value)
        return value

    def _member(self, text: str) -> str:
        for name, made in self.clients.items():
            if text.startswith(name):
                return made + text[len(name) :]
        return text

    def _apply(self, place: str, topic: str | None, data: bytes | None) -> bytes | None:
        if not data:  # null and empty say what a record is, as tombstones do, and hold nothing
            return data
        for rule in self._rules:
            if rule.holds_for(place, topic):
                data = rule.change(data, self._substitutes)
                if not isinstance(data, bytes):
                    raise DecodeError(f"a function that masks {place} has returned no bytes")
        return data

    def _records(self, data: Any, topic: str | None) -> Any:
        """Return masked batches of a records field. A damaged batch and all after it are left out."""
        if not any(rule.holds_for(place, topic) for rule in self._rules for place in _RECORD_PLACES):
            return data
        view = memoryview(data)
        out = bytearray()
        try:
            for start, end, magic in split_batches(view):
                if magic != 2:
                    raise DecodeError(f"records of magic {magic} cannot be masked: record without a mask")
                header = read_header(view, start)
                if header.is_control or not header.record_count:
                    out += view[start:end]
                else:
                    rows = decode_batch(view, start, end, topic or "", -1)
                    out += _encoded([self._record(row, topic) for row in rows], header)
        except CorruptRecordError:
            pass
        return bytes(out)

    def _record(self, row: Record, topic: str | None) -> Record:
        return row._replace(
            key=self._apply(KEYS, topic, row.key),
            value=self._apply(VALUES, topic, row.value),
            headers=tuple((name, self._apply(HEADERS, topic, data)) for name, data in row.headers),
        )


def _encoded(rows: list[Record], header: BatchHeader) -> bytes:
    """Encode a changed batch, with the fields of the original header."""
    made = bytearray(
        encode_batch(
            [(row.key, row.value, row.headers, row.timestamp) for row in rows],
            base_offset=header.base_offset,
            codec=header.codec,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            timestamp_type=header.timestamp_type,
            is_transactional=header.is_transactional,
            partition_leader_epoch=header.partition_leader_epoch,
            offset_deltas=[row.offset - header.base_offset for row in rows],
        )
    )
    # The last record of a compacted batch may be gone; the batch still counts its offset.
    struct.pack_into(">i", made, LAST_OFFSET_DELTA_POSITION, header.last_offset_delta)
    refresh_crc(made, 0, len(made))
    return bytes(made)
