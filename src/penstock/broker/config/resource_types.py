"""The kinds of resources that have settings, as DescribeConfigs and ConfigRecord number them."""

from __future__ import annotations

TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE, METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 8, 16, 32
