"""First versions of messages that have a feature which several modules check for.

Names begin with the API. A version that only one module checks for is in that module. This module imports
nothing, so that it does not slow down the start.
"""

ADD_PARTITIONS_TO_TXN_SEVERAL_SINCE = 4
"""The first version of AddPartitionsToTxn with several transactions in one request. Only brokers send it."""

API_VERSIONS_CLUSTER_ID_SINCE = 5
"""The first version of ApiVersions in which clients send the cluster id and node id that they expect
(KIP-1242).
"""

API_VERSIONS_SOFTWARE_SINCE = 3
"""The first version of ApiVersions that has the name and version of the client's software (KIP-511)."""

CONSUMER_GROUP_HEARTBEAT_OWN_IDS_SINCE = 1
"""The first version of ConsumerGroupHeartbeat in which members choose their own ids (KIP-1082)."""

CREATE_PARTITIONS_QUOTA_ERROR_SINCE = 3
"""The first version of CreatePartitions in whose answers clients support THROTTLING_QUOTA_EXCEEDED (89,
KIP-599).
"""

CREATE_TOPICS_QUOTA_ERROR_SINCE = 6
"""The first version of CreateTopics in whose answers clients support THROTTLING_QUOTA_EXCEEDED (89,
KIP-599).
"""

DELETE_TOPICS_DISABLED_ERROR_SINCE = 3
"""The first version of DeleteTopics in whose answers clients support TOPIC_DELETION_DISABLED (73)."""

DELETE_TOPICS_IDS_SINCE = 6
"""The first version of DeleteTopics with one list of topics by name or id, instead of names (KIP-516)."""

DELETE_TOPICS_QUOTA_ERROR_SINCE = 5
"""The first version of DeleteTopics in whose answers clients support THROTTLING_QUOTA_EXCEEDED (89,
KIP-599).
"""

END_TXN_RAISES_EPOCH_SINCE = 5
"""The first version of EndTxn that raises the producer's epoch, and returns id and epoch (KIP-890)."""

FETCH_ENDPOINTS_SINCE = 16
"""The first version of Fetch whose answers have addresses of leaders (KIP-951)."""

FETCH_MAGIC_1_SINCE = 2
"""The first version of Fetch that returns messages of magic 1, with timestamps (KIP-32)."""

FETCH_MAGIC_2_SINCE = 4
"""The first version of Fetch that returns record batches of magic 2 (KIP-98)."""

FETCH_REPLICA_STATE_SINCE = 15
"""The first version of Fetch that has a replica's id in a struct of its own (KIP-903)."""

FETCH_SESSIONS_SINCE = 7
"""The first version of Fetch with fetch sessions (KIP-227)."""

FETCH_TOPIC_IDS_SINCE = 13
"""The first version of Fetch with topic ids instead of names (KIP-516)."""

FIND_COORDINATOR_KEYS_SINCE = 4
"""The first version of FindCoordinator with several keys in one request (KIP-699)."""

INIT_PRODUCER_ID_RAISES_EPOCH_SINCE = 3
"""The first version of InitProducerId that takes the present id and epoch, and raises the epoch (KIP-360)."""

JOIN_GROUP_TWO_TIMEOUTS_SINCE = 1
"""The first version of JoinGroup with a rebalance timeout besides the session timeout (KIP-62)."""

LEAVE_GROUP_MEMBERS_SINCE = 3
"""The first version of LeaveGroup with several members in one request (KIP-345)."""

LIST_OFFSETS_ISOLATION_SINCE = 2
"""The first version of ListOffsets with an isolation level (KIP-98). Brokers that lack this version have no
transactions.
"""

LIST_OFFSETS_MAX_TIMESTAMP_SINCE = 7
"""The first version of ListOffsets that finds the record with the greatest timestamp (KIP-734)."""

METADATA_CREATION_SINCE = 4
"""The first version of Metadata that can ask for a topic without creating it (KAFKA-5291)."""

METADATA_TOPIC_IDS_SINCE = 12
"""The first version of Metadata that finds topics by id (KIP-516). Requests of versions 10 and 11 have the
field, but it has no effect there.
"""

OFFSET_COMMIT_TOPIC_IDS_SINCE = 10
"""The first version of OffsetCommit with topic ids instead of names (KIP-848)."""

OFFSET_FETCH_GROUPS_SINCE = 8
"""The first version of OffsetFetch with several groups in one request (KIP-709)."""

OFFSET_FETCH_TOPIC_IDS_SINCE = 10
"""The first version of OffsetFetch with topic ids instead of names (KIP-848)."""

PRODUCE_ENDPOINTS_SINCE = 10
"""The first version of Produce whose answers have addresses of leaders (KIP-951)."""

PRODUCE_FLEXIBLE_SINCE = 9
"""The first version of Produce with compact lengths, tagged fields, and a request header of version 2
(KIP-482).
"""

PRODUCE_IMPLICIT_ADDS_SINCE = 12
"""The first version of Produce with which leaders add the partitions to the transaction (KIP-890)."""

PRODUCE_MAGIC_1_SINCE = 2
"""The first version of Produce that carries messages of magic 1, with timestamps (KIP-32)."""

PRODUCE_MAGIC_2_SINCE = 3
"""The first version of Produce that carries batches of magic 2 (KIP-98). In older versions, the magic byte of
each message gives its format.
"""

PRODUCE_TOPIC_IDS_SINCE = 13
"""The first version of Produce with topic ids instead of names (KIP-516)."""

PRODUCE_TRANSACTIONAL_ID_SINCE = 3
"""The first version of Produce with a transactional id (KIP-98)."""

PRODUCE_ZSTD_SINCE = 7
"""The first version of Produce that may carry records compressed with zstd (KIP-110)."""

STREAMS_HEARTBEAT_TAGS_SINCE = 1
"""The first version of StreamsGroupHeartbeat that has the status for missing client tags (KIP-1071)."""

SYNC_GROUP_PROTOCOL_SINCE = 5
"""The first version of SyncGroup that has the protocol's type and name (KIP-559)."""

TXN_OFFSET_COMMIT_IMPLICIT_ADDS_SINCE = 5
"""The first version of TxnOffsetCommit with which the coordinator adds the partition to the transaction
(KIP-890).
"""

TXN_OFFSET_COMMIT_TOPIC_IDS_SINCE = 6
"""The first version of TxnOffsetCommit with topic ids instead of names, and with errors for unknown groups
and stale member epochs (KIP-1319).
"""
