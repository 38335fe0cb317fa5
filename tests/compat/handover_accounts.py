"""All state that a broker stores, written and read through clients, so that two brokers can be compared."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from compat.handover import again
from penstock import Admin, read_topic
from penstock.security.acls import Acl, Operation, Permission, ResourceType

LONG_MS = 900_000
"""The transaction timeout in ms: longer than any test takes."""

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Broker settings that enforce ACLs and make the clients of this module super users."""

LOOKED_AT = ("cleanup.policy", "retention.ms", "segment.bytes", "compression.type")


def fill(servers: str, tag: str, *, deletes_records: bool = True) -> None:
    """Make topics, records, groups, transactions, users, ACLs and quotas whose names end in `tag`.

    If `deletes_records` is false, all logs begin at offset 0, since Apache Kafka checkpoints log start
    offsets only once a minute.
    """
    plain, compacted, gone, ended, still = (
        f"{name}-{tag}" for name in ("plain", "compacted", "gone", "transactions", "open")
    )
    with Admin(servers) as admin:
        admin.create_topic(plain, 2, config={"retention.ms": "86400000", "segment.bytes": "1048576"})
        admin.create_topic(compacted, 1, config={"cleanup.policy": "compact"})
        for name in (gone, ended, still):
            admin.create_topic(name, 1)
        admin.create_partitions(plain, 3)
        idempotent = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
        for number in range(60):
            key = b"%d" % (number % 7)
            idempotent.produce(plain, b"%d" % number, key=key, partition=number % 3, headers=[("h", key)])
            idempotent.produce(compacted, b"%d" % number, key=key)
            idempotent.produce(gone, b"%d" % number)
        assert idempotent.flush(60) == 0
        admin.delete_topics([gone])
        if deletes_records:
            admin.delete_records({(plain, 1): 5})
        admin.alter_config(all_brokers=True, set={"log.retention.ms": "172800000"})
        admin.set_password(f"user-{tag}", "secret")
        admin.set_user_quotas(f"user-{tag}", {"producer_byte_rate": 1e9})
        admin.create_acls(
            [Acl(ResourceType.TOPIC, plain, 3, f"User:user-{tag}", "*", Operation.READ, Permission.ALLOW)]
        )
    consumer = Consumer({"bootstrap.servers": servers, "group.id": f"group-{tag}", "log_level": 0})
    places = [Place(plain, 0, 7, "note"), Place(plain, 1, 6)]
    again(lambda: consumer.commit(offsets=places, asynchronous=False))
    consumer.close()
    for number, ending in enumerate(("commit", "abort", "commit", "abort", "none")):
        settings = {"transactional.id": f"id-{number % 3}-{tag}", "transaction.timeout.ms": LONG_MS}
        producer = Producer({"bootstrap.servers": servers, "log_level": 0, **settings})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce(still if ending == "none" else ended, b"%d" % number)
        assert producer.flush(60) == 0
        if ending == "commit":
            producer.commit_transaction(60)
        elif ending == "abort":
            producer.abort_transaction(60)


def picture(servers: str) -> dict[str, Any]:
    """Return all broker state that clients can see, in a form that can be compared."""
    seen: dict[str, Any] = {}
    with Admin(servers) as admin:
        names = sorted(admin.list_topics())
        for topic in admin.describe_topics(names):
            indexes = range(len(topic.partitions))
            seen[f"topic {topic.name}"] = topic.topic_id, len(indexes)
            config = admin.describe_config(topic.name)
            seen[f"settings of {topic.name}"] = {name: config[name].value for name in LOOKED_AT}
            for isolation in ("read_committed", "read_uncommitted"):
                table = read_topic(topic.name, servers, isolation=isolation)
                rows = table.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()
                seen[f"{isolation} {topic.name}"] = rows
            producers = admin.describe_producers([(topic.name, index) for index in indexes])
            seen[f"producers of {topic.name}"] = {
                place: sorted(
                    (each.producer_id, each.producer_epoch, each.last_sequence, each.transaction_start_offset)
                    for each in found
                )
                for place, found in producers.items()
            }
        for group in sorted(each.group_id for each in admin.list_groups()):
            seen[f"group {group}"] = {
                place: (each.offset, each.metadata) for place, each in admin.list_group_offsets(group).items()
            }
        seen["users"] = admin.list_users()
        seen["rules"] = sorted(map(tuple, admin.list_acls()))
        seen["quotas"] = admin.list_quotas()
        seen["transactions"] = sorted(
            (each.transactional_id, each.producer_id, each.state) for each in admin.list_transactions()
        )
        seen["defaults"] = admin.describe_config(broker=1)["log.retention.ms"].value
    return seen
