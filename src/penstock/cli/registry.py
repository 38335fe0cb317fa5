"""``penstock registry``: runs a schema registry, and shows, compares and registers schemas."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import client_settings, property_option, registry_option
from penstock.cli.outcome import FAILURE, put
from penstock.cli.schema_files import TYPES, schema_in_file
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.registry import RegistryClient, Schema


@click.group("registry", short_help="Run a schema registry; look into one, check and register schemas.")
def command() -> None:
    """Run a schema registry; show, compare, check and register schemas.

    \b
    Examples:
      penstock registry run                      in memory, on 127.0.0.1:8081
      penstock registry run -b kafka:9092        in topic _schemas of a Kafka
      penstock registry list
      penstock registry check orders-value order.avsc
      penstock registry diff orders-value        the two newest versions
      penstock registry register orders-value order.avsc
    """


_url_option = registry_option("--url")


@command.command("run", short_help="Run a schema registry until Ctrl-C or SIGTERM.")
@click.option(
    "-b", "--bootstrap-server", metavar="HOST:PORT", help="Keep schemas in topic _schemas of this Kafka."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8081,
    show_default=True,
    help="The port; 0 is any free one.",
)
@click.option("--users", type=click.Path(exists=True, dir_okay=False), help="A file of lines name:password.")
@click.option(
    "--certificate", type=click.Path(exists=True, dir_okay=False), help="Speak TLS with this PEM file."
)
@click.option("--key", type=click.Path(exists=True, dir_okay=False), help="The key of the certificate.")
@click.option(
    "--advertised",
    metavar="HOST[:PORT]",
    help="Share the topic with other registries, which reach this one here: one is elected to write.",
)
@click.option("--group-id", metavar="ID", help="The group that elects.  [default: schema-registry]")
@click.option("--never-elected", is_flag=True, help="Do not be elected (leader.eligibility=false).")
@click.option(
    "--session-timeout-ms",
    type=click.IntRange(1),
    metavar="N",
    help="How long a dead registry stays elected.  [default: 10000]",
)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False),
    help="What signs the other registries' certificates.",
)
@property_option()
def run(
    bootstrap_server: str | None,
    host: str,
    port: int,
    users: str | None,
    certificate: str | None,
    key: str | None,
    advertised: str | None,
    group_id: str | None,
    never_elected: bool,
    session_timeout_ms: int | None,
    ca: str | None,
    properties: tuple[str, ...],
) -> None:
    """Run a schema registry until Ctrl-C or SIGTERM, and print its URL when it is ready.

    \b
    Examples:
      penstock registry run --port 0
      penstock registry run -b kafka:9092 --users users.txt
      penstock registry run -b kafka:9092 --host 0.0.0.0 --advertised registry-1
    """
    from penstock.registry import Registry

    if advertised is None and (group_id or never_elected or session_timeout_ms or ca):
        raise ConfigError(
            "--group-id, --never-elected, --session-timeout-ms and --ca are for registries that share "
            "a topic: give --advertised too"
        )
    election: dict[str, Any] = {} if session_timeout_ms is None else _session(session_timeout_ms)
    if group_id is not None:
        election["group_id"] = group_id
    config = client_settings(properties) if bootstrap_server is not None else None
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    with Registry(
        bootstrap_server,
        host=host,
        port=port,
        users=None if users is None else _users(users),
        certificate=certificate,
        key=key,
        config=config,
        advertised=advertised,
        leader_eligibility=not never_elected,
        ca=ca,
        **election,
    ) as registry:
        kept = f"topic _schemas of {bootstrap_server}" if bootstrap_server else "memory"
        put(f"schema registry at {registry.url}, schemas in {kept}")
        sys.stdout.flush()
        stopped.wait()


@command.command("list", short_help="The subjects of a registry, and their newest versions.")
@_url_option
@json_option()
def list_subjects(url: str, as_json: bool) -> None:
    """List the subjects of a registry, with newest version, id and type.

    \b
    Example:
      penstock registry list --url http://localhost:8081
    """
    from penstock.registry import RegistryClient

    with RegistryClient(url) as client:
        rows = [client.version(subject) for subject in client.subjects()]
    put_rows(
        "subject",
        [
            {"subject": each.subject, "version": each.version, "id": each.id, "type": each.schema.type}
            for each in rows
        ],
        as_json,
    )


@command.command("show", short_help="The text of a schema.")
@click.argument("subject")
@click.argument("version", default="latest")
@_url_option
def show(subject: str, version: str, url: str) -> None:
    """Print the text of a version of a subject, by default the newest.

    \b
    Example:
      penstock registry show orders-value 2
    """
    from penstock.registry import RegistryClient

    with RegistryClient(url) as client:
        found = client.version(subject, int(version) if version.isdigit() else version)
    put(_printed(found.schema.text) if found.schema.type != "PROTOBUF" else found.schema.text.rstrip())


@command.command("check", short_help="Whether a schema may become the next version of a subject.")
@click.argument("subject")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@_url_option
def check(subject: str, file: str, url: str) -> int:
    """Check whether a schema may become the next version of a subject: the exit code is 1 if not.

    FILE ends with .avsc (Avro), .json (JSON Schema) or .proto (Protobuf).

    \b
    Example:
      penstock registry check orders-value order.avsc
    """
    from penstock.registry import RegistryClient

    with RegistryClient(url) as client:
        is_compatible, messages = client.is_compatible(subject, schema_in_file(file))
    for each in messages:
        put(each)
    if is_compatible:
        put("compatible")
    return 0 if is_compatible else FAILURE


@command.command("diff", short_help="In which parts two schemas differ, and whether each reads the other's.")
@click.argument("old")
@click.argument("new", required=False)
@_url_option
def diff(old: str, new: str | None, url: str) -> int:
    """Show the parts in which two schemas differ, and whether each can read values of the other.

    OLD and NEW are files as in check, subjects (their newest version), or SUBJECT:VERSION. Without NEW,
    the newest version of the subject OLD is compared with the one before. The exit code is 1 if they
    differ, as with diff.

    \b
    Examples:
      penstock registry diff orders-value
      penstock registry diff orders-value:1 orders-value:3
      penstock registry diff orders-value order.avsc
    """
    from penstock.registry import RegistryClient
    from penstock.registry.comparison import differences, misreadings

    with RegistryClient(url) as client:
        if new is None:
            new, old = old, f"{old}:{_before_newest(client, old)}"
        before, after = (_file_or_version(client, each) for each in (old, new))
        known, now = client.referenced(before), client.referenced(after)
    found = differences(before, known, after, now)
    for each in found:
        put(str(each))
    if not found:
        put("no differences")
        return 0
    for title, problems in (
        ("the new schema reads what the old one wrote (BACKWARD)", misreadings(after, now, before, known)),
        ("the old schema reads what the new one wrote (FORWARD)", misreadings(before, known, after, now)),
    ):
        put(f"{title}: {'no' if problems else 'yes'}")
        for problem in problems:
            put(f"  {problem}")
    return FAILURE


def _before_newest(client: RegistryClient, subject: str) -> int:
    """Return the number of the version before the newest. Raises ConfigError if there is none."""
    versions = client.versions(subject)
    if len(versions) < 2:
        raise ConfigError(f"subject {subject!r} has one version: name what to compare it with")
    return versions[-2]


def _file_or_version(client: RegistryClient, word: str) -> Schema:
    if Path(word).suffix in TYPES and Path(word).exists():
        return schema_in_file(word)
    subject, colon, number = word.rpartition(":")
    if colon and number.isdigit():
        return client.version(subject, int(number)).schema
    return client.version(word).schema


@command.command("register", short_help="Register a schema as the next version of a subject.")
@click.argument("subject")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@_url_option
def register(subject: str, file: str, url: str) -> None:
    """Register the schema in FILE (as in check), and print its id.

    \b
    Example:
      penstock registry register orders-value order.avsc
    """
    from penstock.registry import RegistryClient

    with RegistryClient(url) as client:
        put(str(client.register(subject, schema_in_file(file))))


def _session(timeout_ms: int) -> dict[str, int]:
    """Return settings for a session timeout, with the heartbeat interval that Kafka's clients would use."""
    return {"session_timeout_ms": timeout_ms, "heartbeat_interval_ms": max(1, timeout_ms * 3 // 10)}


def _printed(text: str) -> str:
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)


def _users(file: str) -> dict[str, str]:
    found = {}
    for number, line in enumerate(Path(file).read_text(encoding="utf-8").splitlines(), 1):
        name, colon, password = line.partition(":")
        if line.strip():
            if not colon or not name:
                raise ConfigError(f"{file}, line {number}: name:password is needed")
            found[name] = password
    return found
