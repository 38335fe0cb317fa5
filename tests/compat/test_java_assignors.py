"""Penstock's assignors give the same assignments as Java's for the same members, in the same bytes.

Groups are generated, and go through several rebalances in which members join and leave. The partitions
that Java assigned are those that the members own in the next rebalance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from compat.peers import HERE, java, maven_classpath
from penstock.client.assignors import NAMES, assignor_named
from penstock.client.assignors.base import Previous
from penstock.client.assignors.member_metadata import Subscription, encode_assignment, encode_subscription
from penstock.model import TopicPartition

pytestmark = pytest.mark.compat

GROUPS, REBALANCES = 250, 4
Group = tuple[str, dict[str, int], dict[str, Subscription]]


def groups(name: str, seed: int) -> Iterator[Group]:
    """Yield one random group in each of its rebalances, as the group's leader receives it."""
    dice = random.Random(f"{name}-{seed}")
    assignor = assignor_named(name)
    topics = [f"topic-{dice.randrange(100)}" for _ in range(dice.randint(1, 5))]
    counts = {topic: dice.randint(1, 9) for topic in topics}
    is_equal = dice.random() < 0.5
    members: dict[str, tuple[list[str], str | None]] = {}
    before: dict[str, list[TopicPartition]] = {}
    since: dict[str, int] = {}
    for generation in range(1, REBALANCES + 1):
        for member in [m for m in members if dice.random() < 0.25]:
            del members[member]
        while not members or dice.random() < 0.6:
            wanted = list(counts) if is_equal else dice.sample(list(counts), dice.randint(1, len(counts)))
            instance = f"i{dice.randrange(1000)}" if dice.random() < 0.2 else None
            members[f"consumer-{dice.getrandbits(64):x}"] = sorted(wanted), instance
        said = {}
        for member, (wanted, instance) in members.items():
            had = before.get(member)
            owned = [p for p in had or () if p.topic in wanted] if assignor.is_cooperative else []
            said[member] = Subscription(
                tuple(wanted),
                tuple(sorted(owned)),
                assignor.user_data(wanted, Previous(had, since.get(member, -1))),
                since.get(member, -1),
                None,
                instance,
            )
        subscribed = {topic for wanted, _ in members.values() for topic in wanted}
        yield name, {topic: n for topic, n in counts.items() if topic in subscribed}, said
        if dice.random() < 0.2:
            continue  # this one's outcome is heard by nobody: generations drift apart
        assigned = assignor.assign({t: n for t, n in counts.items() if t in subscribed}, said)
        for member in members:
            if dice.random() < 0.9:
                before[member], since[member] = list(assigned[member]), generation


def question(group: Group) -> str:
    name, counts, said = group
    topics = ",".join(f"{topic}={count}" for topic, count in counts.items())
    members = ";".join(f"{m}/{s.instance_id or ''}/{encode_subscription(s).hex()}" for m, s in said.items())
    return f"{name} {topics} {members}"


@pytest.mark.parametrize("release", ["4.3.0", "3.9.1"])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_groups_get_the_same_assignments(name: str, release: str) -> None:
    asked = [group for seed in range(GROUPS) for group in groups(name, seed)]
    program = HERE / "java" / "assignors" / "Assignors.java"
    text = "\n".join(map(question, asked)) + "\n"
    done = java(maven_classpath(f"kafka-{release}"), program, stdin=text, check=True)
    answers = done.stdout.splitlines()
    assert len(answers) == len(asked) == GROUPS * REBALANCES
    for group, answer in zip(asked, answers, strict=True):
        _, counts, said = group
        assignor = assignor_named(name)
        assigned = assignor.assign(counts, said)
        for (member, subscription), theirs in zip(said.items(), answer.split(" "), strict=True):
            assignment, again, user_data = theirs.split("/")
            assert encode_subscription(subscription).hex() == again
            assert sorted(_places(assignment)) == sorted(assigned[member]), question(group)
            ordered = _places(assignment)
            assert encode_assignment(ordered).hex() == assignment
            ours = assignor.user_data(subscription.topics, Previous(ordered, 5))
            assert ("-" if ours is None else ours.hex()) == user_data


def _places(assignment: str) -> list[TopicPartition]:
    from penstock.client.assignors.member_metadata import decode_assignment

    return decode_assignment(bytes.fromhex(assignment))
