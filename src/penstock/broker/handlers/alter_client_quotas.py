"""AlterClientQuotas (49): set and remove quotas of clients and users. v1 is flexible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.broker.config.definition import INT_MAX, LONG_MAX
from penstock.broker.config.penstock_keys import CHANGES_MAX
from penstock.broker.context import Context
from penstock.broker.quota_entities import Entity, entity_of
from penstock.broker.requests.quotas import (
    CLIENT_CHARACTERS_MAX,
    CONNECTIONS,
    ENTITY_TYPES,
    FETCHED,
    IP,
    IP_STANDS_ALONE,
    MUTATIONS,
    PRODUCED,
    TIME,
)
from penstock.broker.requests.string_lengths import STRING_BYTES_MAX
from penstock.common.listening.addresses import is_address
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages import client_quota_record as stored
from penstock.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    OpData,
)
from penstock.protocol.messages.alter_client_quotas_request import EntityData as AskedEntity
from penstock.protocol.messages.alter_client_quotas_request import EntryData as AskedEntry
from penstock.protocol.messages.alter_client_quotas_response import (
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")

OF_CLIENTS = (PRODUCED, FETCHED, TIME, MUTATIONS)
"""The names of the quotas that users and clients can have."""
FRACTIONAL = (TIME, MUTATIONS)
"""The names of the quotas whose values need not be whole numbers."""

FRACTION = 1e-6
"""The largest difference from a whole number at which Kafka accepts a quota value as that number."""

ENTITIES_MAX = 10_000
"""The maximum number of entities with quotas."""


def alter_client_quotas(
    request: AlterClientQuotasRequest, context: Context[ServingNode]
) -> AlterClientQuotasResponse:
    """Change the quotas of all valid entities in one metadata write; each entity has its own result."""
    cluster = context.node.cluster
    times = Counter(map(_entity_of, request.entries))
    most = context.node.config.integer(CHANGES_MAX)
    answers: dict[Entity, EntryData] = {}
    good: dict[Entity, list[stored.ClientQuotaRecord]] = {}
    fresh = 0
    for entry in request.entries:
        entity = _entity_of(entry)
        answer = EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in _in_order(entity)],
            error_message=None,
        )
        answers[entity] = answer
        try:
            if times[entity] > 1 or len({op.key for op in entry.ops}) < len(entry.ops):
                raise error_for(ErrorCode.INVALID_REQUEST, "an entity, or one of its quotas, comes twice")
            _check_entity(entry.entity)
            _check_values(entry.ops, is_ip=IP in dict(entity))
            if len(good) >= most:
                raise error_for(
                    ErrorCode.POLICY_VIOLATION,
                    f"more than {most} entities in one request ({CHANGES_MAX}); ask again for the rest",
                )
            if entity not in cluster.quotas:
                if len(cluster.quotas) + fresh >= ENTITIES_MAX:
                    raise error_for(
                        ErrorCode.POLICY_VIOLATION,
                        f"{ENTITIES_MAX} entities have quotas, which is the limit: remove quotas first",
                    )
                fresh += 1
            good[entity] = _records(entity, entry.ops, cluster.quotas.get(entity, {}))
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.detail
    try:
        if not request.validate_only:
            cluster.alter([record for records in good.values() for record in records], context.now_ms)
    except StorageError as error:
        logger.error("%s", error)
        for entity in good:
            answers[entity].error_code = ErrorCode.KAFKA_STORAGE_ERROR
            answers[entity].error_message = str(error)
    context.node.quotas_changed()
    return AlterClientQuotasResponse(entries=list(answers.values()))


def _entity_of(entry: AskedEntry) -> Entity:
    return entity_of({part.entity_type: part.entity_name for part in entry.entity})


def _in_order(entity: Entity) -> list[tuple[str, str | None]]:
    """Return a quota entity's (type, name) pairs in the order that Apache Kafka's responses have."""
    known = len(ENTITY_TYPES)
    return sorted(entity, key=lambda part: ENTITY_TYPES.index(part[0]) if part[0] in ENTITY_TYPES else known)


def _check_entity(parts: Sequence[AskedEntity]) -> None:
    if not parts:
        raise error_for(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    kinds = {part.entity_type for part in parts}
    for part in parts:
        if part.entity_type not in ENTITY_TYPES:
            raise error_for(
                ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {part.entity_type}"
            )
        if len(part.entity_name or "") > CLIENT_CHARACTERS_MAX:
            raise error_for(
                ErrorCode.INVALID_REQUEST,
                f"an entity's name has at most {CLIENT_CHARACTERS_MAX} characters",
            )
        if part.entity_name == "":
            raise error_for(ErrorCode.INVALID_REQUEST, f"Empty {part.entity_type} not supported")
        if len((part.entity_name or "").encode()) > STRING_BYTES_MAX:
            raise error_for(
                ErrorCode.INVALID_REQUEST, f"a {part.entity_type} of more than {STRING_BYTES_MAX} bytes"
            )
    if IP in kinds and len(kinds) > 1:
        raise error_for(ErrorCode.INVALID_REQUEST, f"Invalid quota entity {IP_STANDS_ALONE}")
    for part in parts:
        if part.entity_type == IP and part.entity_name is not None and not is_address(part.entity_name):
            raise error_for(
                ErrorCode.INVALID_REQUEST,
                f"{part.entity_name} is not a valid IP; names of hosts are not known",
            )


def _check_values(ops: Sequence[OpData], *, is_ip: bool) -> None:
    for op in ops:
        if op.remove:
            continue
        if op.key not in ((CONNECTIONS,) if is_ip else OF_CLIENTS):
            raise error_for(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {op.key}")
        if not op.value > 0:
            raise error_for(ErrorCode.INVALID_REQUEST, f"Quota {op.key} must be greater than 0")
        if op.key not in FRACTIONAL:
            most, kind = (INT_MAX, "INT") if is_ip else (LONG_MAX, "LONG")
            if op.value > most:
                raise error_for(
                    ErrorCode.INVALID_REQUEST, f"Proposed value for {op.key} is too large for a {kind}."
                )
            if abs(op.value - round(op.value)) > FRACTION:
                raise error_for(ErrorCode.INVALID_REQUEST, f"{op.key} cannot be a fractional value.")


def _records(
    entity: Entity, ops: Sequence[OpData], present: dict[str, float]
) -> list[stored.ClientQuotaRecord]:
    """Return metadata records for the quota changes; none for a quota that already has the new value."""
    parts = [stored.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return [
        stored.ClientQuotaRecord(
            entity=parts, key=op.key, value=0.0 if op.remove else op.value, remove=op.remove
        )
        for op in ops
        if present.get(op.key) != (None if op.remove else op.value)
    ]
