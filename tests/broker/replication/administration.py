"""A simulated cluster whose clients create, grow and delete topics and change settings, at every node.

This module adds administrators to the cluster of `simulation`. Requests go to any running node, wait there
while it is paused, and are handled by the product's handlers. One invariant is checked: **the answers are
those of a single list of changes, each decided against the outcome of all before it**. `Model` is the outcome
of that list, in a few lines without images and epochs; the controller and every up-to-date node must have the
same state. `python tests/broker/replication/administration.py SEED` replays a run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple
from unittest import mock

from broker.replication.coordination import CoordinatedNode, CoordinatedWorld, _quiet
from broker.replication.simulation import NODES, TOPIC, SimNode, World, main
from penstock.broker.interceptors import Stage
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.broker.replication.gate import ReplicationGate
from penstock.broker.replication.member import ClusterMember
from penstock.broker.replication.member_view import MemberView
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.message import Message
from penstock.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from penstock.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic

NAMES = ("a", "b", "c")
"""The topics that administrators create and delete.

The topic of the plain simulation is never deleted; requests only try to create it again.
"""

USERS = ("ann", "bob")
SCRAM_SHA_256 = 1
SET, DELETE, APPEND, SUBTRACT = range(4)
POLICY, RETENTION = "cleanup.policy", "retention.ms"
BLOCK = 3
"""The number of producer ids that a node reserves at a time: small, so that it reserves often."""

RECOVERY_MS = 60_000
"""The time in ms in which the cluster must recover after the faults.

A leader may wait 30 s, `controller.socket.timeout.ms`, for an answer that was lost.
"""

E = ErrorCode


class Made(NamedTuple):
    """A topic in the model: id, number of partitions and settings."""

    id: bytes
    partitions: int
    settings: dict[str, str]


class Model:
    """The expected metadata after all answers so far, which the cluster's metadata is compared with."""

    def __init__(self) -> None:
        self.topics: dict[str, Made] = {}
        self.ids: dict[bytes, str] = {}
        """A dict from every topic id that was ever in use to the topic's name."""
        self.quotas: dict[str, float] = {}
        self.users: set[str] = set()
        self.producer_ids: set[int] = set()


