"""The client: producers, consumers and admin, blocking and for asyncio; topics as Arrow tables.

Every name is imported on first use: what handles Arrow needs numpy and pyarrow, the rest does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.client.admin import AsyncAdmin as AsyncAdmin
    from penstock.client.admin import ClusterDescription as ClusterDescription
    from penstock.client.admin import ConfigValue as ConfigValue
    from penstock.client.admin import NewTopic as NewTopic
    from penstock.client.admin import TopicDescription as TopicDescription
    from penstock.client.blocking import Producer as Producer
    from penstock.client.blocking_admin import Admin as Admin
    from penstock.client.blocking_consumer import Consumer as Consumer
    from penstock.client.client import AsyncClient as AsyncClient
    from penstock.client.columns import TableDelivery as TableDelivery
    from penstock.client.columns import WriteSummary as WriteSummary
    from penstock.client.consumer import AsyncConsumer as AsyncConsumer
    from penstock.client.delivery import Delivery as Delivery
    from penstock.client.group.administration import GroupDescription as GroupDescription
    from penstock.client.group.administration import GroupListing as GroupListing
    from penstock.client.group.administration import MemberDescription as MemberDescription
    from penstock.client.group.assignors.base import Assignor as Assignor
    from penstock.client.group.offsets import OffsetAndMetadata as OffsetAndMetadata
    from penstock.client.group.subscription import Subscription as Subscription
    from penstock.client.offsets import OffsetAt as OffsetAt
    from penstock.client.offsets import list_offsets as list_offsets
    from penstock.client.producer import AsyncProducer as AsyncProducer
    from penstock.client.ranges import OffsetRange as OffsetRange
    from penstock.client.ranges import fetch_ranges as fetch_ranges
    from penstock.client.topics import read_topic as read_topic
    from penstock.client.topics import scan_topic as scan_topic
    from penstock.client.topics import write_topic as write_topic

_HOMES = {
    "Admin": "blocking_admin",
    "Assignor": "group.assignors.base",
    "AsyncAdmin": "admin",
    "AsyncClient": "client",
    "AsyncConsumer": "consumer",
    "AsyncProducer": "producer",
    "ClusterDescription": "admin",
    "ConfigValue": "admin",
    "Consumer": "blocking_consumer",
    "Delivery": "delivery",
    "GroupDescription": "group.administration",
    "GroupListing": "group.administration",
    "MemberDescription": "group.administration",
    "NewTopic": "admin",
    "OffsetAndMetadata": "group.offsets",
    "OffsetAt": "offsets",
    "OffsetRange": "ranges",
    "Producer": "blocking",
    "Subscription": "group.subscription",
    "TableDelivery": "columns",
    "TopicDescription": "admin",
    "WriteSummary": "columns",
    "fetch_ranges": "ranges",
    "list_offsets": "offsets",
    "read_topic": "topics",
    "scan_topic": "topics",
    "write_topic": "topics",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
