"""Send every API's requests as users with different rights, to compare two secured brokers.

`SecuredTalk` is a `Talk` whose connections belong to users; its unrecorded requests are sent by a super
user. Each row of `RIGHTS` is a user with ACLs on resources of that user. In addition, every request names
a resource that belongs to another user.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from compat.scripts import rows
from compat.transcript import WAITS_MAX, Exchange, Talk
from penstock.records.batch import encode_batch
from penstock.security.acls import Acl, parse_rule

ROOT = "root"
"""The name of the super user."""

PASSWORD = "pass-word"

PLACES = ("t", "g", "x")

RIGHTS: dict[str, list[str]] = {
    "nothing": [],
    "everything": [
        "allow {u} all topic:*",
        "allow {u} all group:*",
        "allow {u} all cluster",
        "allow {u} all transactional_id:*",
        "allow {u} all delegation_token:*",
        "allow {u} all user:*",
    ],
    **{
        f"topic-{operation.replace('_', '-')}": [f"allow {{u}} {operation} topic:{{u}}-t"]
        for operation in (
            "all",
            "read",
            "write",
            "create",
            "delete",
            "alter",
            "describe",
            "describe_configs",
            "alter_configs",
        )
    },
    **{
        f"group-{operation.replace('_', '-')}": [f"allow {{u}} {operation} group:{{u}}-g"]
        for operation in ("all", "read", "delete", "describe", "describe_configs", "alter_configs")
    },
    **{
        f"cluster-{operation.replace('_', '-')}": [f"allow {{u}} {operation} cluster"]
        for operation in (
            "create",
            "cluster_action",
            "describe_configs",
            "alter_configs",
            "idempotent_write",
            "alter",
            "describe",
            "delete",
        )
    },
    **{
        f"id-{operation.replace('_', '-')}": [f"allow {{u}} {operation} transactional_id:{{u}}-x"]
        for operation in ("describe", "write", "two_phase_commit")
    },
    "tokens-describe": ["allow {u} describe delegation_token:*"],
    "user-create": ["allow {u} create_tokens user:User:other"],
    "user-describe": ["allow {u} describe_tokens user:User:other"],
    "prefixed": ["allow {u} read topic:{u}*", "allow {u} read group:{u}*"],
    "prefixed-create": ["allow {u} create,describe topic:{u}*"],
    "wildcard": ["allow {u} describe topic:*", "allow {u} describe group:*"],
    "denied": ["allow {u} all topic:{u}-t", "deny {u} read topic:{u}-t"],
    "denied-describe": ["allow {u} read,write topic:{u}-t", "deny {u} describe topic:{u}-t"],
    "denied-prefix": ["allow {u} all topic:*", "deny {u} all topic:{u}*"],
    "denied-cluster": ["allow {u} all cluster", "deny {u} alter cluster"],
    "denied-everyone": ["allow {u} all topic:{u}-t", "deny * write topic:{u}-t"],
    "everyone": ["allow * read,write topic:{u}-t", "allow * all group:{u}-g"],
    "host": ["allow {u} read,write topic:{u}-t from 127.0.0.1", "allow {u} all group:{u}-g from 127.0.0.1"],
    "other-host": ["allow {u} all topic:{u}-t from 10.0.0.1", "deny {u} all group:{u}-g from 10.0.0.1"],
    "other-type": ["allow Group:{u} all topic:{u}-t", "allow user:{u} all group:{u}-g"],
    "consumer": ["allow {u} read topic:{u}-t", "allow {u} read group:{u}-g"],
    "transaction": [
        "allow {u} read,write topic:{u}*",
        "allow {u} read group:{u}-g",
        "allow {u} write transactional_id:{u}-x",
    ],
    "transaction-without-topic": ["allow {u} read group:{u}-g", "allow {u} write transactional_id:{u}-x"],
    "transaction-without-group": ["allow {u} write topic:{u}-t", "allow {u} write transactional_id:{u}-x"],
    "topic-admin": ["allow {u} create,delete,describe_configs topic:{u}*"],
    "group-delete-topic-read": ["allow {u} delete group:{u}-g", "allow {u} read topic:{u}-t"],
    "id-describe-topic": ["allow {u} describe transactional_id:{u}-x", "allow {u} describe topic:{u}-t"],
}
"""A dict from a user to that user's ACLs. ``{u}`` in an ACL stands for the user's name."""


class SecuredTalk(Talk):
    """A `Talk` with a SASL listener. Each connection belongs to a user, and authenticates with PLAIN."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.names: dict[int, str | None] = {}
        self.topic_names: dict[bytes, str] = {bytes(16): "none"}

    def user(self, name: str | None) -> int:
        """Return the number of this user's connection.

        For None it returns a new connection without authentication.
        """
        for number, known in self.names.items():
            if known == name and name is not None:
                return number
        return self.another(name)

    def another(self, name: str | None) -> int:
        """Return the number of a new connection for this user."""
        self.names[len(self.names) + 1] = name
        return len(self.names)

    def _write(self, data: bytes, on: int) -> None:
        if on not in self.sockets:
            name = ROOT if on in (-1, 0) else None if on == -2 else self.names[on]
            self.sockets[on] = socket.create_connection(("127.0.0.1", self.port), self._patience_s)
            if name is not None:
                log_in(self.sockets[on], name)
        super()._write(data, on)

    def topic_id(self, name: str) -> bytes:
        found = super().topic_id(name)
        self.topic_names[found] = name
        return found

    def ask_unnoted(self, api: str, version: int, tree: Any, *, on: int) -> Any:
        """Send a request as a user without recording the answer, for answers with random content."""
        noted = len(self.exchanges)
        try:
            return self.ask(api, version, tree, on=on)
        finally:
            del self.exchanges[noted:]

    def note_answer(self, word: str, about: str, answer: Any) -> None:
        """Record an answer, so that it is compared between the brokers."""
        self.exchanges.append(Exchange(word, 0, about, answer))

    def settle(self) -> None:
        """Wait until earlier changes have reached the broker: create an ACL, and wait until it is visible."""
        if not self._settle_s:
            return
        name = f"settled-{time.monotonic_ns()}"
        create(self, [Acl(2, "settled", 3, f"User:{name}", "*", 3, 3)])
        wanted = {**EVERY_ENTRY, "principal_filter": f"User:{name}"}
        for _ in range(4 * WAITS_MAX):
            if self.ask_quietly("DescribeAcls", 2, wanted)["resources"]:
                return
            time.sleep(0.002)
        raise AssertionError("a change does not arrive")

    def plain(self, value: Any, field: str = "") -> Any:
        """Return a value in comparable form, as `Talk.plain` does.

        In addition, topic ids are replaced with names, and list entries without a name get a
        distinguishing key.
        """
        if field == "topic_id" and value in self.topic_names:
            return f"id of {self.topic_names[value]}"
        if field == "producer_id" and isinstance(value, int):
            return "none" if value < 0 else "a producer"
        if field == "mechanisms" and isinstance(value, list):
            return sorted(value)  # Kafka has them in the order of a hash
        plain = super().plain(value, field)
        if isinstance(plain, dict) and "name" not in plain:
            kind = [str(plain[each]) for each in TELLING if each in plain]
            if kind:
                plain["name"] = " ".join(
                    kind + [each["principal_name"] for each in plain.get("renewers", ())]
                )
        return plain