class Administrators:
    """The administrating clients of a simulated cluster, and the checks of their answers."""

    def __init__(self, world: AdministeredWorld) -> None:
        self.world = world
        self.model = Model()
        self.random = Random(f"administration {world.seed}")
        self.counts: dict[str, int] = {}
        """A dict from the kind of change to the number of answers without an error."""
        self.is_over = False
        self._kinds: list[Callable[[], None]] = [
            self._create,
            self._create,
            self._create,
            self._metadata,
            self._metadata,
            self._grow,
            self._grow,
            self._delete,
            self._delete,
            self._delete_by_id,
            self._configure,
            self._configure,
            self._quota,
            self._user,
            self._producer_id,
            self._producer_id,
            self._coordinator,
            self._reassign,
            self._elect,
        ]

    def begin(self) -> None:
        """Fill the model from the existing topics, and schedule the first request."""
        for name, topic in self.world.quorum.image.topics.items():
            self.model.topics[name] = Made(topic.id, len(topic.partitions), dict(topic.overrides))
            self.model.ids[topic.id] = name
        self.world.after(20, None, self._go_on)

    def _go_on(self) -> None:
        if not self.is_over:
            # Several at once, so that nodes get the same in a moment.
            kind = self.random.choice(self._kinds)
            for _ in range(self.random.choice((1, 1, 3))):
                kind()
            self.world.after(self.random.randint(1, 120), None, self._go_on)

    # --- one request -------------------------------------------------------------------------------------

    def _ask(
        self, kind: str, request: Any, version: int, judge: Callable[[Any, CoordinatedNode, bool], None]
    ) -> None:
        """Send a request to a random node.

        `judge` is called with the response, the node, and True if the node could reach the controller.
        """
        node = self.random.choice(NODES)
        delay = self.random.randint(0, min(self.world.delay_ms, 60))
        self.world.after(delay, node, lambda: self._carry_out(kind, node, request, version, judge))

    def _carry_out(
        self,
        kind: str,
        node: int,
        request: Any,
        version: int,
        judge: Callable[[Any, CoordinatedNode, bool], None],
    ) -> None:
        there = self.world.nodes[node]
        if there.member is None:
            return
        assert isinstance(there, CoordinatedNode)
        answers: list[Any] = []
        there.handle(request, version, 1, answers.append)
        if not answers:
            self.fail(f"{kind} at {node} has no answer")
        judge(answers[0], there, there.authority.is_reachable)
        self.check()

    def _expect(self, kind: str, node: CoordinatedNode, code: int, reachable: bool, expected: int) -> bool:
        """Check that an error code is the one of the model; return True if it is 0.

        A node that cannot reach the controller must answer REQUEST_TIMED_OUT.
        """
        if not reachable:
            expected = E.REQUEST_TIMED_OUT
        self.counts[kind] = self.counts.get(kind, 0) + (not code)
        self.world.tell(f"{node.id} answers {kind}: {code}")
        if code != expected:
            self.fail(f"{kind} at {node.id} is answered {code}, where {expected} is right")
        return not code

    def fail(self, law: str) -> None:
        """Raise a Violation with this message, which ends the run."""
        self.world._checker.fail(f"{law}\nby all answers: {self.model.topics}")

    def _has_room(self) -> bool:
        """Return True if three replicas can be placed on the registered brokers now."""
        brokers = self.world.quorum.brokers.by_id.values()
        usable = [each for each in brokers if each.fenced or not each.shutting_down]
        return len(usable) >= len(NODES) and any(not each.fenced for each in usable)

    # --- topics ------------------------------------------------------------------------------------------

    def _create(self) -> None:
        name, count = self.random.choice((*NAMES, TOPIC)), self.random.randint(1, 3)
        texts = {RETENTION: str(self.random.randint(10**7, 10**8))} if self.random.random() < 0.5 else {}
        configs = [CreatableTopicConfig(name=key, value=text) for key, text in texts.items()]
        wanted = CreatableTopic(name=name, num_partitions=count, replication_factor=3, configs=configs)

        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            result = answer.topics[0]
            expected = E.INVALID_REPLICATION_FACTOR if not self._has_room() else E.NONE
            if name in self.model.topics:
                expected = E.TOPIC_ALREADY_EXISTS
            if self._expect(f"CreateTopics {name}", node, result.error_code, reachable, expected):
                self._made(name, result.topic_id, count, texts)

        self._ask("CreateTopics", CreateTopicsRequest(topics=[wanted]), 7, judge)

    def _made(self, name: str, topic_id: bytes, partitions: int, settings: dict[str, str]) -> None:
        if topic_id in self.model.ids:
            self.fail(f"the id of {name} is not a new one")
        self.model.topics[name] = Made(topic_id, partitions, settings)
        self.model.ids[topic_id] = name

    def _metadata(self) -> None:
        name = self.random.choice(NAMES)
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        codes: list[int] = []

        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            result = answer.topics[0]
            known = self.model.topics.get(name)
            self.world.tell(f"{node.id} answers Metadata {name}: {result.error_code}")
            codes.append(result.error_code)
            if codes == [E.UNKNOWN_TOPIC_OR_PARTITION] and known is None:
                # A topic that the request creates is there the next time.
                self._carry_out("Metadata", node.id, request, 12, judge)
            elif result.error_code:
                if reachable and (known is not None or self._has_room()):
                    self.fail(f"Metadata {name} at {node.id} is answered {result.error_code}")
            elif known is None and result.topic_id not in self.model.ids:
                self._made(name, result.topic_id, len(result.partitions), {})
            elif self.model.ids.get(result.topic_id) != name:
                self.fail(f"Metadata at {node.id} has another topic {name} than there ever was")

        self._ask("Metadata", request, 12, judge)

    def _grow(self) -> None:
        name, count = self.random.choice(NAMES), self.random.randint(1, 6)
        wanted = CreatePartitionsTopic(name=name, count=count, assignments=None)

        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            known = self.model.topics.get(name)
            expected = E.NONE if self._has_room() else E.INVALID_REPLICATION_FACTOR
            if known is None:
                expected = E.UNKNOWN_TOPIC_OR_PARTITION
            elif count <= known.partitions:
                expected = E.INVALID_PARTITIONS
            code = answer.results[0].error_code
            if self._expect(f"CreatePartitions {name} {count}", node, code, reachable, expected):
                assert known is not None
                self.model.topics[name] = known._replace(partitions=count)

        self._ask("CreatePartitions", CreatePartitionsRequest(topics=[wanted]), 3, judge)

    def _delete(self) -> None:
        name = self.random.choice(NAMES)

        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            expected = E.NONE if name in self.model.topics else E.UNKNOWN_TOPIC_OR_PARTITION
            code = answer.responses[0].error_code
            if self._expect(f"DeleteTopics {name}", node, code, reachable, expected):
                del self.model.topics[name]

        self._ask("DeleteTopics", DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]), 6, judge)

    def _delete_by_id(self) -> None:
        ids = [each for each, name in self.model.ids.items() if name in NAMES]
        if not ids:
            return
        topic_id = self.random.choice(ids)
        name = self.model.ids[topic_id]

        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            known = self.model.topics.get(name)
            is_there = known is not None and known.id == topic_id
            expected = E.NONE if is_there else E.UNKNOWN_TOPIC_ID
            code = answer.responses[0].error_code
            if self._expect(f"DeleteTopics {topic_id.hex()}", node, code, reachable, expected):
                del self.model.topics[name]

        state = DeleteTopicState(name=None, topic_id=topic_id)
        self._ask("DeleteTopics", DeleteTopicsRequest(topics=[state]), 6, judge)

    def _partition(self, index: int, name: str) -> bool:
        known = self.model.topics.get(name)
        return known is not None and index < known.partitions

    def _reassign(self) -> None:
        """Reassign a partition to its replicas in another order, which changes the preferred leader."""
        name, index = self.random.choice(NAMES), self.random.randint(0, 3)
        replicas = self.random.sample(NODES, len(NODES))
        partition = ReassignablePartition(partition_index=index, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=name, partitions=[partition])]
        )

        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            is_there = self._partition(index, name)
            expected = E.NONE if is_there else E.UNKNOWN_TOPIC_OR_PARTITION
            if is_there and not self._has_room():
                return  # brokers that are not registered yet cannot be named
            code = answer.responses[0].partitions[0].error_code
            if self._expect(f"AlterPartitionReassignments {name}-{index}", node, code, reachable, expected):
                image = self.world.quorum.image.topics[name].partitions[index]
                if image.replicas.assigned != tuple(replicas):
                    self.fail(f"the replicas of {name}-{index} are {image.replicas}, not {replicas}")

        self._ask("AlterPartitionReassignments", request, 0, judge)

    def _elect(self) -> None:
        name, index = self.random.choice(NAMES), self.random.randint(0, 3)
        request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=name, partitions=[index])])

        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            code = answer.replica_election_results[0].partition_result[0].error_code
            expected: int = E.UNKNOWN_TOPIC_OR_PARTITION
            if self._partition(index, name):
                expected = code if code in (E.ELECTION_NOT_NEEDED, E.PREFERRED_LEADER_NOT_AVAILABLE) else 0
            if self._expect(f"ElectLeaders {name}-{index}", node, code, reachable, expected):
                image = self.world.quorum.image.topics[name].partitions[index]
                if image.leader != image.replicas.assigned[0]:
                    self.fail(f"{image.leader} leads {name}-{index} of {image.replicas}")

        self._ask("ElectLeaders", request, 2, judge)

    # --- settings, quotas, users -------------------------------------------------------------------------

    def _configure(self) -> None:
        """Set a number, or append to or subtract from a list.

        Two requests at the same time must both take effect.
        """
        name, operation = self.random.choice(NAMES), self.random.choice((SET, APPEND, SUBTRACT, DELETE))
        key = RETENTION if operation == SET else POLICY
        value = str(self.random.randint(10**7, 10**8)) if operation == SET else "compact"
        change = AlterableConfig(
            name=key, config_operation=operation, value=None if operation == DELETE else value
        )
        resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=[change])

        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            known = self.model.topics.get(name)
            expected = E.UNKNOWN_TOPIC_OR_PARTITION if known is None else E.NONE
            code = answer.responses[0].error_code
            if self._expect(f"IncrementalAlterConfigs {name}", node, code, reachable, expected):
                assert known is not None
                settings = dict(known.settings)
                if operation == SET:
                    settings[key] = value
                elif operation == DELETE:
                    settings.pop(key, None)
                else:
                    items = settings.get(key, "delete").split(",")
                    items = [each for each in items if each and each != value]
                    settings[key] = ",".join([*items, value] if operation == APPEND else items)
                self.model.topics[name] = known._replace(settings=settings)

        self._ask("IncrementalAlterConfigs", IncrementalAlterConfigsRequest(resources=[resource]), 1, judge)

    def _quota(self) -> None:
        user, rate = self.random.choice(USERS), float(self.random.randint(1, 1000))
        remove = self.random.random() < 0.3
        entry = EntryData(
            entity=[EntityData(entity_type="user", entity_name=user)],
            ops=[OpData(key="producer_byte_rate", value=rate, remove=remove)],
        )

        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            code = answer.entries[0].error_code
            if self._expect(f"AlterClientQuotas {user}", node, code, reachable, E.NONE):
                self.model.quotas.pop(user, None)
                if not remove:
                    self.model.quotas[user] = rate

        self._ask("AlterClientQuotas", AlterClientQuotasRequest(entries=[entry]), 1, judge)

    def _user(self) -> None:
        """Add or remove a SCRAM user; removing a missing user must be an error."""
        user = self.random.choice(USERS)
        request = AlterUserScramCredentialsRequest()
        removes = self.random.random() < 0.5
        if removes:
            request.deletions = [ScramCredentialDeletion(name=user, mechanism=SCRAM_SHA_256)]
        else:
            request.upsertions = [
                ScramCredentialUpsertion(
                    name=user,
                    mechanism=SCRAM_SHA_256,
                    iterations=4096,
                    salt=b"salt" * 4,
                    salted_password=b"p" * 32,
                )
            ]

        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            is_missing = removes and user not in self.model.users
            expected = E.RESOURCE_NOT_FOUND if is_missing else E.NONE
            code = answer.results[0].error_code
            if self._expect(f"AlterUserScramCredentials {user}", node, code, reachable, expected):
                (self.model.users.discard if removes else self.model.users.add)(user)

        self._ask("AlterUserScramCredentials", request, 0, judge)

    # --- producer ids, and topics of the broker ----------------------------------------------------------

    def _producer_id(self) -> None:
        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            if answer.error_code:
                if reachable:
                    self.fail(f"InitProducerId at {node.id} is answered {answer.error_code}")
            elif answer.producer_id in self.model.producer_ids:
                self.fail(f"{node.id} gives the producer id {answer.producer_id} a second time")
            self.model.producer_ids.add(answer.producer_id)
            self.world.tell(f"{node.id} gives producer id {answer.producer_id}")

        self._ask("InitProducerId", InitProducerIdRequest(transactional_id=None), 4, judge)

    def _coordinator(self) -> None:
        kind = self.random.choice((0, 1))
        name = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)[kind]
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["one"])

        def judge(answer: Any, node: CoordinatedNode, reachable: bool) -> None:
            made = self.world.quorum.image.topics.get(name)
            self.world.tell(f"{node.id} answers FindCoordinator {kind}")
            if name not in self.model.topics and made is not None:
                self._made(name, made.id, len(made.partitions), dict(made.overrides))

        self._ask("FindCoordinator", request, 4, judge)

    # --- the law -----------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that the controller, and every node with all its metadata, agree with the model."""
        quorum, model = self.world.quorum, self.model
        image = quorum.image
        has = {
            name: Made(topic.id, len(topic.partitions), dict(topic.overrides))
            for name, topic in image.topics.items()
        }
        if has != model.topics:
            self.fail(f"the controller has {has}")
        quotas = {
            dict(entity)["user"]: values["producer_byte_rate"] for entity, values in image.quotas.items()
        }
        if quotas != model.quotas:
            self.fail(f"the controller has the quotas {quotas}, where {model.quotas} are right")
        users = {name for name, _ in image.security.credentials}
        if users != model.users:
            self.fail(f"the controller has the users {users}, where {model.users} are right")
        for node in self.world.nodes.values():
            if node.member is None or node.member.next_batch != quorum._next_batch:
                continue
            topics = {
                name: Made(topic.id, len(topic.partitions), dict(topic.config.overrides))
                for name, topic in node.member.cluster.topics.items()
            }
            if topics != model.topics:
                self.fail(f"{node.id} has {topics}")


