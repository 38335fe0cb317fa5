"""Checks changes to settings by clients, and converts them to the records that store the settings.

AlterConfigs replaces all settings of a topic or broker, so that settings not named return to their defaults;
IncrementalAlterConfigs (KIP-339) sets, deletes, appends to and subtracts from single settings. Both become
`ConfigRecord`s, in which a null value is a deletion.

The order of the checks is Apache Kafka's, so that a request with two errors gets the error that Kafka would
return.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from penstock.broker.config.broker_keys import THREAD_KEYS
from penstock.broker.config.definition import LIST, ConfigKey
from penstock.broker.config.inert_keys import UNKNOWN, broker_setting
from penstock.broker.config.kafka_keys import BROKER, LISTENER, READ_ONLY, listener_setting
from penstock.broker.config.penstock_keys import CHANGES_MAX
from penstock.broker.config.resource_keys import check_kept, check_kept_name, kept_kinds
from penstock.broker.config.topic_names import check_topic_name
from penstock.broker.config.values import (
    TOPIC_CHARACTERS_MAX,
    Suggestions,
    TopicConfig,
    parse,
    unknown_name,
)
from penstock.broker.requests.string_lengths import STRING_BYTES_MAX
from penstock.common.logs import logger_named
from penstock.errors import ConfigError, KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import BROKER_RESOURCE, TOPIC_RESOURCE
from penstock.protocol.messages.config_record import ConfigRecord

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig

logger = logger_named("penstock.broker")


class _Topic(Protocol):
    @property
    def config(self) -> TopicConfig: ...


class ConfigTarget(Protocol):
    """The interface of the cluster's metadata through which settings are read and changed."""

    @property
    def config(self) -> BrokerConfig: ...
    @property
    def node_id(self) -> int: ...
    @property
    def topics(self) -> Mapping[str, _Topic]: ...
    @property
    def resource_configs(self) -> Mapping[tuple[int, str], Mapping[str, str]]: ...
    @property
    def features(self) -> Mapping[str, int]: ...
    @property
    def setting_checks(self) -> Sequence[Callable[[Mapping[str, str]], None]]: ...
    def alter(self, records: Sequence[ConfigRecord], now_ms: int) -> object: ...


class _Resource(Protocol):
    resource_type: int
    resource_name: str


class _Answer(Protocol):
    error_code: int
    error_message: str | None


R = TypeVar("R", bound=_Resource)
A = TypeVar("A", bound=_Answer)

MINIMUM = "min.insync.replicas"
ELR_FEATURE = "eligible.leader.replicas.version"
"""The name of the feature of eligible leader replicas, which may lead without being in sync (KIP-966)."""

SET, DELETE, APPEND, SUBTRACT = range(4)
"""The operations on a setting, as IncrementalAlterConfigs numbers them."""

KEPT_RESOURCES_MAX = 1000
"""The maximum number of groups and client metrics subscriptions, together, that may have settings."""

BROKER_TEXTS_MAX = 1000
"""The most dynamic settings of a broker, including those with unknown names."""


RESOURCE_CHARACTERS_MAX = 1000
"""The longest name of a resource that may have settings, in characters."""


class SettingChange(NamedTuple):
    """A change to one setting. `value` is None if the request has no value."""

    name: str
    operation: int
    value: str | None


def repeated_resources(resources: Sequence[tuple[int, str]]) -> set[tuple[int, str]]:
    """Return the (type, name) pairs that a request names more than once."""
    return {resource for resource, times in Counter(resources).items() if times > 1}


