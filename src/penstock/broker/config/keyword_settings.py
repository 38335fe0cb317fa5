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
    """Whether asking for an unknown topic creates it. Default: true."""
    auto_leader_rebalance_enable: bool
    """In a cluster: whether leaders go back to the preferred replicas by themselves. Default: true."""
    broker_heartbeat_interval_ms: int
    """In a cluster: how often a broker sends a heartbeat to the controller. Default: 2000."""
    broker_id: int
    """Older name of node.id."""
    broker_rack: str
    """Rack in Metadata responses, and for the placement of replicas."""
    broker_session_timeout_ms: int
    """In a cluster: after how long without a heartbeat a broker is fenced. Default: 9000."""
    compression_gzip_level: int
    """Default of the topic setting compression.gzip.level. Level used when the broker itself compresses
    with gzip. Default: -1."""
    compression_lz4_level: int
    """Default of the topic setting compression.lz4.level. Level used when the broker itself compresses
    with lz4. Default: 9."""
    compression_type: str
    """Default of the topic setting compression.type. Codec the topic is stored in; producer keeps what
    was sent. Default: producer."""
    compression_zstd_level: int
    """Default of the topic setting compression.zstd.level. Level used when the broker itself compresses
    with zstd. Default: 3."""
    connections_max_idle_ms: int
    """Connections without a request for this long are closed. Default: 600000."""
    controller_quota_window_num: int
    """In how many windows the partitions are counted that clients with a quota create and delete.
    Default: 11."""
    controller_quota_window_size_seconds: int
    """How long each of these windows is. Default: 1."""
    default_replication_factor: int
    """Replication factor of topics that name none. Default: 1."""
    delete_topic_enable: bool
    """Whether topics can be deleted. Default: true."""
    errors_deadletterqueue_auto_create_topics_enable: bool
    """Whether the dead letter topic of a share group is created when its first record is written.
    Default: false."""
    errors_deadletterqueue_topic_name_prefix: str
    """With what the names of dead letter topics of share groups begin; empty allows all names. Default:
    dlq.."""
    fetch_max_bytes: int
    """Most bytes one Fetch answer carries. Default: 57671680."""
    group_consumer_assignment_interval_ms: int
    """Least time between two assignments of a consumer group. Default: 1000."""
    group_consumer_assignors: str
    """Assignors that members may name. The first is that of groups whose members name none. Default:
    uniform,range."""
    group_consumer_heartbeat_interval_ms: int
    """How often members of consumer groups send heartbeats. Default: 5000."""
    group_consumer_max_assignment_interval_ms: int
    """Longest assignment interval that a group may have. Default: 15000."""
    group_consumer_max_heartbeat_interval_ms: int
    """Longest heartbeat interval that a group may have. Default: 15000."""
    group_consumer_max_session_timeout_ms: int
    """Longest session timeout that a group may have. Default: 60000."""
    group_consumer_max_size: int
    """Most members of a consumer group. Default: 2147483647."""
    group_consumer_migration_policy: str
    """How groups with members change between the classic and the consumer protocol. Default:
    bidirectional."""
    group_consumer_min_assignment_interval_ms: int
    """Shortest assignment interval that a group may have. Default: 0."""
    group_consumer_min_heartbeat_interval_ms: int
    """Shortest heartbeat interval that a group may have. Default: 5000."""
    group_consumer_min_session_timeout_ms: int
    """Shortest session timeout that a group may have. Default: 45000."""
    group_consumer_regex_refresh_interval_ms: int
    """How often the regular expressions of a group are matched with the topics, if no metadata change.
    Default: 600000."""
    group_consumer_session_timeout_ms: int
    """After how long without a heartbeat a member leaves a consumer group. Default: 45000."""
    group_coordinator_rebalance_protocols: str
    """Protocols of groups that are offered. Share groups depend on the feature share.version alone.
    Default: classic,consumer,streams."""
    group_initial_rebalance_delay_ms: int
    """Wait for more members when a group forms. Apache Kafka's default is 3000. Default: 0."""
    group_max_session_timeout_ms: int
    """Longest session timeout of a member. Default: 1800000."""
    group_max_size: int
    """Most members of a group. Default: 2147483647."""
    group_min_session_timeout_ms: int
    """Shortest session timeout of a member. Default: 6000."""
    group_share_assignment_interval_ms: int
    """Least time between two assignments of a share group. Default: 1000."""
    group_share_assignors: str
    """The assignor of share groups; there is one. Default: simple."""
    group_share_delivery_count_limit: int
    """How often a record is delivered to a share group at most; then it is archived. Default: 5."""
    group_share_heartbeat_interval_ms: int
    """How often members of share groups send heartbeats. Default: 5000."""
    group_share_initialize_retry_interval_ms: int
    """When the states of new share partitions are asked for again without an answer. Default: 30000."""
    group_share_max_assignment_interval_ms: int
    """Longest assignment interval that a share group may have. Default: 15000."""
    group_share_max_delivery_count_limit: int
    """Largest limit of deliveries that a share group may have. Default: 10."""
    group_share_max_heartbeat_interval_ms: int
    """Longest heartbeat interval that a share group may have. Default: 15000."""
    group_share_max_partition_max_record_locks: int
    """Most records in flight that a share group may have set for each partition. Default: 4000."""
    group_share_max_record_lock_duration_ms: int
    """Longest lock of records that a share group may have. Default: 60000."""
    group_share_max_session_timeout_ms: int
    """Longest session timeout that a share group may have. Default: 60000."""
    group_share_max_share_sessions: int
    """Most share sessions of a broker: members of share groups that fetch from it. Default: 2000."""
    group_share_max_size: int
    """Most members of a share group. Default: 200."""
    group_share_min_assignment_interval_ms: int
    """Shortest assignment interval that a share group may have. Default: 0."""
    group_share_min_delivery_count_limit: int
    """Smallest limit of deliveries that a share group may have. Default: 2."""
    group_share_min_heartbeat_interval_ms: int
    """Shortest heartbeat interval that a share group may have. Default: 5000."""
    group_share_min_partition_max_record_locks: int
    """Least records in flight that a share group may have set for each partition. Default: 100."""
    group_share_min_record_lock_duration_ms: int
    """Shortest lock of records that a share group may have. Default: 15000."""
    group_share_min_session_timeout_ms: int
    """Shortest session timeout that a share group may have. Default: 45000."""
    group_share_partition_max_record_locks: int
    """Most records of a partition that a share group has in flight. Default: 2000."""
    group_share_record_lock_duration_ms: int
    """How long a member of a share group may keep a record that it does not acknowledge. Default:
    30000."""
    group_share_session_timeout_ms: int
    """After how long without a heartbeat a member leaves a share group. Default: 45000."""
    group_streams_acceptable_recovery_lag: int
    """How many offsets a member of a streams group may lack to count as caught up with a task. Default:
    10000."""
    group_streams_assignment_interval_ms: int
    """Least time between two assignments of a streams group. Default: 1000."""
    group_streams_assignors: str
    """The assignor of streams groups; there is one. Default: sticky."""
    group_streams_heartbeat_interval_ms: int
    """How often members of streams groups send heartbeats. Default: 5000."""
    group_streams_initial_rebalance_delay_ms: int
    """How long a streams group without members waits for more before tasks are assigned. Default: 3000."""
    group_streams_max_assignment_interval_ms: int
    """Longest assignment interval that a streams group may have. Default: 15000."""
    group_streams_max_heartbeat_interval_ms: int
    """Longest heartbeat interval that a streams group may have. Default: 15000."""
    group_streams_max_session_timeout_ms: int
    """Longest session timeout that a streams group may have. Default: 60000."""
    group_streams_max_size: int
    """Most members of a streams group. Default: 2147483647."""
    group_streams_max_standby_replicas: int
    """Most standby tasks for each task that a streams group may have. Default: 2."""
    group_streams_min_assignment_interval_ms: int
    """Shortest assignment interval that a streams group may have. Default: 0."""
    group_streams_min_heartbeat_interval_ms: int
    """Shortest heartbeat interval that a streams group may have. Default: 5000."""
    group_streams_min_session_timeout_ms: int
    """Shortest session timeout that a streams group may have. Default: 45000."""
    group_streams_min_task_offset_interval_ms: int
    """Shortest interval between reports of task offsets that a streams group may have. Default: 15000."""
    group_streams_num_standby_replicas: int
    """Standby tasks for each task of a streams group that has state. Default: 0."""
    group_streams_rack_aware_assignment_tags: str
    """Keys of the client tags that the members of streams groups must have."""
    group_streams_session_timeout_ms: int
    """After how long without a heartbeat a member leaves a streams group. Default: 45000."""
    group_streams_task_offset_interval_ms: int
    """How often members of streams groups report how far they have restored the state of their tasks.
    Default: 60000."""
    host_name: str
    """Address to listen on, before listeners came. Needs port."""
    leader_imbalance_check_interval_seconds: int
    """In a cluster: how often leaders go back to the preferred replicas. Default: 300."""
    listener_security_protocol_map: str
    """Security of each listener by name. Default: PLAINTEXT:PLAINTEXT."""
    listeners: str
    """Address to listen on: PLAINTEXT://HOST:PORT. Default: PLAINTEXT://127.0.0.1:9092."""
    log_cleaner_backoff_ms: int
    """How often compacted topics are looked at for something to compact. Default: 15000."""
    log_cleaner_dedupe_buffer_size: int
    """Memory for the keys of one compaction, 24 bytes each; what is beyond waits for the next. Default:
    134217728."""
    log_cleaner_delete_retention_ms: int
    """Default of the topic setting delete.retention.ms. How long tombstones stay in a compacted topic.
    Default: 86400000."""
    log_cleaner_enable: bool
    """Whether compacted topics are compacted. Default: true."""
    log_cleaner_max_compaction_lag_ms: int
    """Default of the topic setting max.compaction.lag.ms. Longest time a record stays out of reach of
    compaction. Default: 9223372036854775807."""
    log_cleaner_min_cleanable_ratio: float
    """Default of the topic setting min.cleanable.dirty.ratio. Share of uncompacted bytes that starts a
    compaction. Default: 0.5."""
    log_cleaner_min_compaction_lag_ms: int
    """Default of the topic setting min.compaction.lag.ms. Shortest time a record stays out of reach of
    compaction. Default: 0."""
    log_cleanup_policy: str
    """Default of the topic setting cleanup.policy. What happens to old data: delete, compact or both.
    Default: delete."""
    log_dir: str
    """Data directory; empty keeps everything in memory."""
    log_dirs: str
    """Data directories; the first is for the metadata, if none has them."""
    log_flush_interval_messages: int
    """Default of the topic setting flush.messages. Records after which the log is forced to disk; 1 is
    every batch. Default: 9223372036854775807."""
    log_flush_interval_ms: int
    """Default of the topic setting flush.ms. Milliseconds after which the log is forced to disk."""
    log_flush_offset_checkpoint_interval_ms: int
    """How often recovery points are saved. Default: 60000."""
    log_flush_scheduler_interval_ms: int
    """How often logs are checked for a due flush. Default: 9223372036854775807."""
    log_flush_start_offset_checkpoint_interval_ms: int
    """How often start offsets are saved. Default: 60000."""
    log_index_interval_bytes: int
    """Default of the topic setting index.interval.bytes. Bytes of log between two entries of the offset
    index. Default: 4096."""
    log_index_size_max_bytes: int
    """Default of the topic setting segment.index.bytes. Largest size of an index file. Default:
    10485760."""
    log_message_downconversion_enable: bool
    """Default of the topic setting message.downconversion.enable. Whether fetchers older than 0.11 get
    converted records. Default: true."""
    log_message_timestamp_after_max_ms: int
    """Default of the topic setting message.timestamp.after.max.ms. How far ahead of the broker a create
    time may be. Default: 3600000."""
    log_message_timestamp_before_max_ms: int
    """Default of the topic setting message.timestamp.before.max.ms. How far behind the broker a create
    time may be. Default: 9223372036854775807."""
    log_message_timestamp_type: str
    """Default of the topic setting message.timestamp.type. Whose clock stamps records: producer or
    broker. Default: CreateTime."""
    log_preallocate: bool
    """Default of the topic setting preallocate. Whether segment files are created at full size.
    Default: false."""
    log_retention_bytes: int
    """Default of the topic setting retention.bytes. Bytes a partition may hold before old segments go;
    -1 no limit. Default: -1."""
    log_retention_check_interval_ms: int
    """How often retention is applied. Default: 300000."""
    log_retention_hours: int
    """Default of the topic setting retention.ms. Age at which segments are deleted; -1 never. Default:
    168."""
    log_retention_minutes: int
    """Default of the topic setting retention.ms. Age at which segments are deleted; -1 never."""
    log_retention_ms: int
    """Default of the topic setting retention.ms. Age at which segments are deleted; -1 never."""
    log_roll_hours: int
    """Default of the topic setting segment.ms. Age at which a new segment begins. Default: 168."""
    log_roll_jitter_hours: int
    """Default of the topic setting segment.jitter.ms. Random share taken off segment.ms so that
    partitions do not roll at once. Default: 0."""
    log_roll_jitter_ms: int
    """Default of the topic setting segment.jitter.ms. Random share taken off segment.ms so that
    partitions do not roll at once."""
    log_roll_ms: int
    """Default of the topic setting segment.ms. Age at which a new segment begins."""
    log_segment_bytes: int
    """Default of the topic setting segment.bytes. Size at which a new segment begins. Default:
    1073741824."""
    log_segment_delete_delay_ms: int
    """Default of the topic setting file.delete.delay.ms. Time between taking a segment out and deleting
    its files. Default: 60000."""
    max_connection_creation_rate: int
    """Connections that are taken in per second; further ones wait. Default: 2147483647."""
    max_connections: int
    """Most connections at a time; further ones are closed. Default: 2147483647."""
    max_connections_per_ip: int
    """Most connections at a time from one address. Default: 2147483647."""
    max_connections_per_ip_overrides: str
    """Other limits for some addresses: HOST:NUMBER,HOST:NUMBER."""
    max_incremental_fetch_session_cache_slots: int
    """Most fetch sessions that are kept; further ones replace idle ones, or are declined. Default:
    1000."""
    max_request_partition_size_limit: int
    """Most partitions in one answer to DescribeTopicPartitions. Default: 2000."""
    message_max_bytes: int
    """Default of the topic setting max.message.bytes. Largest record batch accepted, as it arrives.
    Default: 1048588."""
    metadata_log_max_record_bytes_between_snapshots: int
    """So many bytes of metadata behind a snapshot have another one written. Default: 20971520."""
    metadata_max_retention_bytes: int
    """Size of the metadata log with its snapshots above which old ones go; the newest snapshot stays.
    Default: 104857600."""
    metadata_max_retention_ms: int
    """Age of a snapshot of the metadata above which it goes with the log below the next one; -1 never.
    Default: 604800000."""
    min_insync_replicas: int
    """Default of the topic setting min.insync.replicas. Replicas that must have a record before
    acks=all is answered. Default: 1."""
    node_id: int
    """Number of this broker. Default: 1."""
    num_partitions: int
    """Partitions of topics that name no number. Default: 1."""
    offset_metadata_max_bytes: int
    """Longest note that comes with an offset. Default: 4096."""
    offsets_retention_check_interval_ms: int
    """How often expired offsets and groups are removed. Default: 600000."""
    offsets_retention_minutes: int
    """Age at which offsets of empty groups expire. Default: 10080."""
    offsets_topic_num_partitions: int
    """Partitions of __consumer_offsets. Default: 50."""
    offsets_topic_replication_factor: int
    """Replicas of __consumer_offsets, no more than there are brokers. Default: 3."""
    offsets_topic_segment_bytes: int
    """Segment size of __consumer_offsets. Default: 104857600."""
    penstock_authentication_timeout_ms: int
    """How long a connection may take for TLS and SASL until it is closed. Default: 30000."""
    penstock_brokers: int
    """How many brokers a process runs, numbered from `node.id`. For tests. Default: 1."""
    penstock_client_metrics: bool
    """Takes metrics that clients push (KIP-714), where subscriptions ask for them; the newest are kept.
    Default: false."""
    penstock_kept_state_bytes_max: int
    """Memory for what is kept for clients: fetch sessions, groups, offsets, answers that are not read.
    Default: 67108864."""
    penstock_log_open_ms_max: int
    """Milliseconds of each second in which requests may open logs; further ones get a retriable error.
    Default: 500."""
    penstock_metadata_version: str
    """The release of Apache Kafka that a new data directory is for, such as 3.9; any 4.x by default."""
    penstock_metrics_host: str
    """Where /metrics and /health are served. Default: 127.0.0.1."""
    penstock_metrics_port: int
    """Port of /metrics and /health; 0 takes a free one. Without it nothing is counted."""
    penstock_producers_max: int
    """Most idempotent producers kept, in all partitions; beyond it the idle ones are dropped. Default:
    100000."""
    penstock_request_changes_max: int
    """Most topics, resources with settings or entities with quotas that one request may change.
    Default: 1000."""
    penstock_request_entries_max: int
    """Most topics, partitions and other entries in one request; one with more closes its connection.
    Default: 12000."""
    penstock_response_bytes_max: int
    """Largest answer that carries no records. One that would be larger closes its connection. Default:
    16777216."""
    penstock_unauthenticated_connections_max: int
    """Connections that may be authenticating themselves at a time; the oldest is closed for another.
    Default: 1000."""
    penstock_unpack_max_bytes: int
    """What one request may have decompressed, where the broker must look into records. Default:
    33554432."""
    penstock_unpack_max_records: int
    """How many records one request may have looked at, where the broker must look into records.
    Default: 250000."""
    producer_id_expiration_ms: int
    """Idle time after which a producer's sequences go. Default: 86400000."""
    queued_max_request_bytes: int
    """Most memory for requests that are still arriving; the slowest sender is disconnected. -1 no
    limit. Default: 134217728."""
    quota_window_num: int
    """In how many windows the use of quotas is measured. Default: 11."""
    quota_window_size_seconds: int
    """How long each of these windows is. Default: 1."""
    replica_fetch_backoff_ms: int
    """In a cluster: how long a follower leaves a partition alone after an error. Kafka's default is
    1000. Default: 100."""
    replica_fetch_max_bytes: int
    """In a cluster: most bytes of one partition that a follower asks for at once. Default: 1048576."""
    replica_fetch_min_bytes: int
    """In a cluster: for how many bytes the leader keeps a follower's fetch waiting. Default: 1."""
    replica_fetch_response_max_bytes: int
    """In a cluster: most bytes of all partitions that a follower asks for at once. Default: 10485760."""
    replica_fetch_wait_max_ms: int
    """In a cluster: how long the leader keeps a follower's fetch waiting. Default: 500."""
    replica_lag_time_max_ms: int
    """In a cluster: after how long a follower that has not all records leaves the in-sync replicas.
    Default: 30000."""
    replica_selector_class: str
    """In a cluster: RackAwareReplicaSelector sends consumers to replicas in their rack."""
    share_coordinator_cold_partition_snapshot_interval_ms: int
    """After how long a share partition without changes gets a snapshot. Default: 300000."""
    share_coordinator_snapshot_update_records_per_snapshot: int
    """How many changes of a share partition are stored before a snapshot of all of it. Default: 500."""
    share_coordinator_state_topic_min_isr: int
    """In-sync replicas that __share_group_state is made to need, no more than it has. Default: 2."""
    share_coordinator_state_topic_num_partitions: int
    """Partitions of __share_group_state. Default: 50."""
    share_coordinator_state_topic_prune_interval_ms: int
    """How often what is not needed of __share_group_state is deleted. Default: 300000."""
    share_coordinator_state_topic_replication_factor: int
    """Replicas of __share_group_state, no more than there are brokers. Default: 3."""
    share_coordinator_state_topic_segment_bytes: int
    """Segment size of __share_group_state. Default: 104857600."""
    share_coordinator_write_timeout_ms: int
    """How long an answer of the share coordinator waits for its replicas. Default: 5000."""
    socket_listen_backlog_size: int
    """Connections that may wait to be accepted. Default: 50."""
    socket_receive_buffer_bytes: int
    """Receive buffer of sockets; -1 leaves it to the system. Default: -1."""
    socket_request_max_bytes: int
    """Largest request accepted. Default: 104857600."""
    socket_send_buffer_bytes: int
    """Send buffer of sockets; -1 leaves it to the system. Default: -1."""
    telemetry_max_bytes: int
    """Most bytes of metrics in one push of a client. Default: 1048576."""
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    """How often transactions are looked for whose time is up. Default: 10000."""
    transaction_max_timeout_ms: int
    """Longest transaction a producer may ask for. Default: 900000."""
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    """How often transactional ids are looked for that were not used for too long. Default: 3600000."""
    transaction_state_log_min_isr: int
    """In-sync replicas that __transaction_state is made to need, no more than it has. Default: 2."""
    transaction_state_log_num_partitions: int
    """Partitions of __transaction_state. Default: 50."""
    transaction_state_log_replication_factor: int
    """Replicas of __transaction_state, no more than there are brokers. Default: 3."""
    transaction_state_log_segment_bytes: int
    """Segment size of __transaction_state. Default: 104857600."""
    transaction_two_phase_commit_enable: bool
    """Whether producers may ask for transactions that never time out. Default: false."""
    transactional_id_expiration_ms: int
    """How long an unused transactional id is kept. Default: 604800000."""
    unclean_leader_election_enable: bool
    """Default of the topic setting unclean.leader.election.enable. Whether a replica that is not in
    sync may lead where no other can: records may be lost. Default: false."""
    unclean_leader_election_interval_ms: int
    """In a cluster: how often partitions without a leader are looked at that any replica may lead.
    Default: 300000."""
    unstable_api_versions_enable: bool
    """Whether versions are offered that may still change. Default: false."""