TELLING = (
    "principal",
    "host",
    "operation",
    "permission_type",
    "resource_type",
    "resource_name",
    "pattern_type",
    "user",
    "principal_name",
    "token_requester_principal_name",
    "mechanism",
)
"""Fields that distinguish one ACL, delegation token or user from another."""


def log_in(connection: socket.socket, user: str, password: str = PASSWORD) -> None:
    """Authenticate with PLAIN, with raw SASL tokens that have no header (SaslHandshake v0)."""
    token = f"\0{user}\0{password}".encode()
    handshake = struct.pack(">hhih", 17, 0, 1, 1) + b"c" + struct.pack(">h", 5) + b"PLAIN"
    connection.sendall(struct.pack(">i", len(handshake)) + handshake)
    reader = connection.makefile("rb")
    reader.read(struct.unpack(">i", reader.read(4))[0])
    connection.sendall(struct.pack(">i", len(token)) + token)
    assert reader.read(4) == bytes(4), f"{user} is not let in"


# --- what there is ------------------------------------------------------------------------------------------


def entries(user: str) -> list[Acl]:
    """Return the ACLs of a user."""
    return [acl for rule in RIGHTS[user] for acl in parse_rule(rule.format(u=user))]


def create(t: Talk, acls: list[Acl]) -> None:
    """Create ACLs as the super user."""
    creations = [
        {
            "resource_type": acl.resource_type,
            "resource_name": acl.resource_name,
            "resource_pattern_type": acl.pattern_type,
            "principal": acl.principal,
            "host": acl.host,
            "operation": acl.operation,
            "permission_type": acl.permission,
        }
        for acl in acls
    ]
    answer = t.ask_quietly("CreateAcls", 2, {"creations": creations})
    assert not any(each["error_code"] for each in answer["results"]), answer


