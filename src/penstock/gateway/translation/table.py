"""The table of all translations and refusals, from which the reference page is generated, too."""

from __future__ import annotations

from typing import NamedTuple

from penstock.gateway.translation import admin, fetch, group_offsets, groups, list_offsets, produce
from penstock.gateway.translation.rules import TranslationRule, by_fields, by_fields_exactly
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.since import FETCH_TOPIC_IDS_SINCE, PRODUCE_TOPIC_IDS_SINCE

NEWEST = 999
"""A version number above all existing ones: the upper bound of rules that also apply to future versions of
the cluster.
"""

_PRODUCE_BY_NAME_MAX = PRODUCE_TOPIC_IDS_SINCE - 1
_FETCH_BY_NAME_MAX = FETCH_TOPIC_IDS_SINCE - 1


def _same(
    api_key: int, versions: tuple[int, int], targets: tuple[int, int], more: str = "", inexact: str = ""
) -> TranslationRule:
    """Return a rule that copies fields by name, for versions in which each field has the same meaning.

    `more` is a remark for the reference page.
    """
    done = f"Fields are copied by their names{more and '; '}{more}."
    return TranslationRule(api_key, versions, targets, by_fields, done, inexact)


RULES: tuple[TranslationRule, ...] = (
    TranslationRule(
        ApiKey.PRODUCE,
        (0, 2),
        (3, _PRODUCE_BY_NAME_MAX),
        produce.produce,
        "Messages of magic 0 and 1 become one batch of magic 2 for each partition: offsets are "
        "counted from 0, wrappers unpacked, nested ones too, checksums checked, the codec kept. "
        "acks above 1 become all (-1).",
        "acks 0 is sent as acks 1, whose answer is dropped; a failure closes the connection. The "
        "whole set counts for max.message.bytes. Repeated sends of a client are new records, as "
        "ever.",
    ),
    _same(ApiKey.PRODUCE, (3, 11), (4, _PRODUCE_BY_NAME_MAX), "the batch stays as it is"),
    TranslationRule(
        ApiKey.FETCH,
        (0, 3),
        (4, _FETCH_BY_NAME_MAX),
        fetch.fetch,
        "Batches become messages of magic 0 (Fetch 0, 1) or 1 (Fetch 2, 3), compressed as they "
        "were; zstd becomes uncompressed. Markers and aborted records are left out. Each partition "
        "has at most as many bytes as asked, the last message may be cut; since 3 the first one "
        "comes whole.",
        "Headers are dropped, times as well in magic 0. Only committed records are read, and the "
        "high watermark is the last stable offset. Requests of replicas are refused.",
        takes_highest=True,
    ),
    _same(
        ApiKey.FETCH,
        (4, 11),
        (5, _FETCH_BY_NAME_MAX),
        "the batches stay as they are",
        "Batches in zstd reach clients below 10, too.",
    ),
    TranslationRule(
        ApiKey.LIST_OFFSETS,
        (0, 0),
        (1, 11),
        list_offsets.list_offsets,
        "Latest (-1) and earliest (-2) are exact, the latest as of committed records. Another time "
        "has the first offset that is not before it, or the end, or none if all records are later "
        "or have no times. Where more offsets are asked for, the start of the log follows.",
        "Starts of segments between the two are not listed. Times are those of records, where "
        "Kafka took those of files.",
        takes_highest=True,
    ),
    _same(ApiKey.LIST_OFFSETS, (1, 10), (2, 11), "all records count, not only committed ones"),
    TranslationRule(
        ApiKey.METADATA,
        (0, 0),
        (1, 11),
        admin.metadata,
        "No topics mean all topics. Topics that are named are created where the cluster allows it.",
        "KRaft answers 3 (UNKNOWN_TOPIC_OR_PARTITION) for a topic that is being made; brokers with "
        "ZooKeeper answered 5.",
    ),
    _same(ApiKey.METADATA, (1, 10), (2, 11), "topics are created as before"),
    TranslationRule(
        ApiKey.OFFSET_COMMIT,
        (0, 0),
        (2, 9),
        group_offsets.commit,
        "The gateway looks for the coordinator, and commits without generation and member. The "
        "errors 14 to 16 become 7 (REQUEST_TIMED_OUT).",
        "Offsets are those of the cluster's group, not of ZooKeeper, and expire with it. A group "
        "with members refuses them with 25 (UNKNOWN_MEMBER_ID).",
        needs=(ApiKey.FIND_COORDINATOR,),
    ),
    TranslationRule(
        ApiKey.OFFSET_COMMIT,
        (1, 1),
        (2, 9),
        group_offsets.commit,
        "Generation and member are passed on; a generation without a member is none, as 0.8.2 had it.",
        "The time of each offset is dropped: offsets expire as the cluster decides.",
    ),
    _same(ApiKey.OFFSET_COMMIT, (2, 8), (3, 9), "the retention is dropped after 4"),
    TranslationRule(
        ApiKey.OFFSET_FETCH,
        (0, 0),
        (1, 7),
        group_offsets.fetch,
        "The gateway looks for the coordinator. A partition without an offset has error 3 and "
        "offset -1. The errors 14 to 16 become 7.",
        "Offsets are those of the cluster's group. What is still in ZooKeeper is not found.",
        needs=(ApiKey.FIND_COORDINATOR,),
    ),
    TranslationRule(
        ApiKey.OFFSET_FETCH,
        (1, 1),
        (2, 7),
        group_offsets.fetch,
        "An error of the whole answer is that of each partition.",
    ),
    _same(ApiKey.OFFSET_FETCH, (2, 6), (3, 7)),
    _same(ApiKey.FIND_COORDINATOR, (0, 2), (1, 3), "ConsumerMetadata was its first name"),
    TranslationRule(
        ApiKey.FIND_COORDINATOR, (0, 3), (4, 6), groups.find_coordinator, "The key is sent as a list of one."
    ),
    _same(ApiKey.FIND_COORDINATOR, (4, 5), (5, 6)),
    TranslationRule(
        ApiKey.JOIN_GROUP,
        (0, 1),
        (2, 9),
        groups.join,
        "In version 0 the timeout of the session is that of rebalances. Error 79 "
        "(MEMBER_ID_REQUIRED) is answered by the gateway, which joins again with the id.",
    ),
    TranslationRule(
        ApiKey.JOIN_GROUP,
        (2, 8),
        (3, 9),
        groups.join,
        "Error 79 (MEMBER_ID_REQUIRED) is answered by the gateway.",
    ),
    _same(ApiKey.HEARTBEAT, (0, 3), (1, 4)),
    _same(ApiKey.LEAVE_GROUP, (0, 1), (1, 2)),
    TranslationRule(ApiKey.LEAVE_GROUP, (0, 2), (3, 5), groups.leave, "The member is sent as a list of one."),
    _same(ApiKey.LEAVE_GROUP, (3, 4), (4, 5)),
    _same(ApiKey.SYNC_GROUP, (0, 3), (1, 4)),
    _same(ApiKey.DESCRIBE_GROUPS, (0, 4), (1, 5)),
    _same(ApiKey.LIST_GROUPS, (0, 4), (1, 5)),
    TranslationRule(
        ApiKey.SASL_HANDSHAKE,
        (0, 0),
        (1, 1),
        by_fields,
        "The bare tokens that follow become SaslAuthenticate requests.",
        "A refusal closes the connection, as before 1.0; its reason is in the gateway's log only.",
        needs=(ApiKey.SASL_AUTHENTICATE,),
    ),
    _same(ApiKey.CREATE_TOPICS, (0, 6), (1, 7), "nothing is only validated in version 0"),
    _same(ApiKey.DELETE_TOPICS, (0, 4), (1, 5)),
    _same(ApiKey.OFFSET_FOR_LEADER_EPOCH, (0, 3), (1, 4), "the epoch of the leader is not compared"),
    _same(ApiKey.WRITE_TXN_MARKERS, (0, 1), (1, 2)),
    TranslationRule(
        ApiKey.DESCRIBE_ACLS,
        (0, 2),
        (1, 3),
        by_fields_exactly,
        "Version 0 asks for literal names, as brokers of 2.0 took it.",
        "Rules for prefixes are not in the answer to version 0.",
    ),
    TranslationRule(
        ApiKey.CREATE_ACLS, (0, 2), (1, 3), by_fields, "Version 0 makes rules for literal names."
    ),
    TranslationRule(
        ApiKey.DELETE_ACLS,
        (0, 2),
        (1, 3),
        by_fields_exactly,
        "Version 0 deletes rules for literal names.",
        "Rules for prefixes stay.",
    ),
    TranslationRule(
        ApiKey.DESCRIBE_CONFIGS,
        (0, 0),
        (1, 4),
        admin.describe_configs,
        "A setting of a topic counts as default unless the topic has it, one of a broker where "
        "nothing sets it.",
    ),
    _same(ApiKey.DESCRIBE_CONFIGS, (1, 3), (2, 4)),
    _same(ApiKey.ALTER_REPLICA_LOG_DIRS, (0, 1), (1, 2)),
    _same(
        ApiKey.DESCRIBE_LOG_DIRS,
        (0, 4),
        (1, 5),
        inexact="An error of the whole answer (since 3) is not shown before.",
    ),
    _same(ApiKey.CREATE_DELEGATION_TOKEN, (0, 1), (1, 2)),
    _same(ApiKey.RENEW_DELEGATION_TOKEN, (0, 1), (1, 2)),
    _same(ApiKey.EXPIRE_DELEGATION_TOKEN, (0, 1), (1, 2)),
    _same(ApiKey.DESCRIBE_DELEGATION_TOKEN, (0, 1), (1, 2)),
)
"""A dict from an API to its translation rules. If several rules apply, the first one is used."""


