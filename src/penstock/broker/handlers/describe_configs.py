"""DescribeConfigs (32): settings of topics, the broker, its loggers, groups and metrics subscriptions.

Each setting has the source of its value. v1 adds sources and synonyms; v3 types and documentation; v4 is
flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.config.definition import PASSWORD, ConfigKey
from penstock.broker.config.inert_keys import UNKNOWN, broker_setting, listed_settings
from penstock.broker.config.kafka_keys import READ_ONLY, listener_setting
from penstock.broker.config.log_levels import level_of, loggers
from penstock.broker.config.resource_keys import check_kept_name, kept_kinds, kept_settings
from penstock.broker.config.topic_names import check_topic_name
from penstock.broker.config.values import (
    SOURCE_DEFAULT,
    SOURCE_DYNAMIC_DEFAULT,
    SOURCE_GROUP,
    SOURCE_LOGGER,
    SOURCE_METRICS,
    SOURCE_TOPIC,
    Setting,
    canonical,
)
from penstock.broker.context import Context
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import BROKER_RESOURCE, LOGGER_RESOURCE, TOPIC_RESOURCE
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

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

SETTING_BYTES, SYNONYM_BYTES = 16, 6
"""The approximate sizes in bytes of a setting and of a synonym in a response, without their strings."""

_Alike = tuple[frozenset[str] | None, tuple[tuple[str, str], ...]]
"""The cache key for the descriptions of topics: requested names (None for all), and the topic's own
settings.

