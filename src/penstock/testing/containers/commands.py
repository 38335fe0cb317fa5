"""Runs Kafka command lines that tests execute in a container, with Penstock's client instead of a shell.

Supported, with their usual options and also within ``bash -c``, are ``kafka-topics``, ``kafka-configs``,
``kafka-consumer-groups``, ``kafka-get-offsets``, ``kafka-console-producer`` (behind a pipe from echo or
printf), ``kafka-console-consumer``, ``kafka-broker-api-versions``, ``cub kafka-ready`` and ``rpk topic``, one
or several with ``&&`` or ``;`` between them. No command is ever passed to a shell of this machine.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from penstock.client import Admin, Consumer, NewTopic, Producer
from penstock.errors import KafkaError, PenstockError
from penstock.model import EARLIEST, LATEST, TopicPartition

_SHELLS = ("sh", "bash")
_FLAGS = (
    "--all-groups", "--all-topics", "--alter", "--create", "--delete", "--describe", "--dry-run", "--execute",
    "--from-beginning", "--if-exists", "--if-not-exists", "--list", "--members", "--offsets", "--state",
    "--reset-offsets", "--to-earliest", "--to-latest", "--verbose",
)  # fmt: skip

_KNOWN = (
    "kafka-topics, kafka-configs, kafka-consumer-groups, kafka-get-offsets, kafka-console-producer,"
    " kafka-console-consumer, kafka-broker-api-versions, cub kafka-ready and rpk topic"
)

FOLLOW_MS = 10_000
"""The time in ms that a console consumer waits for another message, if its command line does not specify it.
"""


class CommandUnknown(Exception):
    """Raised for a command line that Penstock does not support; it needs a real container."""


class ToolOptions:
    """The options of a tool: the last value given for each name, and all values of ``--config``."""

    def __init__(self, words: Sequence[str]) -> None:
        self.flags: set[str] = set()
        self.values: dict[str, str] = {}
        self.configs: dict[str, str] = {}
        self.rest: list[str] = []
        left = iter(words)
        for word in left:
            name, joined, value = word.partition("=")
            if not word.startswith("-"):
                self.rest.append(word)
            elif word in _FLAGS:
                self.flags.add(word)
            else:
                text = value if joined else next(left, "")
                if name in ("--config", "-c"):
                    key, _, setting = text.partition("=")
                    self.configs[key] = setting
                else:
                    self.values[name] = text

    def number(self, *names: str, default: int) -> int:
        """Return the number of an option that is given under any of `names`, or `default`.

        Raises:
            CommandUnknown: the value is not a number.
        """
        for name in names:
            if name in self.values:
                try:
                    return int(self.values[name])
                except ValueError:
                    raise CommandUnknown(f"{name} takes a number, not {self.values[name]!r}") from None
        return default

    def value(self, name: str) -> str:
        """Return the value of an option.

        Raises:
            CommandUnknown: the command does not have the option.
        """
        if name not in self.values:
            raise CommandUnknown(f"the command names no {name}")
        return self.values[name]

    def topic(self) -> str:
        """Return the value of ``--topic``. Raises `CommandUnknown` if the command does not have it."""
        return self.value("--topic")


def run(command: str | Sequence[str], bootstrap_servers: str) -> tuple[int, bytes]:
    """Run a command line against a broker; return the exit code and the tool's output.

    Raises:
        CommandUnknown: the tool, or an option of the tool, is not supported.
    """
    words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    shown = shlex.join(words)
    if len(words) > 2 and _program(words[0]) in _SHELLS and words[1] in ("-c", "-lc"):
        script = re.sub(r"\s2>&1", "", words[2])
        words = list(shlex.shlex(script, posix=True, punctuation_chars="|;&<>"))
    output = b""
    code = 0
    for joint, part in _parts(words):
        if joint == "&&" and code:
            continue
        code, printed = _run_one(part, bootstrap_servers, shown)
        output += printed
    return code, output


def _parts(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of a shell command line, each with the ``&&`` or ``;`` in front of it."""
    joint, part = ";", list[str]()
    for word in words:
        if word in ("&&", ";"):
            yield joint, part
            joint, part = word, []
        else:
            part.append(word)
    if part or joint != ";" or not words:
        yield joint, part


