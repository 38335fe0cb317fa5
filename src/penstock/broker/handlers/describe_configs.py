"""DescribeConfigs (32), versions 0-4: the settings of topics and of the broker, and where they come from.

v1 sources and synonyms; v3 types and documentation; v4 flexible. Of the broker's settings those are not
read-only that give topics their defaults; the rest is fixed while it runs.
"""

from __future__ import annotations

from penstock.broker.cluster import BROKER_RESOURCE, TOPIC_RESOURCE, check_topic_name
from penstock.broker.config import SOURCE_DEFAULT, SOURCE_DYNAMIC_DEFAULT, SOURCE_TOPIC, Setting, canonical
from penstock.broker.config_keys import BROKER_KEYS, DYNAMIC_KEYS, PASSWORD, ConfigKey
from penstock.broker.dispatch import Context, handler
from penstock.errors import KafkaError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


@handler(ApiKey.DESCRIBE_CONFIGS, 0, 4)
def describe_configs(request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
    """Describe every resource asked for."""
    return DescribeConfigsResponse(
        results=[_describe(resource, request, context) for resource in request.resources]
    )


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: Context
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    try:
        if resource.resource_type == TOPIC_RESOURCE:
            found = _topic_settings(resource.resource_name, context)
        elif resource.resource_type == BROKER_RESOURCE:
            found = _broker_settings(resource.resource_name, context)
        else:
            raise error_for(
                ErrorCode.INVALID_REQUEST, f"resources of type {resource.resource_type} have no settings here"
            )
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.detail
        return result
    wanted = resource.configuration_keys
    for key, settings in found:
        if not wanted or key.name in wanted:
            result.configs.append(_entry(key, settings, resource.resource_type, request, context.version))
    return result


def _topic_settings(name: str, context: Context) -> list[tuple[ConfigKey, list[Setting]]]:
    check_topic_name(name)
    config = context.node.cluster.topic(name).config
    found = []
    for key in context.node.config.topic_keys.values():
        settings = config.settings(key.name)
        source = settings[0].source if settings else SOURCE_DEFAULT
        found.append((key, [Setting(key.name, config.text(key.name), source), *settings]))
    return found


def _broker_settings(name: str, context: Context) -> list[tuple[ConfigKey, list[Setting]]]:
    """Settings of this broker. The empty name asks for what clients have set for every broker."""
    config = context.node.config
    if name == "":
        found = [
            (BROKER_KEYS[name], list(config.set_texts(name))) for name in sorted(config.dynamic_defaults)
        ]
        defaults = [(key, [s for s in set_ if s.source == SOURCE_DYNAMIC_DEFAULT]) for key, set_ in found]
        return [(key, [set_[0], *set_]) for key, set_ in defaults]
    if name != str(context.node.node_id):
        raise error_for(
            ErrorCode.INVALID_REQUEST, f"this is broker {context.node.node_id}, not broker {name}"
        )
    found = []
    for key in BROKER_KEYS.values():
        settings = list(config.settings_of(key.name))
        found.append((key, [settings[0] if settings else Setting(key.name, None, SOURCE_DEFAULT), *settings]))
    return found


def _entry(
    key: ConfigKey,
    settings: list[Setting],
    resource_type: int,
    request: DescribeConfigsRequest,
    version: int,
) -> DescribeConfigsResourceResult:
    """`settings` is the value in force, then every place that gives one."""
    in_force, *synonyms = settings
    is_topic = resource_type == TOPIC_RESOURCE
    return DescribeConfigsResourceResult(
        name=key.name,
        value=None if key.type == PASSWORD else canonical(key, in_force.text),
        read_only=not is_topic and key.name not in DYNAMIC_KEYS,
        is_default=version == 0
        and in_force.source != SOURCE_TOPIC
        and (is_topic or in_force.source == SOURCE_DEFAULT),
        config_source=in_force.source,
        is_sensitive=key.type == PASSWORD,
        synonyms=[
            DescribeConfigsSynonym(
                name=synonym.name,
                value=canonical(key, synonym.text) if synonym.source == SOURCE_TOPIC else synonym.text,
                source=synonym.source,
            )
            for synonym in (synonyms if request.include_synonyms else ())
        ],
        config_type=key.type,
        documentation=key.doc if request.include_documentation else None,
    )
