"""Finds the definition of a broker setting by its name, also if the setting has no effect or is unknown.

Apache Kafka accepts settings with unknown names. Administration tools read the list of all settings, and
write it back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from penstock.broker.config.broker_keys import BROKER_KEYS, DYNAMIC_KEYS, LISTENER_KEYS
from penstock.broker.config.definition import LONG, ConfigKey, idle
from penstock.broker.config.kafka_keys import (
    BROKER,
    CLUSTER,
    LISTENER,
    READ_ONLY,
    BrokerSetting,
    hidden_settings,
    listener_setting,
    settings_of_release,
)
from penstock.broker.config.topic_keys import TOPIC_KEYS

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig

UNKNOWN = 0
"""The type code of a setting with an unknown name. DescribeConfigs does not return the value, which may
be a secret.
"""

_OF_OLD = frozenset(("advertised.host.name", "advertised.port", "host.name", "port"))
_MOVES = "replica.alter.log.dirs.io.max.bytes.per.second"
_UNLISTED = frozenset(
    (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        _MOVES,
    )
)
"""The names of the replication throttles that Kafka's tools set. DescribeConfigs lists only those that
are set.
"""

_THROTTLED = "In a cluster, followers that are not in sync are held to it. One broker alone has none."


def inert_keys(config: BrokerConfig) -> Mapping[str, BrokerSetting]:
    """Return Kafka's settings that are not in `BROKER_KEYS`: those of 4.x or, before 4.0, of 3.9."""
    return settings_of_release("4" if config.behaves_since(4, 0) else "3")


def broker_setting(config: BrokerConfig, name: str) -> BrokerSetting:
    """Return a broker setting's definition, also for a setting without effect or of unknown name."""
    key = BROKER_KEYS.get(name)
    if key is not None and name not in _unknown_to_brokers(config):
        return BrokerSetting(key, CLUSTER if name in DYNAMIC_KEYS else READ_ONLY)
    known = inert_keys(config)
    if name in known:
        return known[name]
    if name in _UNLISTED:
        key = ConfigKey(name, LONG, None, _THROTTLED, at_least=0)
        return BrokerSetting(idle(key) if name == _MOVES else key, CLUSTER)
    setting = listener_setting(name)
    if setting in LISTENER_KEYS:
        return BrokerSetting(BROKER_KEYS[setting]._replace(name=name, default=None), CLUSTER)
    base = known.get(setting)
    if base is not None and base.change in (BROKER, LISTENER):
        return BrokerSetting(base.key._replace(name=name, default=None), BROKER)
    found = hidden_settings().get(name, BrokerSetting(ConfigKey(name, UNKNOWN, None, ""), CLUSTER))
    # KIP-226: a setting of one listener is a setting of one broker.
    return found if setting == name else found._replace(change=BROKER)


def _unknown_to_brokers(config: BrokerConfig) -> Collection[str]:
    return () if config.release is None else config.release.unknown_to_brokers


def _is_of_old(name: str) -> bool:
    """Return True for an obsolete setting or one of Kafka 0.7: DescribeConfigs lists it only if set."""
    return name in _OF_OLD or name.startswith("penstock.0.7.")


def listed_settings(config: BrokerConfig) -> dict[str, ConfigKey]:
    """Return the settings that DescribeConfigs lists: those of Kafka and Penstock; unknown ones if set."""
    gone = {
        synonym
        for name, key in TOPIC_KEYS.items()
        if name not in config.topic_keys
        for synonym, _ in key.synonyms
    }
    gone.update(_unknown_to_brokers(config))
    found = {
        name: key
        for name, key in BROKER_KEYS.items()
        if name not in gone and not (key.is_hidden or _is_of_old(name))
    }
    found |= {name: setting.key for name, setting in inert_keys(config).items()}
    for name in (*config.settings, *config.dynamic, *config.dynamic_defaults):
        if name not in found:
            found[name] = broker_setting(config, name).key
    return found
