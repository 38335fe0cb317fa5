"""Converts a group with members from the classic to the consumer protocol (KIP-848), and back.

This module does no I/O. `upgrade` returns the changes that turn a classic group into a consumer group;
`downgrade` fills a classic group from a consumer group. The caller stores the removal of the old group and
the creation of the new one in a single batch, and then replaces the group in memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.broker.groups.classic.group import ClassicGroup
from penstock.broker.groups.classic.member import Member
from penstock.broker.groups.consumer.embedded_protocol import (
    ClassicSubscription,
    read_assignment,
    read_subscription,
    write_assignment,
)
from penstock.broker.groups.consumer.state import (
    FIRST_EPOCH,
    NO_TIME,
    Change,
    ConsumerSubscription,
    Current,
    GroupState,
    MemberState,
    Partition,
    SetCurrent,
    SetEpoch,
    SetSubscription,
    SetTarget,
    SetTargetEpoch,
)
from penstock.broker.groups.metadata_view import TopicView, hash_of
from penstock.broker.groups.settings import ConsumerGroupSettings
from penstock.errors import DecodeError, KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

CUSTOM_ASSIGNOR = (
    "Cannot upgrade classic group {} to consumer group because an unsupported custom assignor is in use. "
    "Please refer to the documentation or switch to a default assignor before re-attempting the upgrade."
)
"""Apache Kafka's error message for a group with a custom assignor, whose user data would be lost."""


def upgrade(
    group: ClassicGroup, settings: ConsumerGroupSettings, topics: Mapping[str, TopicView]
) -> list[Change]:
    """Return the changes, in Kafka's order, that turn a classic group with members into a consumer group.

    The generation becomes the epoch of the group and of its members. Each assignment becomes both the target
    and the current assignment of its member. The target is recomputed at the next heartbeat.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND (69), and the group stays unchanged: `group.consumer.migration.policy`
            forbids the upgrade, the members are not consumers, there are too many of them, their metadata
            cannot be read, or their assignor keeps user data.
    """
    if not settings.migration.allows_upgrade:
        raise _refusal(group, f"group.consumer.migration.policy is {settings.migration}")
    if not group.is_of_consumers:
        raise _refusal(group, "its members are no consumers")
    if len(group.members) > settings.max_size:
        raise _refusal(group, f"it has more than group.consumer.max.size ({settings.max_size}) members")
    try:
        wanted = {
            each.id: read_subscription(_metadata(group, each), topics) for each in group.members.values()
        }
        held = _held(group, wanted, topics)
    except DecodeError as error:
        raise _refusal(group, f"the metadata of a member cannot be read ({error})") from None
    except ValueError:
        raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, CUSTOM_ASSIGNOR.format(group.id)) from None
    epoch = max(group.generation, FIRST_EPOCH)
    changes: list[Change] = [
        SetSubscription(each.id, _subscription(each, wanted[each.id])) for each in group.members.values()
    ]
    subscribed = {topic for each in wanted.values() for topic in each.topics}
    changes.append(SetEpoch((epoch, hash_of(subscribed, topics))))
    changes += [SetTarget(member_id, partitions) for member_id, partitions in held.items()]
    changes.append(SetTargetEpoch((epoch, NO_TIME)))
    changes += [
        SetCurrent(
            member_id, Current(epoch, epoch, MemberState.STABLE, dict.fromkeys(sorted(partitions), epoch))
        )
        for member_id, partitions in held.items()
    ]
    return changes


def _held(
    group: ClassicGroup, wanted: Mapping[str, ClassicSubscription], topics: Mapping[str, TopicView]
) -> dict[str, frozenset[Partition]]:
    """Return the partitions that each member may own: its assignment, and those it owned when it joined.

    A cooperative member keeps the partitions that it owned until it gets its assignment, and a generation
    whose leader has not assigned yet has no assignments. If several members claim a partition, it goes to the
    member to which it is assigned. If it is assigned to none of them, it goes to the one whose claim has the
    latest generation.
    """
    held = {each.id: read_assignment(each.assignment, topics) for each in group.members.values()}
    taken = {partition for partitions in held.values() for partition in partitions}
    for member_id in sorted(held, key=lambda each: -wanted[each].generation):
        held[member_id] |= wanted[member_id].owned - taken
        taken |= held[member_id]
    return held


def _metadata(group: ClassicGroup, member: Member) -> bytes:
    """Return a member's metadata for the group's protocol or, if none is chosen, for its first protocol."""
    return member.metadata(group.protocol) if group.protocol else member.protocols[0][1]


def _subscription(member: Member, wanted: ClassicSubscription) -> ConsumerSubscription:
    return ConsumerSubscription(
        member.instance_id,
        wanted.rack_id,
        member.client_id,
        member.client_host,
        tuple(sorted(set(wanted.topics))),
        "",
        member.rebalance_timeout_ms,
        None,
        member.session_timeout_ms,
        member.protocols,
    )


def _refusal(group: ClassicGroup, why: str) -> KafkaError:
    return error_for(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"group {group.id} has members of the classic protocol, and cannot turn to the consumer protocol: "
        f"{why}",
    )


def downgrade(
    group: ClassicGroup, state: GroupState, generation: int, topics: Mapping[str, TopicView]
) -> None:
    """Fill a new classic group from a consumer group whose members all use the classic protocol.

    The target of each member becomes its assignment. If the group was not stable, the assignment has the
    partitions that the member owns, and those of its target that no other member owns. So no partition has
    two owners until the next generation.

    Raises:
        DecodeError, ValueError: the members do not make a valid classic group.
    """
    for member_id, each in state.subscriptions.items():
        member = group.make_member(
            member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            each.session_timeout_ms or 0,
            each.rebalance_timeout_ms,
            list(each.protocols),
            b"",
        )
        group.roster.enrol(member)
    group.begin_stable(generation)
    names = {topic.id: name for name, topic in topics.items()}
    for member in group.members.values():
        partitions = _held_or_free(state, member.id)
        member.assignment = write_assignment(partitions, names, member.metadata(group.protocol))


def _held_or_free(state: GroupState, member_id: str) -> set[Partition]:
    current = state.current(member_id)
    free = {each for each in state.target(member_id) if state.owners.get(each, member_id) == member_id}
    return free | current.assigned.keys() | current.revoking.keys()