def prepare(t: Talk) -> None:
    """Create topics with a record, groups with an offset, transactional ids and ACLs for every user."""
    users = [*RIGHTS, "other"]
    topics = [f"{user}-{end}" for user in users for end in ("t", "doomed1", "doomed2", "doomed3")]
    keep = [{"name": "retention.ms", "value": "-1"}]  # the records' times are long ago
    wanted = [
        {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": keep} for name in topics
    ]
    made = t.ask_quietly("CreateTopics", 5, {"topics": wanted, "timeout_ms": 30_000})
    assert not any(each["error_code"] for each in made["topics"]), made
    create(t, [acl for user in RIGHTS for acl in entries(user)])
    for user in users:
        initial = {"transactional_id": f"{user}-x", "transaction_timeout_ms": 60_000}
        until_done(t, "FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [f"{user}-g"]})
        until_done(t, "FindCoordinator", 4, {"key_type": 1, "coordinator_keys": [f"{user}-x"]})
        until_done(t, "OffsetCommit", 8, commit(f"{user}-g", f"{user}-t"))
        until_done(t, "InitProducerId", 3, initial)
        until_done(t, "Produce", 9, produce(f"{user}-t", bytes(16)))
    t.settle()


def until_done(t: Talk, api: str, version: int, tree: dict[str, Any]) -> None:
    """Repeat a request until its answer has no error, since coordinators take a while to load."""
    for _ in range(WAITS_MAX):
        if has_changed(answer := t.ask_quietly(api, version, tree)):
            return
        time.sleep(0.02)
    raise AssertionError(f"{api}: {answer}")


def commit(group: str, *topics: str, ids: tuple[bytes, ...] = ()) -> dict[str, Any]:
    """Return an OffsetCommit request that is sent without group membership."""
    place = {
        "partition_index": 0,
        "committed_offset": 1,
        "committed_leader_epoch": -1,
        "committed_metadata": "",
    }
    named = zip(topics, ids or (bytes(16),) * len(topics), strict=True)
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "retention_time_ms": -1,
        "topics": [{"name": name, "topic_id": each, "partitions": [place]} for name, each in named],
    }


def produce(
    topic: str, topic_id: bytes, *, transactional: str | None = None, acks: int = -1
) -> dict[str, Any]:
    """Return a Produce request with one record."""
    batch = encode_batch(rows(b"x"))
    if transactional is not None:
        batch = encode_batch(
            rows(b"x"), producer_id=9999, producer_epoch=0, base_sequence=0, is_transactional=True
        )
    return {
        "transactional_id": transactional,
        "acks": acks,
        "timeout_ms": 5000,
        "topic_data": [
            {"name": topic, "topic_id": topic_id, "partition_data": [{"index": 0, "records": batch}]}
        ],
    }


# --- every API ----------------------------------------------------------------------------------------------

Trees = Callable[["Names", int], list[dict[str, Any]]]
ASKED: dict[str, Trees] = {}
"""A dict from an API to the function that makes its requests for a user and a version."""

SETTLING = {
    "CreateTopics",
    "DeleteTopics",
    "CreateAcls",
    "DeleteAcls",
    "AlterUserScramCredentials",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "AlterClientQuotas",
    "CreateDelegationToken",
}
"""APIs whose changes must reach every part of Apache Kafka before the next request is sent."""


class Names:
    """The names of one user's resources, and of resources that belong to another user."""

    def __init__(self, t: Talk, user: str) -> None:
        self.user = user
        self.topic, self.group, self.id = (f"{user}-{end}" for end in PLACES)
        self.other_topic, self.other_group, self.other_id = (f"other-{end}" for end in PLACES)
        self.missing = f"{user}-missing"
        self.topics = [self.topic, self.other_topic, self.missing]
        self.ids = {name: t.topic_id(name) for name in (self.topic, self.other_topic)}
        self.ids[self.missing] = b"\7" * 16
        self.round = 0

    def each(self, field: str = "name", **more: Any) -> list[dict[str, Any]]:
        """Return a request entry for each of the user's, the other user's and the missing topic."""
        return [{field: name, "topic_id": self.ids[name], **more} for name in self.topics]


def asks(api: str) -> Callable[[Trees], Trees]:
    def register(function: Trees) -> Trees:
        ASKED[api] = function
        return function

    return register


def simply(api: str, trees: Callable[[Names], list[dict[str, Any]]]) -> None:
    ASKED[api] = lambda names, version: trees(names)


ANY_TOPIC, LITERAL_TOPIC = 1, 2
BROKER, LOGGER, METRICS, GROUP_CONFIGS = 4, 8, 16, 32


@asks("Produce")
def _produce(n: Names, version: int) -> list[dict[str, Any]]:
    topics = [produce(name, n.ids[name])["topic_data"][0] for name in n.topics]
    several = {**produce(n.topic, n.ids[n.topic]), "topic_data": topics}
    return [
        several,
        {**several, "acks": 1},
        produce(n.topic, n.ids[n.topic], transactional=n.id),
        produce(n.topic, n.ids[n.topic], transactional=n.other_id),
    ]


@asks("Fetch")
def _fetch(n: Names, version: int) -> list[dict[str, Any]]:
    place = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": 0,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 1000,
    }
    tree = {
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 10_000,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": n.each("topic", partitions=[place]),
        "forgotten_topics_data": [],
        "rack_id": "",
        "replica_state": {"replica_id": -1, "replica_epoch": -1},
    }
    replica = {"replica_id": 1, "replica_state": {"replica_id": 1, "replica_epoch": -1}}
    return [tree, {**tree, "topics": tree["topics"][1:2]}, {**tree, **replica, "topics": tree["topics"][:1]}]


