"""What still breaks a law of ``test_house.py``. These lists only shrink: what is mended has to leave them."""

from __future__ import annotations

IN_IMPORT_CIRCLES: frozenset[str] = frozenset()
ROOMS_IN_CIRCLES: frozenset[str] = frozenset()
LONGER_THAN_800_LINES: frozenset[str] = frozenset()
TELLS_OF_PEOPLE: frozenset[str] = frozenset()
NAMED_BUT_MISSING: frozenset[str] = frozenset()
CUT_BY_INHERITANCE: frozenset[str] = frozenset(
    {
        "penstock.broker.broker.Broker",
        "penstock.broker.cluster.Cluster",
        "penstock.broker.groups.classic.group.Group",
        "penstock.broker.groups.classic.records.ClassicRecords",
        "penstock.broker.groups.classic.roster.Roster",
        "penstock.broker.groups.consumer.keys.ConsumerRecords",
        "penstock.broker.levers.LeveredCluster",
        "penstock.broker.metadata.cluster.Cluster",
        "penstock.broker.metadata.replica_manager.ReplicaManager",
        "penstock.broker.network.connection.Connection",
        "penstock.broker.node.Node",
        "penstock.broker.partitions.partition.Partition",
        "penstock.broker.replication.commitment.Commitment",
        "penstock.broker.requests.dispatch.Unanswered",
        "penstock.broker.transactions.marking.Marking",
        "penstock.broker.transactions.registry.Registry",
        "penstock.broker.transactions.service.Joining",
        "penstock.broker.transactions.service.TransactionService",
        "penstock.client.admin.alterations.ChangeAdministration",
        "penstock.client.admin.groups.GroupAdministration",
        "penstock.client.admin.security.SecurityAdministration",
        "penstock.client.blocking.transaction_admin.BlockingTransactionAdministration",
        "penstock.client.blocking.transactions.BlockingTransactionCalls",
        "penstock.client.cluster.connection.Connection",
        "penstock.client.fetch.fetched_records.FetchedRecords",
        "penstock.client.produce.accumulator.Accumulator",
        "penstock.client.produce.sender.Sender",
        "penstock.client.produce.transaction_calls.TransactionCalls",
        "penstock.log.segments.indexed_segment.IndexedSegment",
        "penstock.log.segments.segment.FileSegment",
        "penstock.model.Record",
        "penstock.protocol.connection.frames.FrameReader",
        "penstock.protocol.schema.json_source.JsonSource",
        "penstock.spark.runtime.releases.SupportsTriggerAvailableNow",
        "penstock.spark.source.reader.BatchReader",
        "penstock.spark.source.stream_reader.StreamReader",
        "penstock.spark.source.stream_reader.UnlimitedStreamReader",
        "penstock.testing.broker.KafkaBroker",
    }
)