def answer_each(
    resources: Sequence[R],
    plan: Callable[[R, Suggestions], list[ConfigRecord]],
    answer_class: Callable[..., A],
    *,
    validate_only: bool,
    cluster: ConfigTarget,
    now_ms: int,
) -> list[A]:
    """Write the records that `plan` returns for each resource, all in one batch; return their results.

    A resource with an error has no records in the batch. With `validate_only` nothing is written.
    """
    config, suggestions = cluster.config, Suggestions()
    repeated = repeated_resources([(r.resource_type, r.resource_name) for r in resources])
    most = config.integer(CHANGES_MAX)
    answers: list[A] = []
    good: list[A] = []
    records: list[ConfigRecord] = []
    fresh = 0
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        answer = answer_class(resource_type=key[0], resource_name=key[1], error_message=None)
        answers.append(answer)
        try:
            if key in repeated:
                raise error_for(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            if len(good) >= most:
                raise error_for(
                    ErrorCode.POLICY_VIOLATION,
                    f"more than {most} resources in one request ({CHANGES_MAX}); ask again for the rest",
                )
            planned = plan(resource, suggestions)
            is_fresh = bool(planned) and key[0] not in (TOPIC_RESOURCE, BROKER_RESOURCE)
            if is_fresh and key not in cluster.resource_configs:
                if len(cluster.resource_configs) + fresh >= KEPT_RESOURCES_MAX:
                    raise error_for(
                        ErrorCode.POLICY_VIOLATION,
                        f"{KEPT_RESOURCES_MAX} groups and subscriptions have settings, which is the limit: "
                        "delete settings first",
                    )
                fresh += 1
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.detail
        else:
            records += planned
            good.append(answer)
    try:
        if not validate_only:
            cluster.alter(records, now_ms)
    except StorageError as error:
        logger.error("%s", error)
        for answer in good:
            answer.error_code, answer.error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    return answers


def plan_replacement(
    cluster: ConfigTarget,
    resource_type: int,
    name: str,
    wanted: Sequence[tuple[str, str | None]],
    suggestions: Suggestions,
) -> list[ConfigRecord]:
    """Return the records that set the settings `wanted` of a resource and delete all its other settings.

    Raises:
        KafkaError: for the same reasons as in `plan_changes`.
    """
    present = _texts_of(cluster, resource_type, name)
    named = {setting for setting, _ in wanted}
    changes = [SettingChange(setting, SET, value) for setting, value in wanted]
    changes += [SettingChange(setting, DELETE, None) for setting in present if setting not in named]
    return plan_changes(cluster, resource_type, name, changes, suggestions)


def plan_changes(
    cluster: ConfigTarget,
    resource_type: int,
    name: str,
    changes: Sequence[SettingChange],
    suggestions: Suggestions,
) -> list[ConfigRecord]:
    """Check `changes` and return their metadata records; a value that is set already needs no record.

    `suggestions` limits the number of unknown names in a request for which a similar name is searched.

    Raises:
        KafkaError: INVALID_REQUEST (42), INVALID_CONFIG (40), UNKNOWN_TOPIC_OR_PARTITION (3),
            INVALID_TOPIC_EXCEPTION (17) or POLICY_VIOLATION (44), as it applies. If it raises, the caller
            must make none of the changes.
    """
    check_changes(changes)
    present = _texts_of(cluster, resource_type, name)
    texts = dict(present)
    for change in changes:
        _apply(cluster, texts, change, resource_type, name, suggestions)
    check_lengths({setting: text for setting, text in texts.items() if text != present.get(setting)})
    _check_kept(resource_type, name, texts)
    if resource_type == TOPIC_RESOURCE:
        _check_topic(cluster, texts, suggestions)
    elif resource_type == BROKER_RESOURCE:
        _check_minimum(cluster, changes, name)
        _check_broker(cluster, texts, name)
    else:
        check_kept(cluster.config, resource_type, texts)
    return [
        ConfigRecord(resource_type=resource_type, resource_name=name, name=setting, value=texts.get(setting))
        for setting in sorted({*texts, *present})
        if texts.get(setting) != present.get(setting)
    ]


def check_lengths(texts: Mapping[str, str | None]) -> None:
    """Check that names and values of settings fit into responses of every version.

    Newer requests may contain strings of any length, but older responses only strings of at most 32,767
    bytes.

    Raises:
        KafkaError: INVALID_CONFIG (40): a name or a value is too long.
    """
    for name, text in texts.items():
        if len(name.encode()) > STRING_BYTES_MAX or len((text or "").encode()) > STRING_BYTES_MAX:
            raise error_for(
                ErrorCode.INVALID_CONFIG,
                f"a name or value longer than {STRING_BYTES_MAX} bytes for setting {name[:100]}",
            )


def _check_kept(resource_type: int, name: str, texts: Mapping[str, str]) -> None:
    """Check the lengths of the name and settings of a group or metrics subscription.

    Raises:
        KafkaError: POLICY_VIOLATION (44): more characters than the broker stores.
    """
    if len(name) > RESOURCE_CHARACTERS_MAX:
        raise error_for(
            ErrorCode.POLICY_VIOLATION,
            f"a resource's name has {len(name)} characters, at most {RESOURCE_CHARACTERS_MAX} are kept",
        )
    total = sum(map(len, texts.values())) if resource_type == TOPIC_RESOURCE else 0
    if total > TOPIC_CHARACTERS_MAX:
        raise error_for(
            ErrorCode.POLICY_VIOLATION,
            f"settings of {total} characters; those of a topic have at most {TOPIC_CHARACTERS_MAX}",
        )


def check_changes(changes: Sequence[SettingChange]) -> None:
    """Check that no setting is named twice, and that each change except a DELETE has a value.

    Raises:
        KafkaError: INVALID_REQUEST (42): a name occurs twice, or a value is missing.
    """
    if len({change.name for change in changes}) < len(changes):
        raise error_for(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    null = [change.name for change in changes if change.value is None and change.operation != DELETE]
    if null:
        raise error_for(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(null)}")


def _check_topic(cluster: ConfigTarget, texts: Mapping[str, str], suggestions: Suggestions) -> None:
    try:
        TopicConfig(cluster.config, texts, suggestions).check_together()
    except ConfigError as error:
        raise error_for(ErrorCode.INVALID_CONFIG, str(error)) from None


def _check_minimum(cluster: ConfigTarget, changes: Sequence[SettingChange], name: str) -> None:
    """Refuse some changes of `min.insync.replicas` while eligible leader replicas are enabled (KIP-966).

    All brokers must have the same minimum: it cannot be set for a single broker, and the value for all
    brokers cannot be deleted.
    """
    if not cluster.features.get(ELR_FEATURE):
        return
    for change in changes:
        if change.name != MINIMUM:
            continue
        if name:
            text = f"Broker-level {MINIMUM} cannot be altered while ELR is enabled."
            raise error_for(ErrorCode.INVALID_CONFIG, text)
        if change.operation == DELETE:
            text = f"Cluster-level {MINIMUM} cannot be removed while ELR is enabled."
            raise error_for(ErrorCode.INVALID_CONFIG, text)


def _check_broker(cluster: ConfigTarget, texts: Mapping[str, str], name: str) -> None:
    """Check changes to the dynamic settings of one broker, or of all brokers if `name` is empty."""
    settings = {setting: broker_setting(cluster.config, setting) for setting in texts}
    for change, reason in (
        (READ_ONLY, "Cannot update these configs dynamically"),
        (LISTENER, "These settings can be changed only behind listener.name.NAME."),
        (BROKER, "Cannot update these configs at default cluster level, broker id must be specified"),
    ):
        if change == BROKER and name:
            continue
        wrong = [setting for setting, (_, how) in settings.items() if how == change]
        if wrong:
            raise error_for(ErrorCode.INVALID_REQUEST, f"{reason}: [{', '.join(wrong)}]")
    if len(texts) > BROKER_TEXTS_MAX:
        raise error_for(ErrorCode.POLICY_VIOLATION, f"more than {BROKER_TEXTS_MAX} settings of a broker")
    try:
        for setting, text in texts.items():
            if settings[setting].key.type != UNKNOWN:
                parse(settings[setting].key, text)
            if listener_setting(setting) in THREAD_KEYS and (name or setting not in cluster.config.dynamic):
                _check_threads(cluster.config, settings[setting].key, int(text))
        for check in cluster.setting_checks if name else ():
            check(texts)
    except ConfigError as error:
        raise error_for(ErrorCode.INVALID_REQUEST, str(error)) from None


def _check_threads(config: BrokerConfig, key: ConfigKey, number: int) -> None:
    """Check that a number of threads is at least half and at most double the present one.

    Raises:
        ConfigError: the number is outside of these bounds.
    """
    base = broker_setting(config, listener_setting(key.name)).key
    places = [*config.settings_of(key.name, key), *config.settings_of(base.name, base)]
    present = next((int(each.text or 0) for each in places), number)
    what = f"Dynamic thread count update validation failed for {key.name}={number}, value should"
    if number <= 0:
        raise ConfigError(f"{what} be at least 1")
    if number < present // 2:
        raise ConfigError(f"{what} be at least half the current value {present}")
    if number > present * 2:
        raise ConfigError(f"{what} not be greater than double the current value {present}")


def _texts_of(cluster: ConfigTarget, resource_type: int, name: str) -> Mapping[str, str]:
    """Return the settings that are set for a resource, as a mapping from name to text.

    Raises:
        KafkaError: the resource does not exist.
    """
    if resource_type == TOPIC_RESOURCE:
        if not name:
            raise error_for(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        check_topic_name(name)
        if name not in cluster.topics:
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        return cluster.topics[name].config.overrides
    if resource_type == BROKER_RESOURCE:
        if name in ("", str(cluster.node_id)):
            return cluster.config.dynamic if name else cluster.config.dynamic_defaults
        if not name.removeprefix("-").isdecimal():
            raise error_for(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        raise error_for(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {cluster.node_id}, but received {name}",
        )
    if resource_type in kept_kinds(cluster.config):
        check_kept_name(resource_type, name)
        return cluster.resource_configs.get((resource_type, name), {})
    raise error_for(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def _apply(
    cluster: ConfigTarget,
    texts: dict[str, str],
    change: SettingChange,
    resource_type: int,
    resource: str,
    suggestions: Suggestions,
) -> None:
    """Apply one change to `texts`, the resource's settings, after checking it."""
    setting, operation, value = change
    is_topic = resource_type == TOPIC_RESOURCE
    if operation == DELETE:
        texts.pop(setting, None)
        return
    if is_topic and setting not in cluster.config.topic_keys:
        unknown = unknown_name(setting, cluster.config.topic_keys, suggestions)
        raise error_for(ErrorCode.INVALID_CONFIG, str(unknown))
    if operation == SET:
        texts[setting] = value or ""
        return
    if operation not in (APPEND, SUBTRACT):
        raise error_for(ErrorCode.INVALID_REQUEST, f"Unknown operation type {operation}.")
    present: str | None = None
    if is_topic:
        type_ = cluster.config.topic_keys[setting].type
        present = cluster.topics[resource].config.text(setting)
    elif resource_type == BROKER_RESOURCE:
        key = broker_setting(cluster.config, setting).key
        type_ = key.type
        present = next((each.text for each in cluster.config.settings_of(setting, key)), None)
    else:
        type_ = UNKNOWN  # Apache Kafka has no lists among these
    if type_ != LIST:
        word = "APPEND" if operation == APPEND else "SUBTRACT"
        raise error_for(
            ErrorCode.INVALID_CONFIG, f"Can't {word} to key {setting} because its type is not LIST."
        )
    items, named = _items(texts.get(setting, present)), _items(value)
    if operation == APPEND:
        items += [item for item in named if item not in items]
    else:
        items = [item for item in items if item not in named]
    texts[setting] = ",".join(items)


def _items(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]
