"""Translation of Metadata 0 and DescribeConfigs 0, whose fields mean something else in later versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.gateway.calls import NodeCall
from penstock.gateway.translation.errors import replace_codes
from penstock.gateway.translation.fields import convert
from penstock.gateway.translation.rules import answered
from penstock.protocol.field_values import TOPIC_RESOURCE

if TYPE_CHECKING:
    from penstock.gateway.translation.rules import Steps, TranslatedRequest
    from penstock.protocol.messages.describe_configs_response import DescribeConfigsResponse
    from penstock.protocol.messages.metadata_response import MetadataResponse

SOURCE_TOPIC, SOURCE_DEFAULT = 1, 5


def metadata(asked: TranslatedRequest) -> Steps:
    """Translate a Metadata request of version 0, in which an empty list means all topics.

    The cluster may auto-create the topics that the request names, as in every version before 4.
    """
    request = convert(asked.request, asked.version, asked.target)
    if not request.topics:
        request.topics = None
    response: MetadataResponse = yield NodeCall(asked.api_key, asked.target, request)
    return answered(response, asked)


def describe_configs(asked: TranslatedRequest) -> Steps:
    """Translate a DescribeConfigs request of version 0.

    The response of version 0 has a flag `is_default`; later versions have a config source instead. A setting
    of a topic is default unless the topic itself sets it. A setting of another resource is default only if
    nothing sets it.
    """
    request = convert(asked.request, asked.version, asked.target)
    response = yield NodeCall(asked.api_key, asked.target, request)
    converted: DescribeConfigsResponse = convert(response, asked.target, asked.version, may_lose=True)
    for result, found in zip(converted.results, response.results, strict=True):
        for entry, original in zip(result.configs, found.configs, strict=True):
            source = original.config_source
            if result.resource_type == TOPIC_RESOURCE:
                entry.is_default = source != SOURCE_TOPIC
            else:
                entry.is_default = source == SOURCE_DEFAULT
    replace_codes(converted, asked.version)
    return converted