A request that describes many topics builds each distinct description only once.
"""

_PARSED_SOURCES = (SOURCE_TOPIC, SOURCE_METRICS, SOURCE_GROUP)
"""The setting sources whose values the response has in canonical form. Values set for the broker are
returned as they were written.
"""


def describe_configs(
    request: DescribeConfigsRequest, context: Context[ServingNode]
) -> DescribeConfigsResponse:
    """Describe each resource in the request once, with all settings that its entries ask for."""
    context.begin_claims()
    made: dict[_Alike, list[DescribeConfigsResourceResult]] = {}
    return DescribeConfigsResponse(
        results=[
            _describe(resource, wanted, request, context, made)
            for resource, wanted in _resources_once(request)
        ]
    )


def _resources_once(
    request: DescribeConfigsRequest,
) -> list[tuple[DescribeConfigsResource, frozenset[str] | None]]:
    """Return each resource of a request once, with the names of the requested settings; None means all."""
    first: dict[tuple[int, str], DescribeConfigsResource] = {}
    wanted: dict[tuple[int, str], set[str] | None] = {}
    for resource in request.resources:
        resource_key = resource.resource_type, resource.resource_name
        first.setdefault(resource_key, resource)
        names = wanted.setdefault(resource_key, set())
        if not resource.configuration_keys:
            wanted[resource_key] = None
        elif names is not None:
            names.update(resource.configuration_keys)
    found = []
    for resource_key, resource in first.items():
        names = wanted[resource_key]
        found.append((resource, None if names is None else frozenset(names)))
    return found


def _describe(
    resource: DescribeConfigsResource,
    wanted: frozenset[str] | None,
    request: DescribeConfigsRequest,
    context: Context[ServingNode],
    made: dict[_Alike, list[DescribeConfigsResourceResult]],
) -> DescribeConfigsResult:
    """Describe one resource. `made` is a cache of the response entries for topics with equal settings."""
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    alike: _Alike | None = None
    try:
        if resource.resource_type == TOPIC_RESOURCE:
            check_topic_name(resource.resource_name)
            overrides = context.node.cluster.topic(resource.resource_name).config.overrides
            alike = wanted, tuple(sorted(overrides.items()))
            if alike in made:
                result.configs = made[alike]
                context.claim(_size(result.configs))
                return result
            found = _topic_settings(resource.resource_name, context)
        elif resource.resource_type == BROKER_RESOURCE:
            found = _broker_settings(resource.resource_name, context)
        elif resource.resource_type == LOGGER_RESOURCE:
            found = _levels(resource.resource_name, context)
        elif resource.resource_type in kept_kinds(context.node.config):
            found = _kept(resource.resource_type, resource.resource_name, context)
        else:
            raise error_for(
                ErrorCode.INVALID_REQUEST, f"resources of type {resource.resource_type} have no settings here"
            )
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.detail
        return result
    for key, settings in found:
        if wanted is None or key.name in wanted:
            result.configs.append(
                _entry(key, settings, resource.resource_type, resource.resource_name, request, context)
            )
    context.claim(_size(result.configs))
    if alike is not None:
        made[alike] = result.configs
    return result


def _size(configs: list[DescribeConfigsResourceResult]) -> int:
    """Return the approximate size, in bytes, of the given setting entries in the response."""
    return sum(
        len(config.name) + len(config.value or "") + len(config.documentation or "") + SETTING_BYTES
        for config in configs
    ) + sum(len(each.name) + len(each.value or "") + SYNONYM_BYTES for c in configs for each in c.synonyms)


def _topic_settings(name: str, context: Context[ServingNode]) -> list[tuple[ConfigKey, list[Setting]]]:
    config = context.node.cluster.topic(name).config
    found = []
    for key in context.node.config.topic_keys.values():
        if key.is_hidden and key.name not in config.overrides:
            continue
        settings = config.settings(key.name)
        source = settings[0].source if settings else SOURCE_DEFAULT
        found.append((key, [Setting(key.name, config.text(key.name), source), *settings]))
    return found


def _broker_settings(name: str, context: Context[ServingNode]) -> list[tuple[ConfigKey, list[Setting]]]:
    """Return the settings of this broker; for an empty name, return the cluster-wide dynamic settings."""
    config = context.node.config
    if name == "":
        defaults = []
        for setting in sorted(config.dynamic_defaults):
            places = [place for place in config.set_texts(setting) if place.source == SOURCE_DYNAMIC_DEFAULT]
            defaults.append((broker_setting(config, setting).key, [places[0], *places]))
        return defaults
    _check_broker(name, context)
    found = []
    for key in listed_settings(config).values():
        places = list(config.settings_of(key.name, key))
        if listener_setting(key.name) != key.name:
            base = broker_setting(config, listener_setting(key.name)).key
            places += config.settings_of(base.name, base)
        found.append((key, [places[0] if places else Setting(key.name, None, SOURCE_DEFAULT), *places]))
    return found


def _check_broker(name: str, context: Context[ServingNode]) -> None:
    if name != str(context.node.node_id):
        raise error_for(
            ErrorCode.INVALID_REQUEST, f"this is broker {context.node.node_id}, not broker {name}"
        )


def _levels(name: str, context: Context[ServingNode]) -> list[tuple[ConfigKey, list[Setting]]]:
    _check_broker(name, context)
    return [
        (ConfigKey(each, UNKNOWN, None, ""), [Setting(each, level_of(logger), SOURCE_LOGGER)])
        for each, logger in loggers().items()
    ]


def _kept(kind: int, name: str, context: Context[ServingNode]) -> list[tuple[ConfigKey, list[Setting]]]:
    check_kept_name(kind, name)
    return kept_settings(
        context.node.config, kind, context.node.cluster.resource_configs.get((kind, name), {})
    )


def _entry(
    key: ConfigKey,
    settings: list[Setting],
    resource_type: int,
    resource_name: str,
    request: DescribeConfigsRequest,
    context: Context[ServingNode],
) -> DescribeConfigsResourceResult:
    """Return a setting's response entry. `settings` has its effective value, then the value per source."""
    in_force, *synonyms = settings
    is_topic = resource_type == TOPIC_RESOURCE
    is_broker = resource_type == BROKER_RESOURCE
    is_secret = key.type == PASSWORD or (is_broker and key.type == UNKNOWN)

    for_all = is_broker and not resource_name  # shown as it was set

    def shown(setting: Setting, *, is_parsed: bool) -> str | None:
        if is_secret:
            return None
        return canonical(key, setting.text) if is_parsed and key.type != UNKNOWN else setting.text

    return DescribeConfigsResourceResult(
        name=key.name,
        value=shown(in_force, is_parsed=not for_all),
        read_only=is_broker and _is_fixed(key.name, context),
        is_default=context.version == 0
        and in_force.source != SOURCE_TOPIC
        and (is_topic or in_force.source == SOURCE_DEFAULT),
        config_source=in_force.source,
        is_sensitive=is_secret,
        synonyms=[
            DescribeConfigsSynonym(
                name=synonym.name,
                value=shown(synonym, is_parsed=synonym.source in _PARSED_SOURCES),
                source=synonym.source,
            )
            for synonym in (synonyms if request.include_synonyms else ())
        ],
        config_type=key.type,
        documentation=key.doc if request.include_documentation else None,
    )


def _is_fixed(name: str, context: Context[ServingNode]) -> bool:
    """Return True if a setting is described as read-only, which includes settings with a listener prefix."""
    key, change = broker_setting(context.node.config, name)
    return change == READ_ONLY or key.type == UNKNOWN or listener_setting(name) != name
