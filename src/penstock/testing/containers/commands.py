"""Runs command lines of Kafka's tools, as tests execute them in a container, with Penstock's client.

Supported, with their usual options and also within ``bash -c``, are ``kafka-topics``,
``kafka-console-producer`` (behind a pipe from echo or printf), ``kafka-console-consumer``,
``kafka-consumer-groups --list``, ``kafka-broker-api-versions`` and ``rpk topic``. No command is ever passed
to a shell of this machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from penstock.client import Admin, Consumer, NewTopic, Producer
from penstock.errors import KafkaError, PenstockError

_SHELLS = ("sh", "bash")
_FLAGS = (
    "--alter", "--create", "--delete", "--describe", "--from-beginning", "--if-exists", "--if-not-exists",
    "--list",
)  # fmt: skip

_KNOWN = (
    "kafka-topics, kafka-console-producer, kafka-console-consumer, kafka-consumer-groups --list,"
    " kafka-broker-api-versions and rpk topic"
)

FOLLOW_MS = 10_000
"""How long a console consumer waits for another message where its command line does not say."""


class CommandUnknown(Exception):
    """Raised for a command line that only a real container could run."""


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

    def topic(self) -> str:
        """Return the value of ``--topic``.

        Raises:
            CommandUnknown: the command has no ``--topic``.
        """
        if "--topic" not in self.values:
            raise CommandUnknown("the command names no --topic")
        return self.values["--topic"]


def run(command: str | Sequence[str], bootstrap_servers: str) -> tuple[int, bytes]:
    """Run a command line against a broker; return the exit code and the tool's output.

    Raises:
        CommandUnknown: the tool, or an option of the tool, is not supported.
    """
    words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    shown = shlex.join(words)
    if len(words) > 2 and _program(words[0]) in _SHELLS and words[1] in ("-c", "-lc"):
        words = list(shlex.shlex(words[2], posix=True, punctuation_chars="|;&<>"))
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
    if "--list" not in options.flags:
        raise CommandUnknown("of kafka-consumer-groups --list is known; `penstock group` has the rest")
    with Admin(bootstrap_servers=bootstrap_servers) as admin:
        return "".join(f"{group.group_id}\n" for group in admin.list_groups())


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
    "kafka-broker-api-versions": _api_versions,
    "rpk": _rpk,
}