def _run_one(words: list[str], bootstrap_servers: str, shown: str) -> tuple[int, bytes]:
    """Run one command, which may have a pipe from echo or printf in front of it."""
    typed = b""
    if words and words[0] in ("echo", "printf") and "|" in words:
        pipe = words.index("|")
        typed, words = _typed(words[:pipe]), words[pipe + 1 :]
    name = _program(words[0]) if words else ""
    tool = _TOOLS.get(name)
    if tool is None or any(set(word) <= set("|;&<>") for word in words):
        raise CommandUnknown(
            f"{shown!r} takes a real container: the broker runs in this process. Known are {_KNOWN}"
        )
    try:
        return 0, tool(ToolOptions(words[1:]), bootstrap_servers, typed).encode()
    except KafkaError as error:
        return 1, f"Error while executing the command : {error}\n".encode()
    except PenstockError as error:
        return 1, f"{error}\n".encode()


def _program(word: str) -> str:
    return word.rpartition("/")[2].removesuffix(".sh")


def _typed(words: Sequence[str]) -> bytes:
    is_echo = words[0] == "echo"
    texts = [word for word in words[1:] if not (is_echo and word in ("-e", "-n"))]
    text = " ".join(texts)
    if not is_echo or "-e" in words:
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    return text.encode()


def _topics(options: ToolOptions, bootstrap_servers: str, typed: bytes) -> str:
    with Admin(bootstrap_servers=bootstrap_servers) as admin:
        if "--list" in options.flags:
            return "".join(f"{name}\n" for name in sorted(admin.list_topics(include_internal=True)))
        if "--describe" in options.flags:
            return _described(
                admin, [options.topic()] if "--topic" in options.values else admin.list_topics()
            )
        topic = options.topic()
        exists = topic in admin.list_topics(include_internal=True)
        if "--create" in options.flags:
            if not (exists and "--if-not-exists" in options.flags):
                partitions = options.number("--partitions", default=-1)
                admin.create_topics(
                    [
                        NewTopic(
                            topic,
                            partitions,
                            options.number("--replication-factor", default=-1),
                            options.configs,
                        )
                    ]
                )
            return f"Created topic {topic}.\n"
        if "--delete" in options.flags:
            if exists or "--if-exists" not in options.flags:
                admin.delete_topics([topic])
            return ""
        if "--alter" in options.flags:
            admin.create_partitions(topic, options.number("--partitions", default=1))
            return ""
    raise CommandUnknown("kafka-topics takes one of --create, --list, --describe, --alter, --delete")


def _described(admin: Admin, names: Sequence[str]) -> str:
    lines = []
    for topic in admin.describe_topics(names):
        partitions = topic.partitions
        lines.append(
            f"Topic: {topic.name}\tPartitionCount: {len(partitions)}\tReplicationFactor: 1\tConfigs: "
        )
        lines += [
            f"\tTopic: {topic.name}\tPartition: {number}\tLeader: 1\tReplicas: 1\tIsr: 1"
            for number in range(len(partitions))
        ]
    return "".join(f"{line}\n" for line in lines)


def _produce(options: ToolOptions, bootstrap_servers: str, typed: bytes) -> str:
    if not typed:
        raise CommandUnknown("kafka-console-producer needs its lines from echo or printf, through a pipe")
    properties = options.values.get("--property", "")
    separator = properties.partition("key.separator=")[2].encode() or b"\t"
    has_keys = "parse.key=true" in properties or separator != b"\t"
    with Producer(bootstrap_servers=bootstrap_servers) as producer:
        for line in typed.rstrip(b"\n").split(b"\n"):
            key, found, value = line.partition(separator) if has_keys else (b"", b"", line)
            producer.send(
                options.topic(), value if found or not has_keys else line, key=key if found else None
            )
    return ""