class AdministeredNode(CoordinatedNode):
    """A simulated node that also answers requests about the whole cluster."""

    def _begin(self, member: ClusterMember) -> None:
        super()._begin(member)
        random = Random(f"answers {self.world.seed} {self.id} {self.life}")
        self.node.view = MemberView(member.brokers, self.world.quorum, self.authority.commit, random)
        gate = ReplicationGate(member, selects_by_rack=False)
        self.node.interceptors.set(Stage.REPLICATION, gate.intercept)


class AdministeredWorld(CoordinatedWorld):
    """A simulated cluster with administrators.

    The coordinators' internal topics are created when a client first asks for a coordinator.
    """

    pace_ms = 200
    tearing = 0.0

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.administrators = Administrators(self)

    def _make_node(self, node_id: int) -> SimNode:
        return AdministeredNode(self, node_id)

    def _settings(self) -> dict[str, str]:
        return {**super()._settings(), "default.replication.factor": str(len(NODES))}

    def _topics(self) -> list[Message]:
        return World._topics(self)

    def begin(self) -> None:
        super().begin()
        self.administrators.begin()


def run(seed: int, *, troubles: int = 12, trouble_every_ms: int = 700) -> AdministeredWorld:
    """Run a simulated cluster with faults, then without, until it has recovered.

    Raises:
        Violation: an invariant was broken, or the cluster has not recovered.
    """
    world = AdministeredWorld(seed)
    with mock.patch("penstock.broker.metadata.cluster.PRODUCER_ID_BLOCK", BLOCK), _quiet():
        world.begin()
        world.run(world.random.randint(50, 600))
        for _ in range(troubles):
            world.trouble()
            world.run(world.uptime_ms + world.random.randint(1, trouble_every_ms))
        world.heal()
        world.run(world.uptime_ms + 2_000)
        world.administrators.is_over = True
        deadline = world.uptime_ms + RECOVERY_MS
        before = len(world.acked)
        while world.out_of_sync or len(world.acked) <= before:
            if world.uptime_ms > deadline:
                world._checker.fail(f"not recovered: {world.out_of_sync} are not in sync")
            world.run(world.uptime_ms + 200)
        world.administrators.check()
    return world


if __name__ == "__main__":
    from broker.replication import administration  # not this copy of it: classes are compared

    sys.exit(main(administration.run))
