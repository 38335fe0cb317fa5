"""Settings of Apache Kafka's brokers that mean nothing here, and unknown names.

Apache Kafka lists some three hundred settings of a broker and accepts settings with unknown names. Tools for
administration read that list and write to it, so those that this broker has no use for are listed, checked
and kept, too. The facts are in ``inert_keys.txt``, read on first use.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.config.broker_keys import BROKER_KEYS, DYNAMIC_KEYS
from penstock.broker.config.definition import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    ConfigKey,
    idle,
)
from penstock.broker.config.topic_keys import TOPIC_KEYS

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig

UNKNOWN = 0
"""The type of an unknown setting. Its value is not shown: it might be a secret."""

READ_ONLY, CLUSTER, BROKER, LISTENER = "no", "cluster", "broker", "listener"
"""How a setting can be changed while a broker runs."""

_TYPES = {
    "boolean": BOOLEAN,
    "string": STRING,
    "int": INT,
    "short": SHORT,
    "long": LONG,
    "double": DOUBLE,
    "list": LIST,
    "class": CLASS,
    "password": PASSWORD,
}
_DOC = "there is nothing here that it could be for."
_OF_OLD = frozenset(("advertised.host.name", "advertised.port", "host.name", "port"))
_UNLISTED = frozenset(
    (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
"""Limits of replication: Kafka's tools set them while partitions move. Listed where they are set."""

_LISTENER_PREFIX = "listener.name."


class BrokerSetting(NamedTuple):
    """A setting of a broker, and how it can be changed: one of the four words above."""

    key: ConfigKey
    change: str


@cache
def settings_of_release(release: str) -> Mapping[str, BrokerSetting]:
    """Those of the releases of Kafka that begin with this number: 3 or 4."""
    found = {}
    path = os.path.join(os.path.dirname(__file__), "inert_keys.txt")
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith("#"):
                continue
            words, equals, default = line.rstrip("\n").partition(" =")
            name, releases, type_, change, least = words.split()
            if releases in ("all", release):
                at_least = None if least == "-" else int(least)
                key = idle(
                    ConfigKey(name, _TYPES[type_], default if equals else None, _DOC, at_least=at_least)
                )
                found[name] = BrokerSetting(key, change)
    return found


def inert_keys(config: BrokerConfig) -> Mapping[str, BrokerSetting]:
    """Kafka's settings that are not among `BROKER_KEYS`: those of 4.x, or of 3.9 where an older is played."""
    release = config.release
    return settings_of_release("4" if release is None or release.numbers >= (4, 0) else "3")


def broker_setting(config: BrokerConfig, name: str) -> BrokerSetting:
    """The definition of a setting of the broker: of a known key, an inert key, or an unknown name."""
    key = BROKER_KEYS.get(name)
    if key is not None:
        return BrokerSetting(key, CLUSTER if name in DYNAMIC_KEYS else READ_ONLY)
    known = inert_keys(config)
    if name in known:
        return known[name]
    if name in _UNLISTED:
        return BrokerSetting(idle(ConfigKey(name, LONG, None, _DOC, at_least=0)), CLUSTER)
    base = known.get(listener_setting(name))
    if base is not None and base.change in (BROKER, LISTENER):
        return BrokerSetting(base.key._replace(name=name, default=None), BROKER)
    return BrokerSetting(ConfigKey(name, UNKNOWN, None, ""), CLUSTER)


def listener_setting(name: str) -> str:
    """The setting that ``listener.name.NAME.SETTING`` is about; of other names the name itself."""
    if name.startswith(_LISTENER_PREFIX):
        return name.removeprefix(_LISTENER_PREFIX).partition(".")[2]
    return name


def _is_of_old(name: str) -> bool:
    """Whether a setting is older than `listeners` itself. Those are listed where they are set."""
    return name in _OF_OLD or name.startswith("penstock.0.7.")


def listed_settings(config: BrokerConfig) -> dict[str, ConfigKey]:
    """Return every setting to be listed: those of this broker, those of Kafka's, and those that were set."""
    gone = {
        synonym
        for name, key in TOPIC_KEYS.items()
        if name not in config.topic_keys
        for synonym, _ in key.synonyms
    }
    found = {name: key for name, key in BROKER_KEYS.items() if name not in gone and not _is_of_old(name)}
    found |= {name: setting.key for name, setting in inert_keys(config).items()}
    for name in (*config.settings, *config.dynamic, *config.dynamic_defaults):
        if name not in found:
            found[name] = broker_setting(config, name).key
    return found