def _consume(options: ToolOptions, bootstrap_servers: str, typed: bytes) -> str:
    count = options.number("--max-messages", default=-1)
    wait_ms = options.number("--timeout-ms", default=FOLLOW_MS)
    values: list[bytes] = []
    topic, group = options.topic(), options.values.get("--group")
    with Consumer(
        bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest" if "--from-beginning" in options.flags else "latest",
    ) as consumer:
        if group is None:
            with Admin(bootstrap_servers=bootstrap_servers) as admin:
                (found,) = admin.describe_topics([topic])
            consumer.assign([(topic, part.partition) for part in found.partitions])
        else:
            consumer.subscribe(topic)
        while count < 0 or len(values) < count:
            records = consumer.poll(wait_ms)
            if not records:
                break
            values += [record.value or b"null" for record in records]
    values = values if count < 0 else values[:count]
    return (b"".join(value + b"\n" for value in values)).decode(errors="replace") + (
        f"Processed a total of {len(values)} messages\n"
    )


def _groups(options: ToolOptions, bootstrap_servers: str, typed: bytes) -> str:
    with Admin(bootstrap_servers=bootstrap_servers) as admin:
        if "--list" in options.flags:
            return "".join(f"{group.group_id}\n" for group in admin.list_groups())
        if "--all-groups" in options.flags:
            names = [group.group_id for group in admin.list_groups()]
        else:
            names = [options.value("--group")]
        if "--describe" in options.flags:
            return "".join(_described_group(admin, name) for name in names)
        if "--delete" in options.flags:
            admin.delete_groups(names)
            return f"Deletion of requested consumer groups ({', '.join(names)}) was successful.\n"
        if "--reset-offsets" in options.flags:
            return "".join(_reset(admin, name, options) for name in names)
    raise CommandUnknown("kafka-consumer-groups takes one of --list, --describe, --delete, --reset-offsets")


def _described_group(admin: Admin, group: str) -> str:
    heads = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    admin.describe_groups([group])  # raises an error for a group that does not exist
    committed = admin.list_group_offsets(group)
    ends = admin.list_offsets(dict.fromkeys(committed, LATEST))
    rows = [heads]
    for partition in sorted(committed):
        end, offset = ends[partition], committed[partition].offset
        last = offset if end is None else end.offset
        rows.append(
            (group, partition.topic, str(partition.partition), str(offset), str(last), str(last - offset))
        )
    return "\n" + "".join(f"{' '.join(f'{word:<15}' for word in row).rstrip()}\n" for row in rows)


def _reset(admin: Admin, group: str, options: ToolOptions) -> str:
    """Set a group's offsets to a topic's earliest or latest offsets, or to ``--to-offset``."""
    if "--all-topics" in options.flags:
        partitions = [*admin.list_group_offsets(group)]
    else:
        topic, _, numbers = options.topic().partition(":")
        (found,) = admin.describe_topics([topic])
        chosen = {int(number) for number in numbers.split(",") if number}
        partitions = [
            TopicPartition(topic, each.partition)
            for each in found.partitions
            if not chosen or each.partition in chosen
        ]
    if "--to-offset" in options.values:
        wanted = dict.fromkeys(partitions, options.number("--to-offset", default=0))
    elif {"--to-earliest", "--to-latest"} & options.flags:
        question = EARLIEST if "--to-earliest" in options.flags else LATEST
        answers = admin.list_offsets(dict.fromkeys(partitions, question))
        wanted = {partition: end.offset for partition, end in answers.items() if end is not None}
    else:
        raise CommandUnknown("--reset-offsets takes --to-earliest, --to-latest or --to-offset")
    if "--execute" in options.flags:
        admin.alter_group_offsets(group, wanted)
    lines = [f"{group} {each.topic} {each.partition} {offset}" for each, offset in sorted(wanted.items())]
    return "\n".join(["", "GROUP TOPIC PARTITION NEW-OFFSET", *lines, ""])


