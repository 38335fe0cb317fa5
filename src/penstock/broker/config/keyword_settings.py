"""The settings of the broker as keyword arguments, for editors and type checkers. Generated: do not edit.

Written by tools/write_broker_settings.py from the tables of settings. Settings without effect are left out:
give them in `config`, under their dotted names. Never imported by a broker that runs.
"""

from __future__ import annotations

from typing import TypedDict


class BrokerSettings(TypedDict, total=False):
    """The settings that `penstock.Broker` takes as keywords, beside its own arguments."""

    advertised_host_name: str
    """Host for clients; replaced by advertised.listeners."""
    advertised_listeners: str
    """Addresses for clients, where they differ from listeners."""
    advertised_port: int
    """Port for clients; replaced by advertised.listeners."""
    auto_create_topics_enable: bool
    """Create an unknown topic when a client asks for it. Default: true."""
    auto_leader_rebalance_enable: bool
    """In a cluster: return leadership to the preferred replicas automatically. Default: true."""
    broker_heartbeat_interval_ms: int
    """In a cluster: interval at which a broker sends heartbeats to the controller. Default: 2000."""
    broker_id: int
    """Older name of node.id."""
    broker_rack: str
    """Rack in Metadata responses, and for the placement of replicas."""
    broker_session_timeout_ms: int
    """In a cluster: time without a heartbeat after which a broker is fenced. Default: 9000."""
    compression_gzip_level: int
    """Default of the topic setting compression.gzip.level. Compression level if the broker itself
    compresses with gzip. Default: -1."""
    compression_lz4_level: int
    """Default of the topic setting compression.lz4.level. Compression level if the broker itself
    compresses with lz4. Default: 9."""
    compression_type: str
    """Default of the topic setting compression.type. Codec with which records are stored; `producer`
    leaves batches as they were sent. Default: producer."""
    compression_zstd_level: int
    """Default of the topic setting compression.zstd.level. Compression level if the broker itself
    compresses with zstd. Default: 3."""
    connections_max_idle_ms: int
    """Time after which a connection without requests is closed. Default: 600000."""
    controller_quota_window_num: int
    """Number of windows over which controller mutation quotas are measured. Default: 11."""
    controller_quota_window_size_seconds: int
    """Length of one window of quota measurement, in seconds. Default: 1."""
    default_replication_factor: int
    """Replication factor of new topics without one. Default: 1."""
    delete_topic_enable: bool
    """Allow clients to delete topics. Default: true."""
    errors_deadletterqueue_auto_create_topics_enable: bool
    """Create the dead letter topic of a share group when its first record is written. Default: false."""
    errors_deadletterqueue_topic_name_prefix: str
    """Prefix that names of dead letter topics of share groups must have; empty allows all. Default:
    dlq.."""
    fetch_max_bytes: int
    """Maximum bytes of a Fetch response. Default: 57671680."""
    group_consumer_assignment_interval_ms: int
    """Minimum time between two new assignments of a consumer group. Default: 1000."""
    group_consumer_assignors: str
    """Assignors that members may choose. The first one is used if no member chooses one. Default:
    uniform,range."""
    group_consumer_heartbeat_interval_ms: int
    """Interval at which members of consumer groups send heartbeats. Default: 5000."""
    group_consumer_max_assignment_interval_ms: int
    """Maximum assignment interval that a group may have. Default: 15000."""
    group_consumer_max_heartbeat_interval_ms: int
    """Maximum heartbeat interval that a group may have. Default: 15000."""
    group_consumer_max_session_timeout_ms: int
    """Maximum session timeout that a group may have. Default: 60000."""
    group_consumer_max_size: int
    """Maximum number of members of a consumer group. Default: 2147483647."""
    group_consumer_migration_policy: str
    """Allowed conversions of groups with members between the classic and the consumer protocol.
    Default: bidirectional."""
    group_consumer_min_assignment_interval_ms: int
    """Minimum assignment interval that a group may have. Default: 0."""
    group_consumer_min_heartbeat_interval_ms: int
    """Minimum heartbeat interval that a group may have. Default: 5000."""
    group_consumer_min_session_timeout_ms: int
    """Minimum session timeout that a group may have. Default: 45000."""
    group_consumer_regex_refresh_interval_ms: int
    """Interval at which a group's regular expressions are matched with topics if metadata do not
    change. Default: 600000."""
    group_consumer_session_timeout_ms: int
    """Time without a heartbeat after which a member is removed from a consumer group. Default: 45000."""
    group_coordinator_rebalance_protocols: str
    """Group protocols that the broker offers. Share groups depend only on the feature share.version.
    Default: classic,consumer,streams."""
    group_initial_rebalance_delay_ms: int
    """Time for which a new group waits for more members. Apache Kafka's default is 3000. Default: 0."""
    group_max_session_timeout_ms: int
    """Maximum session timeout in classic groups. Default: 1800000."""
    group_max_size: int
    """Maximum members of a classic group. Default: 2147483647."""
    group_min_session_timeout_ms: int
    """Minimum session timeout in classic groups. Default: 6000."""
    group_share_assignment_interval_ms: int
    """Minimum time between two new assignments of a share group. Default: 1000."""
    group_share_assignors: str
    """Assignor of share groups; `simple` is the only one. Default: simple."""
    group_share_delivery_count_limit: int
    """Maximum number of deliveries of a record to a share group; after that, it is archived. Default:
    5."""
    group_share_heartbeat_interval_ms: int
    """Interval at which members of share groups send heartbeats. Default: 5000."""
    group_share_initialize_retry_interval_ms: int
    """Time after which an unanswered request to initialize share partitions is sent again. Default:
    30000."""
    group_share_max_assignment_interval_ms: int
    """Maximum assignment interval that a share group may have. Default: 15000."""
    group_share_max_delivery_count_limit: int
    """Maximum delivery count limit that a share group may set. Default: 10."""
    group_share_max_heartbeat_interval_ms: int
    """Maximum heartbeat interval that a share group may have. Default: 15000."""
    group_share_max_partition_max_record_locks: int
    """Maximum limit of acquired records per partition that a share group may set. Default: 4000."""
    group_share_max_record_lock_duration_ms: int
    """Maximum duration of record locks that a share group may set. Default: 60000."""
    group_share_max_session_timeout_ms: int
    """Maximum session timeout that a share group may have. Default: 60000."""
    group_share_max_share_sessions: int
    """Maximum number of share sessions of a broker; each fetching member of a share group has one.
    Default: 2000."""
    group_share_max_size: int
    """Maximum number of members of a share group. Default: 200."""
    group_share_min_assignment_interval_ms: int
    """Minimum assignment interval that a share group may have. Default: 0."""
    group_share_min_delivery_count_limit: int
    """Minimum delivery count limit that a share group may set. Default: 2."""
    group_share_min_heartbeat_interval_ms: int
    """Minimum heartbeat interval that a share group may have. Default: 5000."""
    group_share_min_partition_max_record_locks: int
    """Minimum limit of acquired records per partition that a share group may set. Default: 100."""
    group_share_min_record_lock_duration_ms: int
    """Minimum duration of record locks that a share group may set. Default: 15000."""
    group_share_min_session_timeout_ms: int
    """Minimum session timeout that a share group may have. Default: 45000."""
    group_share_partition_max_record_locks: int
    """Maximum number of records of a partition that a share group may have acquired at a time. Default:
    2000."""
    group_share_record_lock_duration_ms: int
    """Time after which a record that a share group's member has not acknowledged is released. Default:
    30000."""
    group_share_session_timeout_ms: int
    """Time without a heartbeat after which a member is removed from a share group. Default: 45000."""
    group_streams_acceptable_recovery_lag: int
    """Maximum lag, in offsets, at which a streams group's member counts as caught up. Default: 10000."""
    group_streams_assignment_interval_ms: int
    """Minimum time between two new assignments of a streams group. Default: 1000."""
    group_streams_assignors: str
    """Assignor of streams groups; `sticky` is the only one. Default: sticky."""
    group_streams_heartbeat_interval_ms: int
    """Interval at which members of streams groups send heartbeats. Default: 5000."""
    group_streams_initial_rebalance_delay_ms: int
    """Time for which a streams group that was empty waits for more members before it assigns tasks.
    Default: 3000."""
    group_streams_max_assignment_interval_ms: int
    """Maximum assignment interval that a streams group may have. Default: 15000."""
    group_streams_max_heartbeat_interval_ms: int
    """Maximum heartbeat interval that a streams group may have. Default: 15000."""
    group_streams_max_session_timeout_ms: int
    """Maximum session timeout that a streams group may have. Default: 60000."""
    group_streams_max_size: int
    """Maximum number of members of a streams group. Default: 2147483647."""
    group_streams_max_standby_replicas: int
    """Maximum number of standby tasks for each stateful task that a streams group may set. Default: 2."""
    group_streams_min_assignment_interval_ms: int
    """Minimum assignment interval that a streams group may have. Default: 0."""
    group_streams_min_heartbeat_interval_ms: int
    """Minimum heartbeat interval that a streams group may have. Default: 5000."""
    group_streams_min_session_timeout_ms: int
    """Minimum session timeout that a streams group may have. Default: 45000."""
    group_streams_min_task_offset_interval_ms: int
    """Shortest interval between reports of task offsets that a streams group may have. Default: 15000."""
    group_streams_num_standby_replicas: int
    """Number of standby tasks for each stateful task of a streams group. Default: 0."""
    group_streams_rack_aware_assignment_tags: str
    """Keys of the client tags that the members of streams groups must have."""
    group_streams_session_timeout_ms: int
    """Time without a heartbeat after which a member is removed from a streams group. Default: 45000."""
    group_streams_task_offset_interval_ms: int
    """Interval at which members of streams groups report the restored offsets of their tasks. Default:
    60000."""
    host_name: str
    """Address to listen on; replaced by listeners. Needs port."""
    leader_imbalance_check_interval_seconds: int
    """In a cluster: interval at which leadership is returned to the preferred replicas. Default: 300."""
    listener_security_protocol_map: str
    """Security protocol of each listener. Default: PLAINTEXT:PLAINTEXT."""
    listeners: str
    """Addresses to listen on: PLAINTEXT://HOST:PORT. Default: PLAINTEXT://127.0.0.1:9092."""
    log_cleaner_backoff_ms: int
    """Interval at which the broker checks for topics to compact. Default: 15000."""
    log_cleaner_dedupe_buffer_size: int
    """Bytes for the keys of one compaction, 24 each; records with further keys wait for the next.
    Default: 134217728."""
    log_cleaner_delete_retention_ms: int
    """Default of the topic setting delete.retention.ms. Time for which tombstones stay in a compacted
    topic. Default: 86400000."""
    log_cleaner_enable: bool
    """Compact topics whose cleanup.policy contains compact. Default: true."""
    log_cleaner_max_compaction_lag_ms: int
    """Default of the topic setting max.compaction.lag.ms. Maximum time until a record becomes eligible
    for compaction. Default: 9223372036854775807."""
    log_cleaner_min_cleanable_ratio: float
    """Default of the topic setting min.cleanable.dirty.ratio. Fraction of uncompacted bytes in a log at
    which a compaction starts. Default: 0.5."""
    log_cleaner_min_compaction_lag_ms: int
    """Default of the topic setting min.compaction.lag.ms. Minimum time until a record becomes eligible
    for compaction. Default: 0."""
    log_cleanup_policy: str
    """Default of the topic setting cleanup.policy. Treatment of outdated data: delete, compact or both.
    Default: delete."""
    log_dir: str
    """Data directory; if empty, the broker keeps everything in memory."""
    log_dirs: str
    """Data directories; the first gets the metadata log if none has it."""
    log_flush_interval_messages: int
    """Default of the topic setting flush.messages. Number of records after which the log is flushed to
    disk; 1 means after every batch. Default: 9223372036854775807."""
    log_flush_interval_ms: int
    """Default of the topic setting flush.ms. Milliseconds after which the log is flushed to disk."""
    log_flush_offset_checkpoint_interval_ms: int
    """Interval at which the recovery points of logs are written to disk. Default: 60000."""
    log_flush_scheduler_interval_ms: int
    """Interval at which the broker checks if logs must be flushed. Default: 9223372036854775807."""
    log_flush_start_offset_checkpoint_interval_ms: int
    """Interval at which the start offsets of logs are written to disk. Default: 60000."""
    log_index_interval_bytes: int
    """Default of the topic setting index.interval.bytes. Bytes of log between two entries of the offset
    index. Default: 4096."""
    log_index_size_max_bytes: int
    """Default of the topic setting segment.index.bytes. Maximum size of an index file, in bytes.
    Default: 10485760."""
    log_message_downconversion_enable: bool
    """Default of the topic setting message.downconversion.enable. Convert records for consumers older
    than 0.11. Default: true."""
    log_message_timestamp_after_max_ms: int
    """Default of the topic setting message.timestamp.after.max.ms. Maximum difference, in ms, by which
    a create time may be later than the broker's clock. Default: 3600000."""
    log_message_timestamp_before_max_ms: int
    """Default of the topic setting message.timestamp.before.max.ms. Maximum difference, in ms, by which
    a create time may be earlier than the broker's clock. Default: 9223372036854775807."""
    log_message_timestamp_type: str
    """Default of the topic setting message.timestamp.type. Time in records: CreateTime (of the
    producer) or LogAppendTime (of the broker). Default: CreateTime."""
    log_preallocate: bool
    """Default of the topic setting preallocate. Create segment files at their full size. Default:
    false."""
    log_retention_bytes: int
    """Default of the topic setting retention.bytes. Maximum bytes of a partition; beyond it, old
    segments are deleted. -1 means no limit. Default: -1."""
    log_retention_check_interval_ms: int
    """Interval between retention checks. Default: 300000."""
    log_retention_hours: int
    """Default of the topic setting retention.ms. Age at which segments are deleted; -1 means never.
    Default: 168."""
    log_retention_minutes: int
    """Default of the topic setting retention.ms. Age at which segments are deleted; -1 means never."""
    log_retention_ms: int
    """Default of the topic setting retention.ms. Age at which segments are deleted; -1 means never."""
    log_roll_hours: int
    """Default of the topic setting segment.ms. Age of a segment at which a new one begins. Default:
    168."""
    log_roll_jitter_hours: int
    """Default of the topic setting segment.jitter.ms. Maximum random time subtracted from segment.ms,
    so that partitions do not roll all at once. Default: 0."""
    log_roll_jitter_ms: int
    """Default of the topic setting segment.jitter.ms. Maximum random time subtracted from segment.ms,
    so that partitions do not roll all at once."""
    log_roll_ms: int
    """Default of the topic setting segment.ms. Age of a segment at which a new one begins."""
    log_segment_bytes: int
    """Default of the topic setting segment.bytes. Size in bytes at which a new segment begins. Default:
    1073741824."""
    log_segment_delete_delay_ms: int
    """Default of the topic setting file.delete.delay.ms. Time between the removal of a segment from the
    log and the deletion of its files. Default: 60000."""
    max_connection_creation_rate: int
    """Maximum number of connections that are accepted per second; further ones wait. Default:
    2147483647."""
    max_connections: int
    """Maximum number of open connections; further ones are closed. Default: 2147483647."""
    max_connections_per_ip: int
    """Maximum number of open connections from one address. Default: 2147483647."""
    max_connections_per_ip_overrides: str
    """Exceptions from max.connections.per.ip: HOST:NUMBER,HOST:NUMBER."""
    max_incremental_fetch_session_cache_slots: int
    """Maximum number of fetch sessions; further ones replace idle sessions, or are refused. Default:
    1000."""
    max_request_partition_size_limit: int
    """Maximum number of partitions in one response to DescribeTopicPartitions. Default: 2000."""
    message_max_bytes: int
    """Default of the topic setting max.message.bytes. Maximum size of a record batch as it is sent
    (compressed), in bytes. Default: 1048588."""
    metadata_log_max_record_bytes_between_snapshots: int
    """Bytes of metadata records after a snapshot that cause a new snapshot. Default: 20971520."""
    metadata_max_retention_bytes: int
    """Maximum size of the metadata log with its snapshots; old snapshots are deleted, never the newest.
    Default: 104857600."""
    metadata_max_retention_ms: int
    """Age at which a metadata snapshot, and the log below the next one, is deleted; -1 means never.
    Default: 604800000."""
    min_insync_replicas: int
    """Default of the topic setting min.insync.replicas. Minimum number of in-sync replicas for writes
    with acks=all. Default: 1."""
    node_id: int
    """Id of this broker, unique in the cluster. Default: 1."""
    num_partitions: int
    """Partition count of new topics without one. Default: 1."""
    offset_metadata_max_bytes: int
    """Maximum bytes of a commit's metadata. Default: 4096."""
    offsets_retention_check_interval_ms: int
    """Interval at which expired offsets and groups are removed. Default: 600000."""
    offsets_retention_minutes: int
    """Time until offsets of an empty group expire. Default: 10080."""
    offsets_topic_num_partitions: int
    """Partitions of __consumer_offsets. Default: 50."""
    offsets_topic_replication_factor: int
    """Replication factor of a new __consumer_offsets, limited to the number of brokers. Default: 3."""
    offsets_topic_segment_bytes: int
    """Segment bytes of __consumer_offsets. Default: 104857600."""
    penstock_authentication_timeout_ms: int
    """Time after which a connection that has not completed TLS and SASL is closed. Default: 30000."""
    penstock_brokers: int
    """Number of brokers that the process runs, with ids from `node.id` on. For tests. Default: 1."""
    penstock_client_metrics: bool
    """Accept metrics that clients push (KIP-714) according to subscriptions; store the newest values.
    Default: false."""
    penstock_kept_state_bytes_max: int
    """Maximum memory for clients' state: fetch sessions, groups, offsets, and unread responses.
    Default: 67108864."""
    penstock_log_open_ms_max: int
    """Milliseconds per second for which requests may open logs; after that, they get a retriable error.
    Default: 500."""
    penstock_metadata_version: str
    """The release of Apache Kafka that a new data directory is for, such as 3.9; any 4.x by default."""
    penstock_metrics_host: str
    """Address at which the broker serves /metrics and /health. Default: 127.0.0.1."""
    penstock_metrics_port: int
    """Port of /metrics and /health; 0 takes a free port. If it is not set, there are no metrics."""
    penstock_producers_max: int
    """Maximum number of idempotent producers in all partitions; beyond it, idle ones are dropped.
    Default: 100000."""
    penstock_request_changes_max: int
    """Maximum number of topics, configured resources or quota entities that one request may change.
    Default: 1000."""
    penstock_request_entries_max: int
    """Maximum number of entries, such as topics, in one request; beyond it, the connection is closed.
    Default: 12000."""
    penstock_response_bytes_max: int
    """Maximum size of a response without records, in bytes; beyond it, the connection is closed.
    Default: 16777216."""
    penstock_unauthenticated_connections_max: int
    """Maximum number of unauthenticated connections; for a further one, the oldest is closed. Default:
    1000."""
    penstock_unpack_max_bytes: int
    """Maximum bytes that the broker decompresses for one request, if it must read the records. Default:
    33554432."""
    penstock_unpack_max_records: int
    """Maximum number of records that the broker reads for one request, if it must read the records.
    Default: 250000."""
    producer_id_expiration_ms: int
    """Time after which the sequence numbers of an idle producer are removed. Default: 86400000."""
    queued_max_request_bytes: int
    """Maximum bytes of incomplete requests; the slowest sender is disconnected. -1 means no limit.
    Default: 134217728."""
    quota_window_num: int
    """Number of windows over which client quotas are measured. Default: 11."""
    quota_window_size_seconds: int
    """Length of one window of quota measurement, in seconds. Default: 1."""
    replica_fetch_backoff_ms: int
    """In a cluster: time until a follower fetches a partition again after an error. Kafka's is 1000.
    Default: 100."""
    replica_fetch_max_bytes: int
    """In a cluster: maximum bytes of one partition in one fetch of a follower. Default: 1048576."""
    replica_fetch_min_bytes: int
    """In a cluster: minimum bytes for which a follower's fetch waits at the leader. Default: 1."""
    replica_fetch_response_max_bytes: int
    """In a cluster: maximum bytes of all partitions in one fetch of a follower. Default: 10485760."""
    replica_fetch_wait_max_ms: int
    """In a cluster: maximum time for which the leader makes a follower's fetch wait. Default: 500."""
    replica_lag_time_max_ms: int
    """In a cluster: time after which a follower that lags behind is removed from the ISR. Default:
    30000."""
    replica_selector_class: str
    """In a cluster: RackAwareReplicaSelector sends consumers to replicas in their rack."""
    share_coordinator_cold_partition_snapshot_interval_ms: int
    """Time after which the broker writes a new snapshot of a share partition without changes. Default:
    300000."""
    share_coordinator_snapshot_update_records_per_snapshot: int
    """Maximum number of update records of a share partition between two snapshots of its state.
    Default: 500."""
    share_coordinator_state_topic_min_isr: int
    """min.insync.replicas of a new __share_group_state, limited to its replication factor. Default: 2."""
    share_coordinator_state_topic_num_partitions: int
    """Number of partitions of a new __share_group_state. Default: 50."""
    share_coordinator_state_topic_prune_interval_ms: int
    """Interval at which records that are no longer needed are deleted from __share_group_state.
    Default: 300000."""
    share_coordinator_state_topic_replication_factor: int
    """Replication factor of a new __share_group_state, limited to the number of brokers. Default: 3."""
    share_coordinator_state_topic_segment_bytes: int
    """Segment size of a new __share_group_state, in bytes. Default: 104857600."""
    share_coordinator_write_timeout_ms: int
    """Maximum time for which a response of the share coordinator waits for in-sync replicas. Default:
    5000."""
    socket_listen_backlog_size: int
    """Maximum connections that wait for acceptance. Default: 50."""
    socket_receive_buffer_bytes: int
    """Size of the receive buffer of sockets, in bytes; -1 means the system's default. Default: -1."""
    socket_request_max_bytes: int
    """Maximum bytes of a request. Default: 104857600."""
    socket_send_buffer_bytes: int
    """Size of the send buffer of sockets, in bytes; -1 means the system's default. Default: -1."""
    telemetry_max_bytes: int
    """Maximum bytes of metrics in one push of a client. Default: 1048576."""
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    """Interval at which transactions that exceed their timeout are aborted. Default: 10000."""
    transaction_max_timeout_ms: int
    """Maximum transaction timeout of a producer. Default: 900000."""
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    """Interval at which expired transactional ids are removed. Default: 3600000."""
    transaction_state_log_min_isr: int
    """min.insync.replicas of a new __transaction_state, limited to its replication factor. Default: 2."""
    transaction_state_log_num_partitions: int
    """Partitions of __transaction_state. Default: 50."""
    transaction_state_log_replication_factor: int
    """Replication factor of a new __transaction_state, limited to the number of brokers. Default: 3."""
    transaction_state_log_segment_bytes: int
    """Segment size of a new __transaction_state, in bytes. Default: 104857600."""
    transaction_two_phase_commit_enable: bool
    """Allow producers to use transactions without timeout (two-phase commit). Default: false."""
    transactional_id_expiration_ms: int
    """Time after which an unused transactional id expires. Default: 604800000."""
    unclean_leader_election_enable: bool
    """Default of the topic setting unclean.leader.election.enable. Allow a replica that is not in sync
    to lead if no other can; records may be lost. Default: false."""
    unclean_leader_election_interval_ms: int
    """In a cluster: interval of unclean elections for partitions without a leader that allow them.
    Default: 300000."""
    unstable_api_versions_enable: bool
    """Offer API versions that are unstable in Apache Kafka and may still change. Default: false."""
