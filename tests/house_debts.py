"""What still breaks a law of ``test_house.py``. These lists only shrink: what is mended has to leave them."""

from __future__ import annotations

IN_IMPORT_CIRCLES: frozenset[str] = frozenset(
    {
        "penstock.client.cluster.client",
        "penstock.client.cluster.connection",
        "penstock.client.cluster.obstacles",
        "penstock.client.cluster.other_protocols",
    }
)
ROOMS_IN_CIRCLES: frozenset[str] = frozenset(
    {
        "penstock.protocol.codec",
        "penstock.protocol.compiler",
        "penstock.protocol.message",
        "penstock.protocol.schema",
    }
)
LONGER_THAN_500_LINES: frozenset[str] = frozenset(
    {
        "broker/partitions/partition.py",
        "client/cluster/client.py",
        "client/fetch/consumer.py",
        "client/group/membership.py",
    }
)
TELLS_OF_PEOPLE: frozenset[str] = frozenset(
    {
        "broker/config/broker_keys.py",
        "broker/config/inert_keys.py",
        "broker/config/server_properties.py",
        "broker/config/values.py",
        "broker/handlers/describe_transactions.py",
        "broker/handlers/elect_leaders.py",
        "broker/handlers/group_admin.py",
        "broker/handlers/group_membership.py",
        "broker/handlers/group_offsets.py",
        "broker/handlers/list_transactions.py",
        "broker/handlers/without_security.py",
        "broker/network/frame_buffers.py",
        "broker/network/kafka07.py",
        "broker/network/metrics.py",
        "broker/network/metrics_server.py",
        "broker/node.py",
        "broker/requests/purgatory.py",
        "broker/requests/quotas.py",
        "broker/requests/routes.py",
        "broker/transactions/transaction.py",
        "client/admin/admin.py",
        "client/assignors/balancing.py",
        "client/assignors/sticky.py",
        "client/background_loop.py",
        "client/blocking/producer.py",
        "client/cluster/client.py",
        "client/fetch/consumer.py",
        "client/fetch/cursors.py",
        "client/fetch/ranges.py",
        "client/group/errors.py",
        "client/group/membership.py",
        "client/group/offsets.py",
        "client/group/requests.py",
        "client/group/session.py",
        "client/produce/accumulator.py",
        "client/produce/batches.py",
        "client/produce/delivery.py",
        "client/produce/producer.py",
        "client/produce/sender.py",
        "common/reused_buffers.py",
        "explorer/conversation.py",
        "explorer/sources.py",
        "explorer/tcp.py",
        "protocol/api.py",
        "protocol/codec.py",
        "protocol/compiler/compile.py",
        "protocol/compiler/struct_types.py",
        "protocol/connection/__init__.py",
        "protocol/error_codes.py",
        "protocol/inspect/evolution.py",
        "protocol/inspect/json_form.py",
        "protocol/message.py",
        "protocol/schema/class_writer.py",
        "protocol/schema/definition.py",
        "security/secrets.py",
        "testing/answers.py",
        "testing/requests.py",
    }
)
NAMED_BUT_MISSING: frozenset[str] = frozenset()
