"""The versions since which messages have what callers branch on, where several modules need the same fact.

Names begin with the API. A fact that one module alone needs is in that module. This module imports nothing,
so that it costs a start nothing.
"""

ADD_PARTITIONS_TO_TXN_SEVERAL_SINCE = 4
"""Several transactions in one AddPartitionsToTxn, which only brokers send."""

API_VERSIONS_CLUSTER_ID_SINCE = 5
"""The cluster id and node id that the client expects, in ApiVersions (KIP-1242)."""

API_VERSIONS_SOFTWARE_SINCE = 3
"""The name and version of the client's software in ApiVersions (KIP-511)."""

CONSUMER_GROUP_HEARTBEAT_OWN_IDS_SINCE = 1
"""Members choose their ids themselves in ConsumerGroupHeartbeat (KIP-1082)."""

CREATE_PARTITIONS_QUOTA_ERROR_SINCE = 3
"""Clients support THROTTLING_QUOTA_EXCEEDED (89) in answers to CreatePartitions (KIP-599)."""

CREATE_TOPICS_QUOTA_ERROR_SINCE = 6
"""Clients support THROTTLING_QUOTA_EXCEEDED (89) in answers to CreateTopics (KIP-599)."""

DELETE_TOPICS_DISABLED_ERROR_SINCE = 3
"""Clients support TOPIC_DELETION_DISABLED (73) in answers to DeleteTopics."""

DELETE_TOPICS_IDS_SINCE = 6
"""One list of topics by name or id in DeleteTopics, instead of names (KIP-516)."""

DELETE_TOPICS_QUOTA_ERROR_SINCE = 5
"""Clients support THROTTLING_QUOTA_EXCEEDED (89) in answers to DeleteTopics (KIP-599)."""

END_TXN_RAISES_EPOCH_SINCE = 5
"""EndTxn raises the producer's epoch, and returns id and epoch (KIP-890)."""

FETCH_ENDPOINTS_SINCE = 16
"""Addresses of leaders in answers to Fetch (KIP-951)."""

FETCH_MAGIC_1_SINCE = 2
"""Records of Fetch are messages of magic 1, with timestamps (KIP-32)."""

FETCH_MAGIC_2_SINCE = 4
"""Records of Fetch are batches of magic 2 (KIP-98)."""

FETCH_REPLICA_STATE_SINCE = 15
"""The id of a replica is in a struct of its own in Fetch (KIP-903)."""

FETCH_SESSIONS_SINCE = 7
"""Fetch has sessions (KIP-227)."""

FETCH_TOPIC_IDS_SINCE = 13
"""Ids of topics in Fetch, instead of names (KIP-516)."""

FIND_COORDINATOR_KEYS_SINCE = 4
"""Several keys in one FindCoordinator (KIP-699)."""

INIT_PRODUCER_ID_RAISES_EPOCH_SINCE = 3
"""InitProducerId takes the present id and epoch, and raises the epoch (KIP-360)."""

JOIN_GROUP_TWO_TIMEOUTS_SINCE = 1
"""A timeout of rebalances in JoinGroup, beside that of the session (KIP-62)."""

LEAVE_GROUP_MEMBERS_SINCE = 3
"""Several members in one LeaveGroup (KIP-345)."""

LIST_OFFSETS_ISOLATION_SINCE = 2
"""An isolation level in ListOffsets (KIP-98). Brokers before it have no transactions."""

LIST_OFFSETS_MAX_TIMESTAMP_SINCE = 7
"""ListOffsets finds the record with the greatest timestamp (KIP-734)."""

METADATA_CREATION_SINCE = 4
"""Metadata can ask for a topic without creating it (KAFKA-5291)."""

METADATA_TOPIC_IDS_SINCE = 12
"""Metadata finds topics by id (KIP-516). Versions 10 and 11 have the field, without a meaning in requests."""

OFFSET_COMMIT_TOPIC_IDS_SINCE = 10
"""Ids of topics in OffsetCommit, instead of names (KIP-848)."""

OFFSET_FETCH_GROUPS_SINCE = 8
"""Several groups in one OffsetFetch (KIP-709)."""

OFFSET_FETCH_TOPIC_IDS_SINCE = 10
"""Ids of topics in OffsetFetch, instead of names (KIP-848)."""

PRODUCE_ENDPOINTS_SINCE = 10
"""Addresses of leaders in answers to Produce (KIP-951)."""

PRODUCE_FLEXIBLE_SINCE = 9
"""Compact lengths and tagged fields in Produce, and a request header of version 2 (KIP-482)."""

PRODUCE_IMPLICIT_ADDS_SINCE = 12
"""Leaders add the partitions of a Produce to its transaction (KIP-890)."""

PRODUCE_MAGIC_1_SINCE = 2
"""Records of Produce are messages of magic 1, with timestamps (KIP-32)."""

PRODUCE_MAGIC_2_SINCE = 3
"""Records of Produce are batches of magic 2 (KIP-98). Before, they have the format of their magic byte."""

PRODUCE_TOPIC_IDS_SINCE = 13
"""Ids of topics in Produce, instead of names (KIP-516)."""

PRODUCE_TRANSACTIONAL_ID_SINCE = 3
"""A transactional id in Produce (KIP-98)."""

PRODUCE_ZSTD_SINCE = 7
"""Produce may carry records compressed by zstd (KIP-110)."""

STREAMS_HEARTBEAT_TAGS_SINCE = 1
"""The status for missing client tags in StreamsGroupHeartbeat (KIP-1071)."""

SYNC_GROUP_PROTOCOL_SINCE = 5
"""The protocol's type and name in SyncGroup (KIP-559)."""

TXN_OFFSET_COMMIT_IMPLICIT_ADDS_SINCE = 5
"""The coordinator adds the partition of a TxnOffsetCommit to its transaction (KIP-890)."""

TXN_OFFSET_COMMIT_TOPIC_IDS_SINCE = 6
"""Ids of topics in TxnOffsetCommit, instead of names, and errors for unknown groups and stale member epochs
(KIP-1319)."""
