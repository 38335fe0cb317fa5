"""The client: producers, consumers and admin, blocking and for asyncio.

Every name is imported on first use. Only the functions for Arrow need numpy and pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.client.admin.admin import AsyncAdmin as AsyncAdmin
    from penstock.client.admin.admin import ClusterDescription as ClusterDescription
    from penstock.client.admin.configs import ConfigValue as ConfigValue
    from penstock.client.admin.groups import GroupDescription as GroupDescription
    from penstock.client.admin.groups import GroupListing as GroupListing
    from penstock.client.admin.groups import MemberDescription as MemberDescription
    from penstock.client.admin.share_groups import ShareGroupDescription as ShareGroupDescription
    from penstock.client.admin.share_groups import ShareGroupOffset as ShareGroupOffset
    from penstock.client.admin.share_groups import ShareMemberDescription as ShareMemberDescription
    from penstock.client.admin.streams_groups import StreamsGroupDescription as StreamsGroupDescription
    from penstock.client.admin.streams_groups import StreamsMemberDescription as StreamsMemberDescription
    from penstock.client.admin.streams_groups import StreamsSubtopology as StreamsSubtopology
    from penstock.client.admin.streams_groups import StreamsTask as StreamsTask
    from penstock.client.admin.topics import NewTopic as NewTopic
    from penstock.client.admin.topics import TopicDescription as TopicDescription
    from penstock.client.admin.transactions import HangingTransaction as HangingTransaction
    from penstock.client.admin.transactions import PartitionProducer as PartitionProducer
    from penstock.client.admin.transactions import TransactionDescription as TransactionDescription
    from penstock.client.admin.transactions import TransactionListing as TransactionListing
    from penstock.client.assignors.base import Assignor as Assignor
    from penstock.client.assignors.member_metadata import Subscription as Subscription
    from penstock.client.blocking.admin import Admin as Admin
    from penstock.client.blocking.consumer import Consumer as Consumer
    from penstock.client.blocking.producer import Producer as Producer
    from penstock.client.blocking.share_consumer import ShareConsumer as ShareConsumer
    from penstock.client.cluster.client import AsyncClient as AsyncClient
    from penstock.client.fetch.consumer import AsyncConsumer as AsyncConsumer
    from penstock.client.fetch.offsets import OffsetAt as OffsetAt
    from penstock.client.fetch.offsets import list_offsets as list_offsets
    from penstock.client.fetch.ranges import fetch_ranges as fetch_ranges
    from penstock.client.group.offsets import GroupMetadata as GroupMetadata
    from penstock.client.group.offsets import OffsetAndMetadata as OffsetAndMetadata
    from penstock.client.options import AdminOptions as AdminOptions
    from penstock.client.options import ConsumerOptions as ConsumerOptions
    from penstock.client.options import ProducerOptions as ProducerOptions
    from penstock.client.options import ShareConsumerOptions as ShareConsumerOptions
    from penstock.client.produce.columns import TableDelivery as TableDelivery
    from penstock.client.produce.columns import WriteSummary as WriteSummary
    from penstock.client.produce.delivery import Delivery as Delivery
    from penstock.client.produce.producer import AsyncProducer as AsyncProducer
    from penstock.client.share.acknowledgements import AcknowledgeType as AcknowledgeType
    from penstock.client.share.consumer import AsyncShareConsumer as AsyncShareConsumer
    from penstock.client.share.workers import PoolSummary as PoolSummary
    from penstock.client.statistics import BrokerStatistics as BrokerStatistics
    from penstock.client.statistics import GroupStatistics as GroupStatistics
    from penstock.client.statistics import PartitionStatistics as PartitionStatistics
    from penstock.client.statistics import Statistics as Statistics
    from penstock.client.transactions.steps import TransactionCoordinates as TransactionCoordinates
    from penstock.model import OffsetRange as OffsetRange
    from penstock.model import ShareRecord as ShareRecord

_HOMES = {
    "AcknowledgeType": "share.acknowledgements",
    "Admin": "blocking.admin",
    "AdminOptions": "options",
    "Assignor": "assignors.base",
    "AsyncAdmin": "admin.admin",
    "AsyncClient": "cluster.client",
    "AsyncConsumer": "fetch.consumer",
    "AsyncProducer": "produce.producer",
    "AsyncShareConsumer": "share.consumer",
    "BrokerStatistics": "statistics",
    "ClusterDescription": "admin.admin",
    "ConfigValue": "admin.configs",
    "Consumer": "blocking.consumer",
    "ConsumerOptions": "options",
    "Delivery": "produce.delivery",
    "GroupDescription": "admin.groups",
    "GroupListing": "admin.groups",
    "GroupMetadata": "group.offsets",
    "GroupStatistics": "statistics",
    "HangingTransaction": "admin.transactions",
    "MemberDescription": "admin.groups",
    "NewTopic": "admin.topics",
    "OffsetAndMetadata": "group.offsets",
    "OffsetAt": "fetch.offsets",
    "OffsetRange": "fetch.ranges",
    "PartitionProducer": "admin.transactions",
    "PartitionStatistics": "statistics",
    "PoolSummary": "share.workers",
    "Producer": "blocking.producer",
    "ProducerOptions": "options",
    "ShareConsumer": "blocking.share_consumer",
    "ShareConsumerOptions": "options",
    "ShareGroupDescription": "admin.share_groups",
    "ShareGroupOffset": "admin.share_groups",
    "ShareMemberDescription": "admin.share_groups",
    "StreamsGroupDescription": "admin.streams_groups",
    "StreamsMemberDescription": "admin.streams_groups",
    "StreamsSubtopology": "admin.streams_groups",
    "StreamsTask": "admin.streams_groups",
    "ShareRecord": ".model",
    "Statistics": "statistics",
    "Subscription": "assignors.member_metadata",
    "TableDelivery": "produce.columns",
    "TopicDescription": "admin.topics",
    "TransactionCoordinates": "transactions.steps",
    "TransactionDescription": "admin.transactions",
    "TransactionListing": "admin.transactions",
    "WriteSummary": "produce.columns",
    "fetch_ranges": "fetch.ranges",
    "list_offsets": "fetch.offsets",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
