"""Plans: which faults happen in a run, and at which requests, drawn from a seed. No I/O.

The moment of a fault is a request, such as "the 4th Produce", so that a plan interrupts an application at the
same point on slow and fast machines. The plan depends only on the seed, the number of the run and the kinds
of faults.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError

FAULTS_MAX = 4
"""The greatest number of faults in a run. All their subsets can be tried to find the shortest list."""

_COUNTS = (1, 1, 2, 2, 3, 4)
_MOMENTS = (1, 2, 4, 8, 16, 32)
"""Upper bounds for the number of requests before a fault. One bound is drawn first, then a number below it,
so that small numbers are more frequent.
"""

SESSION_MS, TRANSACTION_MS, HOUR_MS = 46_000, 61_000, 3_600_000
"""Jumps of a clock, in ms: past the default session timeout or transaction timeout, or by an hour."""


class PlannedFault(NamedTuple):
    """One planned fault: it affects `times` requests of `api`, after `skip` requests of that API."""

    kind: str
    """The kind of fault, one of `FAULTS`."""
    api: str
    skip: int
    times: int = 1
    """The number of consecutive requests of `api` that the fault affects."""
    detail: str = ""
    """The detail that `kind` needs: the name of an error, a number of milliseconds, or an empty string."""

    def __str__(self) -> str:
        return f"{KINDS[self.kind].sentence(self)} ({self.kind})"

    @property
    def moment(self) -> str:
        """The requests at which the fault happens, in words, such as ``Produce 4``."""
        first = self.skip + 1
        return f"{self.api} {first}" if self.times == 1 else f"{self.api} {first} to {first + self.times - 1}"


class FaultKind(NamedTuple):
    """A kind of fault: the APIs at whose requests it may happen, its details, and its description."""

    apis: Sequence[str]
    sentence: Callable[[PlannedFault], str]
    details: Callable[[str], Sequence[str]] = lambda api: ("",)
    times: Sequence[int] = (1,)
    by_default: bool = True

    def draw(self, kind: str, dice: random.Random) -> PlannedFault:
        """Return a planned fault of this kind; the random generator `dice` draws API, moment and details."""
        api = dice.choice(self.apis)
        skip = dice.randrange(dice.choice(_MOMENTS))
        return PlannedFault(kind, api, skip, dice.choice(self.times), dice.choice(self.details(api)))


_WRITES = ("Produce", "Produce", "Produce", "OffsetCommit", "OffsetCommit", "TxnOffsetCommit", "EndTxn")
_COORDINATED = ("OffsetCommit", "OffsetCommit", "TxnOffsetCommit", "EndTxn", "JoinGroup", "Heartbeat")
_ALL = (*_WRITES, "Fetch", "JoinGroup", "SyncGroup", "InitProducerId", "FindCoordinator", "Metadata")

_RETRIABLE = {
    "Produce": ("NOT_ENOUGH_REPLICAS", "KAFKA_STORAGE_ERROR", "UNKNOWN_TOPIC_OR_PARTITION"),
    "Fetch": ("KAFKA_STORAGE_ERROR", "UNKNOWN_TOPIC_OR_PARTITION"),
    "OffsetCommit": ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"),
    "TxnOffsetCommit": ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"),
    "EndTxn": ("CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS"),
    "InitProducerId": ("CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS"),
}
"""A dict from an API to errors after which every client repeats the request by itself."""

_REFUSALS = {
    "Produce": ("TOPIC_AUTHORIZATION_FAILED", "INVALID_RECORD", "POLICY_VIOLATION"),
    "OffsetCommit": ("GROUP_AUTHORIZATION_FAILED",),
}
"""A dict from an API to errors after which no client repeats the request, so that the application has to
handle them."""

KINDS: dict[str, FaultKind] = {
    "lost_answers": FaultKind(
        _WRITES, lambda fault: f"the answer to {fault.moment} is lost after its effect"
    ),
    "lost_requests": FaultKind(
        _ALL, lambda fault: f"the connection ends before {fault.moment} has an effect"
    ),
    "cut_answers": FaultKind(_ALL, lambda fault: f"the answer to {fault.moment} is cut in the middle"),
    "errors": FaultKind(
        tuple(_RETRIABLE),
        lambda fault: f"{fault.moment} has error {fault.detail}",
        lambda api: _RETRIABLE[api],
        (1, 1, 2),
    ),
    "delays": FaultKind(
        (*_ALL, "Fetch"),
        lambda fault: f"the answer to {fault.moment} comes {fault.detail} ms late",
        lambda api: ("5", "10", "20"),
    ),
    "slow_disks": FaultKind(
        ("Produce", "OffsetCommit", "TxnOffsetCommit"),
        lambda fault: f"the disk takes {fault.detail} ms for {fault.moment}",
        lambda api: ("5", "10"),
        (2, 4),
    ),
    "leaders_move": FaultKind(
        ("Produce", "Produce", "Fetch"),
        lambda fault: f"the leader moves at {fault.moment}",
        times=(1, 1, 2),
    ),
    "coordinators_move": FaultKind(
        _COORDINATED,
        lambda fault: f"the coordinator moves at {fault.moment}",
        times=(1, 1, 2),
    ),
    "rebalances": FaultKind(
        ("OffsetCommit", "OffsetCommit", "TxnOffsetCommit", "TxnOffsetCommit", "Produce", "Fetch"),
        lambda fault: f"the members of all groups are expelled at {fault.moment}",
    ),
    "clocks": FaultKind(
        ("Produce", "Fetch", "OffsetCommit", "TxnOffsetCommit", "EndTxn"),
        lambda fault: f"the broker's clock jumps {int(fault.detail) / 1000:g} s ahead at {fault.moment}",
        lambda api: (str(SESSION_MS), str(TRANSACTION_MS), str(HOUR_MS)),
    ),
    "refusals": FaultKind(
        ("Produce", "Produce", "OffsetCommit"),
        lambda fault: f"{fault.moment} is refused with {fault.detail}",
        lambda api: _REFUSALS[api],
        by_default=False,
    ),
    "restarts": FaultKind(
        ("Produce", "Fetch", "OffsetCommit", "EndTxn"),
        lambda fault: f"the broker is killed and started again at {fault.moment}",
        by_default=False,
    ),
    "silence": FaultKind(
        _WRITES,
        lambda fault: f"{fault.moment} is never answered, after its effect",
        by_default=False,
    ),
}

FAULTS: tuple[str, ...] = tuple(KINDS)
"""The names of all kinds of faults, for the argument `faults` of `chaos` and `explore`."""

DEFAULT_FAULTS: tuple[str, ...] = tuple(name for name, kind in KINDS.items() if kind.by_default)
"""The kinds of faults that are drawn by default: clients and applications must recover from them quickly."""


class Plan(NamedTuple):
    """The faults of one chaos run. `chosen` has the numbers, from 1, of the faults to inject; None: all."""

    seed: int
    run: int
    drawn: tuple[PlannedFault, ...]
    chosen: tuple[int, ...] | None = None

    @property
    def faults(self) -> tuple[PlannedFault, ...]:
        """The faults to inject, in order."""
        if self.chosen is None:
            return self.drawn
        return tuple(self.drawn[number - 1] for number in self.chosen)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the faults to inject; the first fault that was drawn has the number 1."""
        return tuple(range(1, len(self.drawn) + 1)) if self.chosen is None else self.chosen

    def only(self, numbers: Iterable[int]) -> Plan:
        """Return a copy of the plan in which only the faults with these numbers happen."""
        return self._replace(chosen=tuple(numbers))

    def __str__(self) -> str:
        name = f"{self.seed}:{self.run}"
        if self.chosen is None:
            return name
        return f"{name}/{','.join(map(str, self.chosen)) or 'none'}"