class Refusal(NamedTuple):
    """A range of versions of an API that the gateway does not translate, and the reason."""

    api_key: int
    versions: tuple[int, int]
    reason: str


_PREVIEW = "was a preview for share groups in 3.9 and 4.0, which no cluster takes from 4.1 on"
_ZOOKEEPER = (
    "is sent by controllers of clusters with ZooKeeper; no client sends it, and KRaft has nothing like it"
)

REFUSALS: tuple[Refusal, ...] = (
    Refusal(ApiKey.LEADER_AND_ISR, (0, NEWEST), f"LeaderAndIsr {_ZOOKEEPER}"),
    Refusal(ApiKey.STOP_REPLICA, (0, NEWEST), f"StopReplica {_ZOOKEEPER}"),
    Refusal(ApiKey.UPDATE_METADATA, (0, NEWEST), f"UpdateMetadata {_ZOOKEEPER}"),
    Refusal(
        ApiKey.CONTROLLED_SHUTDOWN,
        (0, NEWEST),
        "ControlledShutdown is sent by brokers to their controller; in KRaft a heartbeat of the "
        "broker takes its place",
    ),
    Refusal(
        ApiKey.ALTER_PARTITION,
        (0, 1),
        "AlterPartition is sent by brokers to their controller, which clients do not reach",
    ),
    Refusal(ApiKey.SHARE_GROUP_HEARTBEAT, (0, 0), f"ShareGroupHeartbeat 0 {_PREVIEW}"),
    Refusal(ApiKey.SHARE_GROUP_DESCRIBE, (0, 0), f"ShareGroupDescribe 0 {_PREVIEW}"),
    Refusal(ApiKey.SHARE_FETCH, (0, 0), f"ShareFetch 0 {_PREVIEW}"),
    Refusal(ApiKey.SHARE_ACKNOWLEDGE, (0, 0), f"ShareAcknowledge 0 {_PREVIEW}"),
)


def reason_of(api_key: int, version: int) -> str:
    """Return the reason why requests of an API in this version are not translated."""
    for refusal in REFUSALS:
        if refusal.api_key == api_key and refusal.versions[0] <= version <= refusal.versions[1]:
            return refusal.reason
    api = API_TABLE.get(api_key)
    if api is None:
        return f"there is no API with key {api_key}"
    return f"the cluster does not take {api.name} {version}, and there is no translation to what it takes"