simply(
    "ListOffsets",
    lambda n: [
        {
            "replica_id": -1,
            "isolation_level": 0,
            "timeout_ms": 1000,
            "topics": n.each(
                partitions=[{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]
            ),
        }
    ],
)


@asks("Metadata")
def _metadata(n: Names, version: int) -> list[dict[str, Any]]:
    def ask(*topics: dict[str, Any], **more: Any) -> dict[str, Any]:
        wanted = {
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        }
        return {"topics": list(topics), **wanted, **more}

    named = [{"name": name, "topic_id": bytes(16)} for name in n.topics]
    found = [
        ask(*named),
        {**ask(), "topics": None if version else []},
        ask(named[1]),
        ask(named[0], include_topic_authorized_operations=False, include_cluster_authorized_operations=False),
        ask({"name": "a/b", "topic_id": bytes(16)}),
    ]
    if version >= 12:
        found.append(ask(*({"name": None, "topic_id": n.ids[name]} for name in n.topics)))
    if version >= 4:
        made = {"name": f"{n.user}-made{n.round}", "topic_id": bytes(16)}
        found.append(ask(made, allow_auto_topic_creation=True))
    return found


def _offset_commit(n: Names) -> list[dict[str, Any]]:
    ids = tuple(n.ids[name] for name in n.topics)
    return [commit(n.group, *n.topics, ids=ids), commit(n.other_group, *n.topics, ids=ids)]


simply("OffsetCommit", _offset_commit)


@asks("OffsetFetch")
def _offset_fetch(n: Names, version: int) -> list[dict[str, Any]]:
    topics = n.each(partition_indexes=[0])
    if version >= 8:
        groups = [
            {"group_id": group, "topics": wanted, "member_epoch": -1}
            for group, wanted in (
                (n.group, topics),
                (n.other_group, topics),
                (n.missing, None),
                (f"{n.missing}2", topics[:1]),
            )
        ]
        every = {"group_id": n.group, "topics": None, "member_epoch": -1}
        return [{"groups": each, "require_stable": False} for each in (groups, [every])]
    found = [{"group_id": group, "topics": topics} for group in (n.group, n.other_group)]
    if version >= 2:
        found.append({"group_id": n.group, "topics": None})
    return found


@asks("FindCoordinator")
def _find_coordinator(n: Names, version: int) -> list[dict[str, Any]]:
    found = []
    for kind, keys in ((0, [n.group, n.other_group]), (1, [n.id, n.other_id]), (2, [f"{n.group}:x:0"])):
        if kind > (0 if version == 0 else 1 if version < 6 else 2):
            continue
        if version >= 4:
            found.append({"key_type": kind, "coordinator_keys": keys})
        else:
            found += [{"key_type": kind, "key": key} for key in keys]
    return found


simply(
    "JoinGroup",
    lambda n: [
        {
            "group_id": group,
            "session_timeout_ms": 6000,
            "rebalance_timeout_ms": 6000,
            "member_id": member,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        for group, member in ((n.group, "unknown"), (n.other_group, "unknown"), ("", ""))
    ],
)
simply(
    "Heartbeat",
    lambda n: [
        {"group_id": group, "generation_id": 1, "member_id": "m"} for group in (n.group, n.other_group)
    ],
)
simply(
    "LeaveGroup",
    lambda n: [
        {"group_id": group, "member_id": "m", "members": [{"member_id": "m"}]}
        for group in (n.group, n.other_group)
    ],
)
simply(
    "SyncGroup",
    lambda n: [
        {
            "group_id": group,
            "generation_id": 1,
            "member_id": "m",
            "protocol_type": kind,
            "protocol_name": kind,
            "assignments": [],
        }
        for group, kind in ((n.group, "range"), (n.other_group, "range"), (n.other_group, None))
    ],
)
simply(
    "DescribeGroups",
    lambda n: [
        {"groups": [n.group, n.other_group, n.missing], "include_authorized_operations": asked}
        for asked in (True, False)
    ],
)
simply("ListGroups", lambda n: [{"states_filter": [], "types_filter": []}])
simply("ApiVersions", lambda n: [{"client_software_name": "differ", "client_software_version": "1"}])
simply("SaslHandshake", lambda n: [{"mechanism": "PLAIN"}])
simply("SaslAuthenticate", lambda n: [{"auth_bytes": b"\0root\0no"}])


@asks("CreateTopics")
def _create_topics(n: Names, version: int) -> list[dict[str, Any]]:
    fresh = f"{n.user}-fresh{n.round}"
    topics = [
        {"name": name, "num_partitions": 1, "replication_factor": 1}
        for name in (fresh, n.topic, f"other-fresh{n.round}-{n.user}", "a/b")
    ]
    return [
        {"topics": topics[:1], "timeout_ms": 5000, "validate_only": False},
        {"topics": topics[1:], "timeout_ms": 5000, "validate_only": version > 0},
    ]


@asks("DeleteTopics")
def _delete_topics(n: Names, version: int) -> list[dict[str, Any]]:
    names = [f"{n.user}-doomed{n.round}", n.missing, f"other-fresh{n.round}-{n.user}"]
    if version < 6:
        return [{"topic_names": [name], "timeout_ms": 5000} for name in names]
    wanted = [{"name": name, "topic_id": bytes(16)} for name in names]
    by_id = [{"name": None, "topic_id": n.ids[name]} for name in (n.missing,)]
    return [{"topics": [each], "timeout_ms": 5000} for each in (*wanted, *by_id)]


simply(
    "DeleteRecords",
    lambda n: [{"topics": n.each(partitions=[{"partition_index": 0, "offset": 0}]), "timeout_ms": 5000}],
)


@asks("InitProducerId")
def _init_producer_id(n: Names, version: int) -> list[dict[str, Any]]:
    tree = {"transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1}
    return [{**tree, "transactional_id": each} for each in (n.id, n.other_id, None)]


simply(
    "OffsetForLeaderEpoch",
    lambda n: [
        {
            "replica_id": -1,
            "topics": n.each(
                "topic", partitions=[{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]
            ),
        }
    ],
)


@asks("AddPartitionsToTxn")
def _add_partitions(n: Names, version: int) -> list[dict[str, Any]]:
    topics = [{"name": name, "partitions": [0]} for name in (n.topic, n.other_topic, n.missing)]
    producer = {"producer_id": 9999, "producer_epoch": 0}
    if version >= 4:
        each = {"transactional_id": n.id, **producer, "verify_only": True, "topics": topics[:1]}
        return [{"transactions": [each]}]
    old = {"v3_and_below_producer_id": 9999, "v3_and_below_producer_epoch": 0}
    inside = [{"name": "__consumer_offsets", "partitions": [0]}]
    return [
        {**old, "v3_and_below_transactional_id": each, "v3_and_below_topics": wanted}
        for each, wanted in ((n.id, topics[:1]), (n.id, topics), (n.other_id, topics), (n.id, inside))
    ]


simply(
    "AddOffsetsToTxn",
    lambda n: [
        {"transactional_id": each, "producer_id": 9999, "producer_epoch": 0, "group_id": group}
        for each in (n.id, n.other_id)
        for group in (n.group, n.other_group)
    ],
)
simply(
    "EndTxn",
    lambda n: [
        {"transactional_id": each, "producer_id": 9999, "producer_epoch": 0, "committed": True}
        for each in (n.id, n.other_id)
    ],
)
simply(
    "TxnOffsetCommit",
    lambda n: [
        {
            **commit(group, *n.topics),
            "transactional_id": each,
            "producer_id": 9999,
            "producer_epoch": 0,
        }
        for each, group in ((n.id, n.group), (n.id, n.other_group), (n.other_id, n.group))
    ],
)
simply(
    "WriteTxnMarkers",
    lambda n: [
        {
            "markers": [
                {
                    "producer_id": 9999,
                    "producer_epoch": 0,
                    "transaction_result": False,
                    "coordinator_epoch": 0,
                    "topics": [{"name": n.missing, "partition_indexes": [0]}],
                }
            ]
        },
        {"markers": []},
    ],
)

EVERY_ENTRY = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def _acl(name: str, **more: Any) -> dict[str, Any]:
    entry = {
        "resource_type": 2,
        "resource_name": name,
        "resource_pattern_type": 3,
        "principal": "User:made",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return {**entry, **more}


simply("CreateAcls", lambda n: [{"creations": [_acl(f"{n.user}-acl"), _acl("")]}, {"creations": []}])
simply(
    "DescribeAcls",
    lambda n: [
        {**EVERY_ENTRY, "principal_filter": f"User:{n.user}"},
        {**EVERY_ENTRY, "resource_type_filter": 2, "resource_name_filter": f"{n.user}-acl"},
    ],
)
simply(
    "DeleteAcls",
    lambda n: [
        {
            "filters": [
                {**EVERY_ENTRY, "resource_type_filter": 2, "resource_name_filter": f"{n.user}-acl"},
                {**EVERY_ENTRY, "principal_filter": "User:none-such"},
            ]
        }
    ],
)


def _resources(n: Names, **more: Any) -> list[dict[str, Any]]:
    return [
        {"resource_type": kind, "resource_name": name, **more}
        for kind, name in (
            (2, n.topic),
            (2, n.other_topic),
            (2, n.missing),
            (BROKER, "1"),
            (METRICS, f"{n.user}-metrics"),
            (GROUP_CONFIGS, n.group),
            (GROUP_CONFIGS, n.other_group),
        )
    ]


simply(
    "DescribeConfigs",
    lambda n: [{"resources": _resources(n, configuration_keys=["retention.ms", "log.retention.ms"])}],
)
SET = {"name": "retention.ms", "value": "1000000", "config_operation": 0}
simply(
    "AlterConfigs",
    lambda n: (
        [{"resources": [each], "validate_only": True} for each in _resources(n, configs=[SET])[:3]]
        + [
            {
                "resources": [{"resource_type": BROKER, "resource_name": "1", "configs": []}],
                "validate_only": True,
            }
        ]
    ),
)
simply(
    "IncrementalAlterConfigs",
    lambda n: [
        {
            "resources": [
                *_resources(n, configs=[SET])[:3],
                *_resources(n, configs=[{**SET, "name": "log.retention.ms"}])[3:4],
                *_resources(n, configs=[{**SET, "name": "consumer.session.timeout.ms", "value": "50000"}])[
                    5:
                ],
            ],
            "validate_only": True,
        }
    ],
)
simply(
    "AlterReplicaLogDirs",
    lambda n: [{"dirs": [{"path": "/none", "topics": [{"name": n.topic, "partitions": [0]}]}]}],
)
simply("DescribeLogDirs", lambda n: [{"topics": [{"topic": n.topic, "partitions": [0]}]}])
simply(
    "CreatePartitions",
    lambda n: [
        {
            "topics": [{"name": name, "count": 2, "assignments": None} for name in n.topics],
            "timeout_ms": 5000,
            "validate_only": True,
        }
    ],
)


@asks("CreateDelegationToken")
def _create_token(n: Names, version: int) -> list[dict[str, Any]]:
    tree = {
        "owner_principal_type": None,
        "owner_principal_name": None,
        "renewers": [],
        "max_lifetime_ms": 1000_000,
    }
    found = [tree, {**tree, "renewers": [{"principal_type": "Group", "principal_name": "x"}]}]
    if version >= 3:
        found += [
            {**tree, "owner_principal_type": "User", "owner_principal_name": owner}
            for owner in ("other", "other2")
        ]
    return found


simply("RenewDelegationToken", lambda n: [{"hmac": b"none", "renew_period_ms": 1000}])
simply("ExpireDelegationToken", lambda n: [{"hmac": b"none", "expiry_time_period_ms": 1000}])
simply(
    "DescribeDelegationToken",
    lambda n: [
        {"owners": owners and [{"principal_type": "User", "principal_name": each} for each in owners]}
        for owners in ([n.user], ["other", "other2"], [])
    ],
)
simply("DeleteGroups", lambda n: [{"groups_names": [n.missing, n.other_group + "0"]}])
simply(
    "ElectLeaders",
    lambda n: [
        {"election_type": 0, "topic_partitions": [{"topic": n.topic, "partitions": [0]}], "timeout_ms": 5000}
    ],
)
simply(
    "AlterPartitionReassignments",
    lambda n: [
        {
            "timeout_ms": 5000,
            "topics": [{"name": n.topic, "partitions": [{"partition_index": 0, "replicas": None}]}],
        }
    ],
)
simply(
    "ListPartitionReassignments",
    lambda n: [
        {"timeout_ms": 5000, "topics": [{"name": n.topic, "partition_indexes": [0]}]},
        {"timeout_ms": 5000, "topics": None},
    ],
)
simply(
    "OffsetDelete",
    lambda n: [
        {
            "group_id": group,
            "topics": [{"name": name, "partitions": [{"partition_index": 9}]} for name in n.topics],
        }
        for group in (n.group, n.other_group)
    ],
)
simply(
    "DescribeClientQuotas",
    lambda n: [{"components": [{"entity_type": "user", "match_type": 0, "match": n.user}], "strict": False}],
)
simply(
    "AlterClientQuotas",
    lambda n: [
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": n.user}],
                    "ops": [{"key": "producer_byte_rate", "value": 1e9, "remove": False}],
                }
            ],
            "validate_only": False,
        }
    ],
)
simply(
    "DescribeUserScramCredentials",
    lambda n: [{"users": [{"name": f"s-{n.user}"}, {"name": "none"}]}],
)
simply(
    "AlterUserScramCredentials",
    lambda n: [
        {
            "deletions": [{"name": "none", "mechanism": 1}],
            "upsertions": [
                {
                    "name": f"s-{n.user}",
                    "mechanism": 1,
                    "iterations": 4096,
                    "salt": b"s",
                    "salted_password": b"p",
                }
            ],
        }
    ],
)
simply(
    "DescribeQuorum",
    lambda n: [{"topics": [{"topic_name": n.topic, "partitions": [{"partition_index": 0}]}]}],
)
simply("UpdateFeatures", lambda n: [{"timeout_ms": 5000, "feature_updates": [], "validate_only": True}])
simply(
    "DescribeCluster",
    lambda n: [
        {"include_cluster_authorized_operations": asked, "endpoint_type": 1} for asked in (True, False)
    ],
)
simply("DescribeProducers", lambda n: [{"topics": n.each(partition_indexes=[0])}])
simply("DescribeTransactions", lambda n: [{"transactional_ids": [n.id, n.other_id, n.missing]}])
simply(
    "ListTransactions",
    lambda n: [{"state_filters": [], "producer_id_filters": [], "duration_filter": -1}],
)
simply("ListConfigResources", lambda n: [{"resource_types": [BROKER]}])
simply(
    "DescribeTopicPartitions",
    lambda n: [
        {"topics": wanted, "response_partition_limit": 2000, "cursor": None}
        for wanted in ([{"name": name} for name in n.topics], [], [{"name": n.other_topic}])
    ],
)


def table(t: SecuredTalk, user: str, *, is_short: bool = False) -> None:
    """Send every API's requests as this user, in the oldest, a middle and the newest version.

    If `is_short` is true, the middle version is left out.
    """
    names = Names(t, user)
    on = t.user(user)
    for api, trees in ASKED.items():
        versions = t.some_versions(api)
        for names.round, version in enumerate(versions, 1):
            if is_short and version not in (versions[0], versions[-1]):
                continue
            for tree in trees(names, version):
                answer = t.ask(api, version, tree, on=on)
                if (
                    has_changed(answer)
                    if api in SETTLING
                    else api == "Metadata" and "'error_code': 3," in str(answer)
                ):
                    t.settle()


def has_changed(answer: Any) -> bool:
    """Return True if any part of an answer has the error code 0."""
    if isinstance(answer, dict):
        return answer.get("error_code") == 0 or any(map(has_changed, answer.values()))
    return isinstance(answer, list) and any(map(has_changed, answer))