def draw(seed: int, run: int, kinds: Sequence[str]) -> Plan:
    """Return the plan of run number `run`. Run 0 has no faults, to check that the test passes without faults.

    `kinds` are names out of `FAULTS`. Their order matters: another order gives another plan.
    """
    if run == 0:
        return Plan(seed, run, ())
    dice = random.Random(f"{seed}:{run}")
    count = min(dice.choice(_COUNTS), FAULTS_MAX)
    names = [dice.choice(kinds) for _ in range(count)]
    return Plan(seed, run, tuple(KINDS[name].draw(name, dice) for name in names))


def checked_kinds(faults: Iterable[str] | None) -> tuple[str, ...]:
    """Return the kinds of faults, by default `DEFAULT_FAULTS`.

    Raises:
        ConfigError: a kind is unknown, or the list is empty.
    """
    if faults is None:
        return DEFAULT_FAULTS
    if isinstance(faults, str):
        raise ConfigError(f"faults={faults!r}: faults is a list of names")
    names = tuple(faults)
    for name in names:
        if name not in KINDS:
            near = did_you_mean(str(name), KINDS)
            raise ConfigError(f"there are no faults named {name!r}{near}; known: {', '.join(KINDS)}")
    if not names:
        raise ConfigError(f"faults is empty: leave it out, or name some of {', '.join(KINDS)}")
    return names


_REPLAY = re.compile(r"(-?\d+):(\d+)(?:/(none|\d+(?:,\d+)*))?")


def parsed(text: str, kinds: Sequence[str]) -> Plan:
    """Return the plan of a text ``SEED:RUN`` or ``SEED:RUN/NUMBERS``, such as ``7:113`` or ``7:113/1,3``.

    Raises:
        ConfigError: the text has another form, or a number of a fault is not in the plan.
    """
    match = _REPLAY.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{text!r} names no run: SEED:RUN, or SEED:RUN/1,3 with the faults that happen")
    plan = draw(int(match[1]), int(match[2]), kinds)
    if match[3] is None:
        return plan
    numbers = [] if match[3] == "none" else [int(each) for each in match[3].split(",")]
    beyond = [each for each in numbers if not 1 <= each <= len(plan.drawn)]
    if beyond:
        raise ConfigError(
            f"{text!r}: run {plan.run} of seed {plan.seed} has {len(plan.drawn)} faults, and no fault "
            f"{beyond[0]}: were other kinds of faults asked for?"
        )
    return plan.only(numbers)
