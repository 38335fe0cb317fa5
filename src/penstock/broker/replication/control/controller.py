"""The controller of a cluster: it manages brokers, leaders and replicas, and returns metadata records.

The module does no I/O and reads no clock: the caller passes times in seconds of a monotonic clock, writes the
returned records, and applies them before its next call. The rules are those of Apache Kafka's controller
(KIP-455, KIP-460, KIP-497, KIP-841, KIP-966).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.broker.replication.control.elections import NO_LEADER, ElectionKind, elect
from penstock.broker.replication.control.eligibility import Eligibility
from penstock.broker.replication.control.placement import Candidate, Shuffling, place
from penstock.broker.replication.control.reassignments import MovedReplicas, begin, cancel, complete
from penstock.broker.replication.transport.messages import ProposalAnswer
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from penstock.protocol.messages.unregister_broker_record import UnregisterBrokerRecord

if TYPE_CHECKING:
    from penstock.broker.metadata.image import ClusterImage, PartitionImage
    from penstock.broker.replication.transport.messages import (
        IsrChange,
        NodeHeartbeat,
        NodeRegistration,
        Proposal,
    )
    from penstock.protocol.message import Message

UNCLEAN = "unclean.leader.election.enable"

SAME_LEADER = -2


class Controller:
    """The controller of a cluster: computes the metadata records for registrations, elections and the like.

    `image` is the cluster's state after all records that were written so far.
    """

    def __init__(
        self,
        image: ClusterImage,
        session_s: float,
        random: Shuffling,
        unclean_default: Callable[[], bool] = lambda: False,
        minimum_default: Callable[[], int] = lambda: 1,
    ) -> None:
        """Create a controller that fences brokers after `session_s` seconds without a heartbeat.

        `unclean_default` and `minimum_default` return the values of `unclean.leader.election.enable` and
        `min.insync.replicas` with which brokers were started.
        """
        self._image = image
        self._brokers = image.brokers
        self.session_s = session_s
        self._random = random
        self._unclean_default = unclean_default
        self.eligibility = Eligibility(image, minimum_default)
        """Determines which replicas may lead without being in sync (KIP-966)."""
        self._heard: dict[int, float] = {}
        """A dict from each broker that is not fenced to the time of its last heartbeat, in seconds."""
        self._incarnations: dict[int, int] = {}
        self._proposals: dict[int, tuple[int, int]] = {}
        """A dict from node to (broker epoch, number) of its last ISR proposal. Older and repeated
        proposals are rejected.
        """

    # --- brokers -----------------------------------------------------------------------------------------

    def register(self, registration: NodeRegistration, broker_epoch: int) -> list[list[Message]]:
        """Return the records that end a node's old registration, and those of its new one, as two lists.

        The new registration is fenced. The result is empty if the message is a repetition.
        """
        node = registration.node
        known = self._brokers.by_id.get(node)
        if known is not None and self._incarnations.get(node) == registration.incarnation:
            return []
        self._incarnations[node] = registration.incarnation
        self._heard.pop(node, None)
        endpoints = [
            BrokerEndpoint(name=name, host=host, port=port)
            for name, (host, port) in registration.endpoints.items()
        ]
        record = RegisterBrokerRecord(
            broker_id=node,
            broker_epoch=broker_epoch,
            rack=registration.rack,
            end_points=endpoints,
            fenced=True,
        )
        return [self._leave(node, was_clean=registration.was_clean), [record]]

    def heartbeat(self, beat: NodeHeartbeat, now_s: float) -> tuple[bool, list[Message]]:
        """Process a heartbeat; return True if the broker is known, and the records to write.

        A broker is known if it is registered with the heartbeat's broker epoch.
        """
        broker = self._brokers.by_id.get(beat.node)
        if broker is None or broker.epoch != beat.broker_epoch:
            return False, []
        self._heard[beat.node] = now_s
        if beat.wants_stop:
            return True, [] if broker.shutting_down else self._shut_down(beat.node)
        if not broker.fenced:
            return True, []
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=-1, in_controlled_shutdown=-1
        )
        return True, [change, *self._elect_leaderless(beat.node)]

    def heard(self, node: int, now_s: float) -> None:
        """Extend the session of a live broker as if it had sent a heartbeat now."""
        if node in self._heard:
            self._heard[node] = now_s

    def excuse(self, seconds: float, now_s: float) -> None:
        """Extend the sessions of all brokers by `seconds`, at most to one session timeout from `now_s`."""
        for node, heard in self._heard.items():
            self._heard[node] = max(heard, min(heard + seconds, now_s))

    def leads_anything(self, node: int) -> bool:
        """Return True if a broker leads a partition."""
        return any(each.leader == node for _, each in self._partitions())

    def expire(self, now_s: float) -> list[Message]:
        """Fence the first broker whose session has expired; return the records to write."""
        for node, heard in self._heard.items():
            if now_s - heard > self.session_s:
                return self.fence(node)
        return []

    def next_expiry(self) -> float | None:
        """Return the monotonic time (s) at which the next session expires; None if no broker is alive."""
        return min(self._heard.values()) + self.session_s if self._heard else None

    def fence(self, node: int) -> list[Message]:
        """Return the records that fence a broker."""
        self._heard.pop(node, None)
        broker = self._brokers.by_id.get(node)
        if broker is None or broker.fenced:
            return []
        change = BrokerRegistrationChangeRecord(broker_id=node, broker_epoch=broker.epoch, fenced=1)
        return [change, *self._leave(node)]

    def unregister(self, node: int) -> list[Message]:
        """Remove a broker from the metadata (UnregisterBroker); return the records to write.

        A live broker registers again.

        Raises:
            KafkaError: BROKER_ID_NOT_REGISTERED (102).
        """
        broker = self._brokers.by_id.get(node)
        if broker is None:
            text = f"Broker ID {node} is not currently registered"
            raise error_for(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
        self._heard.pop(node, None)
        gone = UnregisterBrokerRecord(broker_id=node, broker_epoch=broker.epoch)
        return [*self._leave(node), gone]

    def _shut_down(self, node: int) -> list[Message]:
        broker = self._brokers.by_id[node]
        change = BrokerRegistrationChangeRecord(
            broker_id=node, broker_epoch=broker.epoch, in_controlled_shutdown=1
        )
        return [change, *self._leave(node)]

    def _leave(self, node: int, *, was_clean: bool = True) -> list[Message]:
        """Return the records that remove a broker from ISRs and leaderships.

        If the cluster does not use eligible leader replicas (KIP-966), the broker stays in an ISR if it is
        the last member. Otherwise the broker leaves every ISR. It may lead again unless its shutdown was
        unclean, because it may then have lost records.
        """
        has_elr = self.eligibility.is_on

        def is_acceptable(replica: int) -> bool:
            return replica != node and self._brokers.is_acceptable(replica)

        records: list[Message] = []
        for topic, partition in self._partitions():
            in_sync = partition.replicas.in_sync
            is_unsure = not was_clean and node in partition.replicas.eligible
            if node in in_sync or partition.leader == node or is_unsure:
                rest = tuple(each for each in in_sync if each != node)
                found = self._change(
                    topic,
                    partition,
                    is_acceptable,
                    in_sync=rest if has_elr else rest or in_sync,
                    unsure=None if was_clean else node,
                )
                if found is not None:
                    records.append(found)
        return records

    def _elect_leaderless(self, joining: int) -> list[Message]:
        """Return the records that elect leaders for leaderless partitions once broker `joining` is alive."""

        def is_acceptable(replica: int) -> bool:
            return replica == joining or self._brokers.is_acceptable(replica)

        records: list[Message] = []
        for topic, partition in self._partitions():
            if partition.leader == NO_LEADER or not self._brokers.is_alive(partition.leader):
                found = self._change(topic, partition, is_acceptable)
                if found is not None:
                    records.append(found)
        return records

    # --- partitions --------------------------------------------------------------------------------------

    def _partitions(self) -> Iterator[tuple[str, PartitionImage]]:
        for topic in self._image.topics.values():
            for partition in topic.partitions:
                yield topic.name, partition

    def _find(self, topic: str, index: int) -> PartitionImage:
        """Return the metadata of a partition.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3).
        """
        found = self._image.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}")
        return found.partitions[index]

    def _may_be_unclean(self, topic: str) -> bool:
        text = self._image.topics[topic].overrides.get(UNCLEAN)
        return self._unclean_default() if text is None else text.strip().lower() == "true"

    def _change(
        self,
        topic: str,
        partition: PartitionImage,
        is_acceptable: Callable[[int], bool] | None = None,
        *,
        in_sync: Sequence[int] | None = None,
        moved: MovedReplicas | None = None,
        kind: ElectionKind = ElectionKind.ONLINE,
        unsure: int | None = None,
    ) -> PartitionChangeRecord | None:
        """Return the record that changes a partition, with an election if needed; None without a change.

        `unsure` is a replica that may have lost records, or None.
        """
        before = partition.replicas
        target = moved or MovedReplicas(before.assigned, before.adding, before.removing)
        isr = before.in_sync if in_sync is None else tuple(in_sync)
        isr = tuple(each for each in isr if each in target.assigned)
        done = complete(
            before._replace(assigned=target.assigned, adding=target.adding, removing=target.removing), isr
        )
        if done is not None:
            target = done
            isr = tuple(each for each in isr if each in target.assigned)
        acceptable = is_acceptable or self._brokers.is_acceptable
        unclean = self._may_be_unclean(topic)
        eligible = self.eligibility.of(topic, before, target.assigned, isr, unsure)
        last_known = before.last_known if self.eligibility.is_on else ()
        elected = elect(
            target.assigned,
            isr,
            partition.leader,
            acceptable,
            kind,
            unclean=unclean,
            eligible=eligible,
            last_known=last_known,
        )
        eligible = () if elected.is_unclean else tuple(each for each in eligible if each != elected.leader)
        if not elected.in_sync and not last_known and partition.leader >= 0:
            last_known = (partition.leader,)
        elif elected.leader >= 0:
            last_known = ()
        record = PartitionChangeRecord(partition_id=partition.index, topic_id=partition.topic_id)
        if elected.in_sync != before.in_sync:
            record.isr = list(elected.in_sync)
        if eligible != before.eligible:
            record.eligible_leader_replicas = list(eligible)
        if last_known != before.last_known:
            record.last_known_elr = list(last_known)
        if target.assigned != before.assigned:
            record.replicas = list(target.assigned)
        if target.adding != before.adding:
            record.adding_replicas = list(target.adding)
        if target.removing != before.removing:
            record.removing_replicas = list(target.removing)
        has_lost = not set(before.assigned) <= set(target.assigned)
        if elected.leader != partition.leader or has_lost or elected.is_unclean:
            record.leader = elected.leader
        is_same = record == PartitionChangeRecord(partition_id=partition.index, topic_id=partition.topic_id)
        return None if is_same else record

    def propose(self, proposal: Proposal) -> tuple[ProposalAnswer, list[Message]]:
        """Check the ISRs that a leader proposes (AlterPartition); return the answer and records to write."""
        node = proposal.node
        broker = self._brokers.by_id.get(node)
        if broker is None or broker.epoch != proposal.broker_epoch:
            return ProposalAnswer(ErrorCode.STALE_BROKER_EPOCH), []
        if proposal.number:
            # A late copy of a proposal must not be written after the leader was answered that it was refused.
            if (proposal.broker_epoch, proposal.number) <= self._proposals.get(node, (-1, 0)):
                return ProposalAnswer(ErrorCode.INVALID_UPDATE_VERSION), []
            self._proposals[node] = proposal.broker_epoch, proposal.number
        judged = [self._judge(node, change) for change in proposal.changes]
        written: list[Message] = [found for _, found in judged if found is not None]
        return ProposalAnswer(ErrorCode.NONE, tuple(error for error, _ in judged)), written

    def _judge(self, node: int, change: IsrChange) -> tuple[int, PartitionChangeRecord | None]:
        """Check a proposed ISR; return its error code or 0, and the record to write or None."""
        topic = self._image.topics_by_id.get(change.topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID, None
        if not 0 <= change.partition < len(topic.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
        partition = topic.partitions[change.partition]
        if change.leader_epoch > partition.leader_epoch or change.partition_epoch > partition.epoch:
            return ErrorCode.NOT_CONTROLLER, None
        if change.leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH, None
        if node != partition.leader:
            return ErrorCode.INVALID_REQUEST, None
        if change.partition_epoch < partition.epoch:
            return ErrorCode.INVALID_UPDATE_VERSION, None
        in_sync = tuple(replica for replica, _ in change.in_sync)
        if not set(in_sync) <= set(partition.replicas.assigned) or partition.leader not in in_sync:
            return ErrorCode.INVALID_REQUEST, None
        for replica, epoch in change.in_sync:
            member = self._brokers.by_id.get(replica)
            if member is None or not member.is_acceptable or epoch not in (-1, member.epoch):
                return ErrorCode.INELIGIBLE_REPLICA, None
        return ErrorCode.NONE, self._change(topic.name, partition, in_sync=in_sync)

    # --- elections ---------------------------------------------------------------------------------------

    def elections(self, kind: ElectionKind, most: int) -> list[Message]:
        """Hold up to `most` elections that the controller starts itself; return the records to write.

        PREFERRED elections are for partitions that are not led by their preferred replica, UNCLEAN elections
        for partitions without a leader whose topics allow unclean elections.
        """
        records: list[Message] = []
        for topic, partition in self._partitions():
            if len(records) >= most:
                break
            if kind is ElectionKind.UNCLEAN:
                is_concerned = partition.leader == NO_LEADER and self._may_be_unclean(topic)
            else:
                is_concerned = partition.leader != partition.replicas.assigned[0]
            found = self._change(topic, partition, kind=kind) if is_concerned else None
            if found is not None:
                records.append(found)
        return records

    def elect(self, topic: str, index: int, kind: ElectionKind) -> list[Message]:
        """Hold an election that a client asked for (ElectLeaders); return the records to write.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3), PREFERRED_LEADER_NOT_AVAILABLE (80),
                ELIGIBLE_LEADERS_NOT_AVAILABLE (83), ELECTION_NOT_NEEDED (84).
        """
        partition = self._find(topic, index)
        assigned = partition.replicas.assigned
        if kind is ElectionKind.PREFERRED and partition.leader == assigned[0]:
            raise error_for(ErrorCode.ELECTION_NOT_NEEDED, "The preferred replica leads already.")
        if kind is ElectionKind.UNCLEAN and partition.leader != NO_LEADER:
            raise error_for(ErrorCode.ELECTION_NOT_NEEDED, "The partition has a leader.")
        found = self._change(topic, partition, kind=kind)
        if found is None or found.leader == SAME_LEADER or found.leader == NO_LEADER:
            code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if kind is ElectionKind.UNCLEAN:
                code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            raise error_for(code, "No replica that may lead is available.")
        if kind is ElectionKind.PREFERRED and found.leader != assigned[0]:
            raise error_for(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                f"Broker {assigned[0]} is not in sync, or not alive.",
            )
        return [found]

    def lead(self, topic: str, index: int, node: int) -> list[Message]:
        """Make a replica that is in sync and alive the leader, for tests; return the records to write.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3); ELIGIBLE_LEADERS_NOT_AVAILABLE (83), the replica may
                not lead.
        """
        partition = self._find(topic, index)
        if partition.leader == node:
            return []
        if node not in partition.replicas.in_sync or not self._brokers.is_acceptable(node):
            raise error_for(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                f"broker {node} cannot lead {topic}-{index}: in sync are {list(partition.replicas.in_sync)}",
            )
        return [PartitionChangeRecord(partition_id=index, topic_id=partition.topic_id, leader=node)]

    def shrink(self, topic: str, index: int, node: int) -> list[Message]:
        """Remove a follower from the ISR, for tests; return the records to write.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3); INVALID_REQUEST (42), the broker leads the partition.
        """
        partition = self._find(topic, index)
        if partition.leader == node:
            raise error_for(ErrorCode.INVALID_REQUEST, f"broker {node} leads {topic}-{index}; move it first")
        rest = tuple(each for each in partition.replicas.in_sync if each != node)
        found = self._change(topic, partition, in_sync=rest)
        return [] if found is None else [found]

    def reassign(
        self, topic: str, index: int, target: Sequence[int] | None, *, same_size: bool
    ) -> list[Message]:
        """Begin or, with `target` None, cancel a reassignment of replicas; return the records to write.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3), NO_REASSIGNMENT_IN_PROGRESS (85),
                INVALID_REPLICA_ASSIGNMENT (39), INVALID_REPLICATION_FACTOR (38).
        """
        partition = self._find(topic, index)
        replicas = partition.replicas
        if target is None:
            if not (replicas.adding or replicas.removing):
                raise error_for(
                    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no replica of this partition is moving"
                )
            moved = cancel(replicas)
            if not set(moved.assigned) & set(replicas.in_sync):
                raise error_for(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no replica that stays would be in sync"
                )
        else:
            self.check_assignment(target)
            moved = begin(replicas, target)
            settled = [each for each in replicas.assigned if each not in replicas.adding]
            if same_size and len(target) != len(settled):
                raise error_for(
                    ErrorCode.INVALID_REPLICATION_FACTOR,
                    f"The replication factor is changed from {len(settled)} to {len(target)}",
                )
        found = self._change(topic, partition, moved=moved)
        return [] if found is None else [found]

    def moving(self, wanted: Iterable[tuple[str, int]] | None) -> list[tuple[str, PartitionImage]]:
        """Return the partitions of `wanted` that are being reassigned; None stands for all partitions."""
        names = None if wanted is None else set(wanted)
        return [
            (topic, each)
            for topic, each in self._partitions()
            if (each.replicas.adding or each.replicas.removing)
            and (names is None or (topic, each.index) in names)
        ]

    # --- placement ---------------------------------------------------------------------------------------

    def check_assignment(self, replicas: Sequence[int]) -> None:
        """Check the replicas that a client has assigned to a partition.

        Raises:
            KafkaError: INVALID_REPLICA_ASSIGNMENT (39): the list is empty, or has a broker twice or one that
                is not registered.
        """
        if not replicas or len(set(replicas)) < len(replicas):
            raise error_for(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"replicas on brokers {list(replicas)}")
        unknown = [each for each in replicas if each not in self._brokers.by_id]
        if unknown:
            raise error_for(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"brokers {unknown} are not registered; there are {sorted(self._brokers.by_id)}",
            )

    def candidates(self) -> list[Candidate]:
        """Return the brokers that can get new replicas: all that are not in a controlled shutdown.

        A broker that has stopped is included, as in Apache Kafka: it may come back.
        """
        return [
            Candidate(each.id, each.rack, each.fenced)
            for each in self._brokers.by_id.values()
            if each.fenced or not each.shutting_down
        ]

    def place(self, partitions: int, factor: int) -> list[tuple[int, ...]]:
        """Choose the replicas of new partitions; return the broker ids of each partition.

        Raises:
            KafkaError: INVALID_REPLICATION_FACTOR (38), there are too few brokers.
        """
        try:
            return place(self.candidates(), partitions, factor, self._random)
        except ValueError as error:
            text = f"Unable to replicate the partition {factor} time(s): {error}"
            raise error_for(ErrorCode.INVALID_REPLICATION_FACTOR, text) from None

    def in_sync_of(self, replicas: Sequence[int]) -> tuple[int, ...]:
        """Return the initial ISR of a new partition: its live replicas. The first of them leads."""
        return tuple(each for each in replicas if self._brokers.is_acceptable(each))