def _configs(options: ToolOptions, bootstrap_servers: str, typed: bytes) -> str:
    kind = options.values.get("--entity-type", "topics" if "--topic" in options.values else "")
    name = (
        options.values.get("--entity-name") or options.values.get("--topic") or options.values.get("--broker")
    )
    if (
        kind not in ("topics", "brokers", "groups")
        or not name
        or (kind == "brokers" and not name.isdecimal())
    ):
        raise CommandUnknown("kafka-configs needs --entity-type topics, brokers or groups and --entity-name")
    entity: dict[str, Any] = {"broker": int(name)} if kind == "brokers" else {kind.rstrip("s"): name}
    with Admin(bootstrap_servers=bootstrap_servers) as admin:
        if "--describe" in options.flags:
            found = admin.describe_config(**entity)
            own = {key: value for key, value in found.items() if not value.is_default}
            lines = [f"  {key}={value.value}" for key, value in sorted(own.items())]
            return "\n".join([f"Dynamic configs for {kind.rstrip('s')} {name} are:", *lines, ""])
        if "--alter" in options.flags:
            added = _settings(options.values.get("--add-config", ""))
            deleted = [word for word in options.values.get("--delete-config", "").split(",") if word]
            admin.alter_config(**entity, set=added, delete=deleted)
            return f"Completed updating config for {kind.rstrip('s')} {name}.\n"
    raise CommandUnknown("kafka-configs takes --alter or --describe")


def _settings(text: str) -> dict[str, str]:
    """Return a dict of the settings in text such as ``name=value,name=[value,value]``."""
    pairs = re.findall(r"([^=,]+)=(\[[^\]]*\]|[^,]*)", text)
    return {name: value.removeprefix("[").removesuffix("]") for name, value in pairs}


def _get_offsets(options: ToolOptions, bootstrap_servers: str, typed: bytes) -> str:
    question = options.number("--time", default=LATEST)
    with Admin(bootstrap_servers=bootstrap_servers) as admin:
        names = [options.topic()] if "--topic" in options.values else admin.list_topics()
        partitions = [
            TopicPartition(topic.name, each.partition)
            for topic in admin.describe_topics(names)
            for each in topic.partitions
        ]
        found = admin.list_offsets(dict.fromkeys(partitions, question))
    return "".join(
        f"{each.topic}:{each.partition}:{'' if (at := found[each]) is None else at.offset}\n"
        for each in sorted(partitions)
    )


def _cub(options: ToolOptions, bootstrap_servers: str, typed: bytes) -> str:
    if options.rest[:1] != ["kafka-ready"]:
        raise CommandUnknown("of cub, kafka-ready is known")
    return ""


def _api_versions(options: ToolOptions, bootstrap_servers: str, typed: bytes) -> str:
    with Admin(bootstrap_servers=bootstrap_servers) as admin:
        return "".join(
            f"{node.host}:{node.port} (id: {node.node_id} rack: null) -> (\n)\n"
            for node in admin.describe_cluster().nodes
        )


def _rpk(options: ToolOptions, bootstrap_servers: str, typed: bytes) -> str:
    words = options.rest
    if words[:1] == ["topic"] and len(words) > 1 and words[1] in ("create", "delete", "list"):
        with Admin(bootstrap_servers=bootstrap_servers) as admin:
            if words[1] == "list":
                return "".join(f"{name}\n" for name in sorted(admin.list_topics()))
            if words[1] == "delete":
                admin.delete_topics(words[2:])
            else:
                count = options.number("-p", "--partitions", default=-1)
                admin.create_topics([NewTopic(name, count, -1, options.configs) for name in words[2:]])
            return "".join(f"{name}  OK\n" for name in words[2:])
    raise CommandUnknown("of rpk, topic create, topic list and topic delete are known")


_TOOLS: dict[str, Callable[[ToolOptions, str, bytes], str]] = {
    "kafka-topics": _topics,
    "kafka-console-producer": _produce,
    "kafka-console-consumer": _consume,
    "kafka-consumer-groups": _groups,
    "kafka-configs": _configs,
    "kafka-get-offsets": _get_offsets,
    "cub": _cub,
    "kafka-broker-api-versions": _api_versions,
    "rpk": _rpk,
}
