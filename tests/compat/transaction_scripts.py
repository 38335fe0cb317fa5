"""Request scripts about transactions, before and with KIP-890, for comparing brokers.

The scripts wait for asynchronous work of a broker (such as writing markers) before the next request, so
that answers do not depend on the brokers' speed.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from compat.scripts import LOADING, ZERO, changed, fetch, produce, script
from compat.scripts import rows as rows_at
from compat.transcript import WAITS_MAX, Talk
from penstock.records.batch import encode_batch

CONCURRENT = 51
COMMIT, ABORT = True, False
NOW = int(time.time() * 1000)
"""The timestamp of records, in ms: with old timestamps Kafka would roll a segment for each marker."""
STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip


def rows(*values: bytes) -> list[Any]:
    return rows_at(*values, time=NOW)


class Pair(NamedTuple):
    """A producer id and an epoch."""

    id: int
    epoch: int


NONE = Pair(-1, -1)


class Transactional:
    """A producer with a transactional id, which sends the requests of a transaction."""

    def __init__(self, t: Talk, name: str, *, is_new: bool) -> None:
        self.t = t
        self.id = t.name(name)
        self.is_new = is_new
        """True if the producer uses the transaction protocol of KIP-890."""
        self.pair = NONE
        self.sequences: dict[tuple[str, int, Pair], int] = {}
        loaded(t, self.id)

    # --- the coordinator -------------------------------------------------------------------------------

    def init(self, version: int | None = None, *, given: Pair = NONE, timeout_ms: int = 60_000) -> Pair:
        """Send InitProducerId.

        After CONCURRENT_TRANSACTIONS the request is repeated once the old transaction has ended.
        """
        tree = {"transactional_id": self.id, "transaction_timeout_ms": timeout_ms}
        tree |= {"producer_id": given.id, "producer_epoch": given.epoch}
        version = min(5, self.t.latest("InitProducerId")) if version is None else version
        answer = self.t.ask("InitProducerId", version, tree)
        if answer["error_code"] == CONCURRENT:
            self.settled()
            answer = self.t.ask("InitProducerId", version, tree)
        if answer["error_code"] == 0:
            self.pair = Pair(answer["producer_id"], answer["producer_epoch"])
        return self.pair

    def add(self, *names: str, pair: Pair | None = None, version: int = 3, partitions: Any = (0,)) -> None:
        pair = self.pair if pair is None else pair
        topics = [{"name": name, "partitions": list(partitions)} for name in names]
        add_partitions(self.t, self.id, pair, topics, version)

    def end(self, commit: bool, *, pair: Pair | None = None, version: int | None = None) -> Any:
        """Send EndTxn; with KIP-890 take the producer id and epoch from the response."""
        asked = self.pair if pair is None else pair
        version = (5 if self.is_new else 4) if version is None else version
        tree = {"transactional_id": self.id, "producer_id": asked.id, "producer_epoch": asked.epoch}
        answer = self.t.ask("EndTxn", version, {**tree, "committed": commit})
        self.settled()
        if version >= 5 and pair is None and answer["error_code"] == 0:
            self.pair = Pair(answer["producer_id"], answer["producer_epoch"])
        return answer

    def settled(self) -> None:
        """Wait until the transaction's markers are written."""
        for _ in range(WAITS_MAX):
            [found] = self.t.ask_quietly("DescribeTransactions", 0, {"transactional_ids": [self.id]})[
                "transaction_states"
            ]
            if not found["transaction_state"].startswith("Prepare"):
                break
            time.sleep(0.005)

    def describe(self) -> None:
        self.t.ask("DescribeTransactions", 0, {"transactional_ids": [self.id]})

    # --- partitions ------------------------------------------------------------------------------------

    def produce(
        self,
        name: str,
        *values: bytes,
        pair: Pair | None = None,
        version: int | None = None,
        sequence: int | None = None,
        partition: int = 0,
        transactional: bool = True,
        **more: Any,
    ) -> None:
        pair = self.pair if pair is None else pair
        version = (self.t.latest("Produce") if self.is_new else 11) if version is None else version
        key = (name, partition, pair)
        if sequence is None:
            sequence = self.sequences.get(key, 0)
            self.sequences[key] = sequence + len(values)
        numbers = {"producer_id": pair.id, "producer_epoch": pair.epoch, "base_sequence": sequence}
        batch = encode_batch(rows(*values), is_transactional=transactional, **numbers)  # type: ignore[arg-type]
        more.setdefault("transactional_id", self.id)
        produce(self.t, version, name, batch, partition=partition, **more)

    # --- offsets ---------------------------------------------------------------------------------------

    def add_offsets(self, group: str, *, pair: Pair | None = None, version: int = 4) -> None:
        pair = self.pair if pair is None else pair
        tree = {"transactional_id": self.id, "producer_id": pair.id, "producer_epoch": pair.epoch}
        self.t.ask("AddOffsetsToTxn", version, {**tree, "group_id": group})

    def commit_offset(
        self,
        group: str,
        name: str,
        offset: int,
        *,
        pair: Pair | None = None,
        version: int | None = None,
        **more: Any,
    ) -> None:
        pair = self.pair if pair is None else pair
        version = (5 if self.is_new else 3) if version is None else version
        index, metadata = more.pop("partition", 0), more.pop("metadata", "m")
        place = {"partition_index": index, "committed_offset": offset, "committed_metadata": metadata}
        tree = {"transactional_id": self.id, "producer_id": pair.id, "producer_epoch": pair.epoch}
        tree |= {"group_id": group, "topics": [{"name": name, "partitions": [place]}], "member_id": ""}
        self.t.ask("TxnOffsetCommit", version, {**tree, **more})


def loaded(t: Talk, transactional_id: str) -> None:
    """Wait until the coordinator of a transactional id answers without a loading error."""
    for _ in range(WAITS_MAX):
        asked = {"key": transactional_id, "key_type": 1, "coordinator_keys": [transactional_id]}
        found = t.ask_quietly("FindCoordinator", 4, asked)
        if all(each["error_code"] == 0 for each in found["coordinators"]):
            break
        time.sleep(0.02)
    for _ in range(WAITS_MAX):
        found = t.ask_quietly("DescribeTransactions", 0, {"transactional_ids": [transactional_id]})
        if all(each["error_code"] not in LOADING for each in found["transaction_states"]):
            break
        time.sleep(0.02)
    for _ in range(WAITS_MAX):  # a block of producer ids
        first = {"transactional_id": None, "transaction_timeout_ms": 1000}
        if t.ask_quietly("InitProducerId", 2, first)["error_code"] == 0:
            break
        time.sleep(0.02)


def add_partitions(
    t: Talk, transactional_id: str, pair: Pair, topics: list[Any], version: int, verify: bool = False
) -> None:
    if version < 4:
        tree = {
            "v3_and_below_transactional_id": transactional_id,
            "v3_and_below_producer_id": pair.id,
            "v3_and_below_producer_epoch": pair.epoch,
            "v3_and_below_topics": topics,
        }
    else:
        one = {"transactional_id": transactional_id, "producer_id": pair.id, "producer_epoch": pair.epoch}
        tree = {"transactions": [{**one, "verify_only": verify, "topics": topics}]}
    t.ask("AddPartitionsToTxn", version, tree)


def describe_producers(t: Talk, *places: tuple[str, int]) -> None:
    t.ask("DescribeProducers", 0, {"topics": by_topic(places)})


def by_topic(places: Iterable[tuple[str, int]]) -> list[Any]:
    indexes: dict[str, list[int]] = {}
    for name, index in places:
        indexes.setdefault(name, []).append(index)
    return [{"name": name, "partition_indexes": each} for name, each in indexes.items()]


def read(t: Talk, name: str, offset: int = 0, *, version: int | None = None, **more: Any) -> None:
    """Send Fetch with both isolation levels; record the aborted transactions in their order as well."""
    version = t.latest("Fetch") if version is None else version
    for level in (0, 1):
        fetch(t, version, name, offset, isolation_level=level, **more)
        answer = t.exchanges[-1].answer
        if isinstance(answer, dict):
            for topic in answer["responses"]:
                for place in topic["partitions"]:
                    ends = [batch["base_offset"] for batch in place["records"]["batches"]]
                    listed = [each["first_offset"] for each in place.get("aborted_transactions") or []]
                    t.note("aborted", [each for each in listed if each <= max(ends, default=-1)])


def offsets(t: Talk, name: str) -> None:
    """Send ListOffsets with both isolation levels, for every special timestamp and for real timestamps."""
    for version in t.some_versions("ListOffsets"):
        for level in (0, 1) if version >= 2 else (0,):
            for moment in (-1, -2, -3, NOW, NOW + 1, NOW * 2):
                if moment == -3 and version < 7:
                    continue
                place = {
                    "partition_index": 0,
                    "timestamp": moment,
                    "current_leader_epoch": -1,
                    "max_num_offsets": 9,
                }
                tree = {"replica_id": -1, "isolation_level": level}
                t.ask("ListOffsets", version, {**tree, "topics": [{"name": name, "partitions": [place]}]})


def committed(t: Talk, group: str, name: str, *, some: bool = True) -> None:
    """Send OffsetFetch with and without require_stable, in every version."""
    for version in t.versions("OffsetFetch"):
        for stable in (False, True):
            topic = {"name": name, "topic_id": t.topic_id(name), "partition_indexes": [0, 1]}
            topics = [topic] if some else None
            if topics is None and version < 2:
                continue
            tree = {"group_id": group, "topics": topics, "require_stable": stable}
            tree["groups"] = [{"group_id": group, "topics": topics}]
            t.ask("OffsetFetch", version, tree)
            if version < 7:
                break


def checks_epochs(t: Talk) -> bool:
    """Return True if both brokers reject an epoch above the current one.

    3.9 accepts it, and can then no longer end the transaction.
    """
    return t.latest("EndTxn") >= 5


def flows(t: Talk) -> Iterator[bool]:
    """Yield False for transactions before KIP-890 and, if both brokers support them, True for KIP-890's."""
    yield False
    if t.latest("EndTxn") >= 5:
        yield True


# --- ids and epochs -----------------------------------------------------------------------------------------


@script
def txn_init(t: Talk) -> None:
    number = 0
    for version in t.versions("InitProducerId"):
        number += 1
        tx = Transactional(t, f"init{version}", is_new=False)
        first = tx.init(version)
        tx.init(version)
        for timeout_ms in (0, -1, 1, 900_000, 900_001, 2**31 - 1):
            tx.init(version, timeout_ms=timeout_ms)
        if version < 3:
            continue
        current = tx.pair
        for given in (
            Pair(current.id, -1), Pair(-1, current.epoch), current, current, first,
            Pair(current.id, current.epoch + 5), Pair(current.id + 1_000_000, 0), Pair(-2, -2),
            Pair(current.id, 32767), Pair(0, 0), Pair(current.id, -5),
        ):  # fmt: skip
            tx.init(version, given=given)
        other = Transactional(t, f"never{version}", is_new=False)
        other.init(version, given=Pair(current.id, current.epoch))
        other.init(version, given=Pair(123_456_789, 7))
    for transactional_id in ("", "x" * 249, "x" * 5000, "ö", "a b", "a\0b"):
        tree = {"transactional_id": transactional_id, "transaction_timeout_ms": 1000}
        t.each("InitProducerId", {"producer_id": -1, "producer_epoch": -1, **tree})


@script
def txn_init_while_open(t: Talk) -> None:
    for is_new in flows(t):
        for given in (False, True):
            name = t.create_topic(f"open{is_new:d}{given:d}")
            tx = Transactional(t, f"open{is_new:d}{given:d}", is_new=is_new)
            old = tx.init()
            tx.add(name) if not is_new else None
            tx.produce(name, b"a")
            tx.describe()
            tx.init(given=old if given else NONE)
            tx.describe()
            read(t, name)
            describe_producers(t, (name, 0))
            tx.produce(name, b"z", pair=old, sequence=1)
            tx.produce(name, b"z", pair=old, sequence=1, version=10)
            tx.add(name, pair=old)
            tx.add(name, pair=old, version=1)
            tx.end(COMMIT, pair=old)
            tx.end(ABORT, pair=old)
            tx.end(COMMIT, pair=old, version=1)
            tx.add(name) if not is_new else None
            tx.produce(name, b"b")
            tx.end(COMMIT)
            tx.describe()
            read(t, name)


@script
def txn_two_clients_of_an_id(t: Talk) -> None:
    for is_new in flows(t):
        name = t.create_topic(f"two{is_new:d}")
        first = Transactional(t, f"two{is_new:d}", is_new=is_new)
        second = Transactional(t, f"two{is_new:d}", is_new=is_new)
        for _ in range(2):
            for tx in (first, second):
                tx.init()
                tx.add(name) if not is_new else None
                tx.produce(name, b"x")
        for tx in (first, second):
            tx.end(COMMIT)
            tx.describe()
        read(t, name)


# --- the table of EndTxn ------------------------------------------------------------------------------------


def brought_to(t: Talk, state: str, name: str, label: str, *, is_new: bool) -> Transactional:
    tx = Transactional(t, label, is_new=is_new)
    tx.init()
    if state != "Empty":
        tx.add(name) if not is_new else None
        tx.produce(name, b"v")
        if state != "Ongoing":
            tx.end(state == "CompleteCommit")
    return tx


@script
def txn_end(t: Talk) -> None:
    """Send EndTxn in every state, as commit and abort, with current, older and newer epochs, each twice."""
    number = 0
    name = t.create_topic("ends", 1)
    for is_new in flows(t):
        for version in (0, 1, 2, 4, 5) if is_new else (0, 1, 2, 3, 4):
            if version > t.latest("EndTxn"):
                continue
            for state in ("Empty", "Ongoing", "CompleteCommit", "CompleteAbort"):
                for shift in (0, -1, 1) if version in (1, 4, 5) else (0,):
                    for commit in (COMMIT, ABORT):
                        number += 1
                        tx = brought_to(t, state, name, f"end{number}", is_new=is_new)
                        asked = Pair(tx.pair.id, tx.pair.epoch + shift)
                        tx.end(commit, pair=asked, version=version)
                        tx.end(commit, pair=asked, version=version)
                        tx.end(not commit, pair=asked, version=version)
                        tx.describe()
    tx = Transactional(t, "strange", is_new=False)
    tx.init()
    for version in t.versions("EndTxn"):
        for pair in (
            Pair(tx.pair.id + 1_000_000, 0),
            Pair(-1, -1),
            Pair(tx.pair.id, -1),
            Pair(tx.pair.id, 32767),
        ):
            tx.end(COMMIT, pair=pair, version=version)
        tree = {"producer_id": tx.pair.id, "producer_epoch": tx.pair.epoch, "committed": True}
        for transactional_id in ("", t.name("unknown"), "ö"):
            t.ask("EndTxn", version, {**tree, "transactional_id": transactional_id})


@script
def txn_empty_aborts_raise_epochs(t: Talk) -> None:
    """Raise a producer's epoch with empty aborts, and send EndTxn with the old epochs too.

    The script does not raise the epoch to its maximum, where the producer id is replaced: that takes too
    long.
    """
    if t.latest("EndTxn") < 5:
        return
    name = t.create_topic("out")
    tx = Transactional(t, "out", is_new=True)
    tx.init()
    # An empty abort raises the epoch: markers are not needed. 32766 of them would take too long in this
    # place, so that the test of the broker does it by an id that is stored with a high epoch.
    for _ in range(5):
        before = tx.pair
        tx.end(ABORT)
        tx.end(ABORT, pair=before)
        tx.end(COMMIT, pair=before)
    tx.produce(name, b"a")
    tx.end(COMMIT)
    tx.describe()
    describe_producers(t, (name, 0))
    read(t, name)


# --- adding -------------------------------------------------------------------------------------------------


@script
def txn_add_partitions(t: Talk) -> None:
    name, other = t.create_topic("added", 3), t.create_topic("also", 2)
    missing = t.name("missing")
    for version in t.versions("AddPartitionsToTxn"):
        tx = Transactional(t, f"add{version}", is_new=False)
        tx.init()
        wrong_id, wrong_epoch = (
            Pair(tx.pair.id + 1_000_000, tx.pair.epoch),
            Pair(tx.pair.id, tx.pair.epoch + 1),
        )
        for verify in (True, False) if version >= 4 else (False,):

            def ask(
                *places: tuple[str, list[int]],
                pair: Pair = tx.pair,
                to: str = tx.id,
                version: int = version,
                verify: bool = verify,
            ) -> None:
                topics = [{"name": topic, "partitions": partitions} for topic, partitions in places]
                add_partitions(t, to, pair, topics, version, verify)

            ask((name, [0]))
            tx.describe()
            ask((name, [0]), (missing, [0]))
            ask((name, [1, 9]), (other, [0]))
            ask((name, [-1]))
            tx.describe()
            ask((name, [0]))
            ask((name, [0, 1]), (other, [1]))
            tx.describe()
            ask()
            ask((name, []))
            ask((name, [0, 0]))
            ask(("", [0]))
            ask(("a/b", [0]))
            ask(("__consumer_offsets", [0]))
            ask(("__transaction_state", [0]))
            ask((name, [0]), pair=wrong_id)
            ask((name, [0]), pair=wrong_epoch)
            ask((name, [0]), pair=NONE)
            ask((name, [0]), (missing, [0]), pair=wrong_epoch)
            ask((name, [0]), to=t.name("unknown"))
            ask((name, [0]), to="")
        tx.describe()
        tx.end(COMMIT)
        tx.describe()
        add_partitions(t, tx.id, tx.pair, [{"name": name, "partitions": [2]}], version)
        tx.end(ABORT)
    for version in t.versions("AddPartitionsToTxn"):
        if version < 4:
            continue
        first, second = (Transactional(t, f"both{version}{n}", is_new=False) for n in (1, 2))
        first.init(), second.init()
        topics = [{"name": name, "partitions": [0]}]
        for verify in (True, False):
            trees = [
                {"transactional_id": tx.id, "producer_id": tx.pair.id, "producer_epoch": tx.pair.epoch,
                 "verify_only": verify, "topics": topics}
                for tx in (first, second)
            ]  # fmt: skip
            trees.append({**trees[0], "transactional_id": t.name("nobody")})
            t.ask("AddPartitionsToTxn", version, {"transactions": trees})
        for tx in (first, second):
            tx.end(COMMIT)
    read(t, name)


@script
def txn_add_offsets(t: Talk) -> None:
    for version in t.versions("AddOffsetsToTxn"):
        tx = Transactional(t, f"offsets{version}", is_new=False)
        tx.init()
        tx.add_offsets(t.name("group"), version=version)
        tx.describe()
        tx.add_offsets(t.name("group"), version=version)
        tx.add_offsets("", version=version)
        tx.add_offsets(t.name("group"), version=version, pair=Pair(tx.pair.id, tx.pair.epoch + 1))
        tx.add_offsets(t.name("group"), version=version, pair=Pair(tx.pair.id + 1_000_000, 0))
        tree = {"producer_id": tx.pair.id, "producer_epoch": tx.pair.epoch, "group_id": t.name("group")}
        for transactional_id in ("", t.name("unknown")):
            t.ask("AddOffsetsToTxn", version, {**tree, "transactional_id": transactional_id})
        tx.end(COMMIT)


# --- producing ----------------------------------------------------------------------------------------------


@script
def txn_produce(t: Talk) -> None:
    """Send batches outside a transaction, out of sequence, repeated, from other producers, and mixed."""
    for version in {*t.some_versions("Produce"), 10, 11, 12}.intersection(t.versions("Produce")):
        is_new = version >= 12
        name = t.create_topic(f"p{version}", 2)
        tx = Transactional(t, f"p{version}", is_new=is_new)
        tx.init()
        produced: Any = {"version": version}
        tx.produce(name, b"not added", **produced, sequence=0)
        tx.describe()
        tx.end(ABORT)
        tx.init()
        tx.produce(name, b"gap", **produced, sequence=3)
        tx.describe()
        tx.add(name)
        tx.produce(name, b"gap", **produced, sequence=3)
        tx.produce(name, b"0", **produced)
        tx.produce(name, b"0 again", **produced, sequence=0)
        tx.produce(name, b"1", b"2", **produced)
        tx.produce(name, b"gap", **produced, sequence=7)
        tx.produce(name, b"plain", **produced, sequence=3, transactional=False)
        tx.produce(name, b"plain", **produced, sequence=3, transactional=False, transactional_id=None)
        tx.produce(name, b"no id", **produced, sequence=3, transactional_id=None)
        tx.produce(name, b"empty id", **produced, sequence=3, transactional_id="")
        tx.produce(name, b"other id", **produced, sequence=3, transactional_id=t.name("other"))
        if checks_epochs(t):
            tx.produce(name, b"epoch", **produced, sequence=0, pair=Pair(tx.pair.id, tx.pair.epoch + 1))
        tx.produce(
            name,
            b"epoch",
            **produced,
            sequence=0,
            pair=Pair(tx.pair.id, max(tx.pair.epoch - 1, 0)),
            partition=1,
        )
        tx.produce(
            name, b"foreign", **produced, sequence=0, pair=Pair(tx.pair.id + 1_000_000, 0), partition=1
        )
        tx.produce(name, b"acks", **produced, sequence=3, acks=1)
        tx.produce(name, b"after", **produced, sequence=4, partition=9)
        good = encode_batch(
            rows(b"two"),
            producer_id=tx.pair.id,
            producer_epoch=tx.pair.epoch,
            base_sequence=4,
            is_transactional=True,
        )
        for odd in (
            changed(good, 21, struct.pack(">h", 0x30)),  # a marker
            changed(good, 43, struct.pack(">qhi", tx.pair.id, tx.pair.epoch, -1)),
            changed(good, 43, struct.pack(">qhi", tx.pair.id, -1, 4)),
        ):
            produce(t, version, name, odd, transactional_id=tx.id)
        nobodys = changed(good, 43, struct.pack(">qhi", -1, -1, -1))
        produce(t, version, t.create_topic(f"odd{version}"), nobodys, transactional_id=tx.id)
        describe_producers(t, (name, 0), (name, 1))
        tx.end(COMMIT)
        tx.produce(name, b"late", **produced, sequence=4)
        tx.describe()
        tx.end(ABORT)
        read(t, name)
        read(t, name, partition=1)
        describe_producers(t, (name, 0), (name, 1))


@script
def txn_two_producers_in_a_request(t: Talk) -> None:
    name = t.create_topic("pair", 2)
    for version in t.some_versions("Produce"):
        is_new = version >= 12
        one, other = (Transactional(t, f"pair{version}{n}", is_new=is_new) for n in (1, 2))
        one.init(), other.init()
        if not is_new:
            one.add(name, partitions=(0, 1)), other.add(name, partitions=(0, 1))
        for kinds in (
            (True, True),
            (True, False),
            (False, True),
            (False, False),
            (True, None),
            (None, False),
        ):
            batches = []
            for tx, kind in zip((one, other), kinds, strict=True):
                pair = {"producer_id": tx.pair.id, "producer_epoch": tx.pair.epoch, "base_sequence": 0}
                numbers: Any = {} if kind is None else {**pair, "is_transactional": kind}
                batches.append(encode_batch(rows(b"%d" % version), **numbers))
            topic_id = t.topic_id(name) if version >= 13 else ZERO
            for transactional_id in (one.id, None):
                places = [{"index": index, "records": batch} for index, batch in enumerate(batches)]
                tree = {"acks": -1, "timeout_ms": 3000, "transactional_id": transactional_id}
                data = {"name": name, "topic_id": topic_id, "partition_data": places}
                t.ask("Produce", version, {**tree, "topic_data": [data]})
                if version < 3:
                    break
        # both in one partition
        produce(t, version, name, b"".join(batches), transactional_id=one.id)
        one.describe()
        one.end(ABORT), other.end(ABORT)
    read(t, name)
    read(t, name, partition=1)


# --- reading ------------------------------------------------------------------------------------------------


@script
def txn_reading(t: Talk) -> None:
    """Interleave three transactions, end them in another order, and fetch from every offset."""
    name = t.create_topic("read")
    for is_new in flows(t):
        three = [Transactional(t, f"r{is_new:d}{n}", is_new=is_new) for n in range(3)]
        for tx in three:
            tx.init()
            tx.add(name) if not is_new else None
            tx.produce(name, b"a", b"b")
        produce(t, t.latest("Produce"), name, encode_batch(rows(b"plain")))
        read(t, name)
        offsets(t, name)
        describe_producers(t, (name, 0))
        for tx, commit in ((three[2], ABORT), (three[1], COMMIT), (three[0], ABORT)):
            tx.end(commit)
            read(t, name)
            offsets(t, name)
        for offset in range(14):
            read(t, name, offset)
            read(t, name, offset, partition_max_bytes=1)
        tx = three[1]  # the same producer: aborted, committed, aborted
        for commit in (ABORT, COMMIT, ABORT):
            tx.add(name) if not is_new else None
            tx.produce(name, b"c", b"d")
            tx.end(commit)
        for version in t.versions("Fetch"):
            if version >= 4:
                read(t, name, version=version)
        offsets(t, name)
    fetch(t, t.latest("Fetch"), name, 0, isolation_level=2)
    fetch(t, t.latest("Fetch"), name, 10_000, isolation_level=1)


@script
def txn_long_poll(t: Talk) -> None:
    """Send a waiting `read_committed` fetch, and commit or abort a transaction meanwhile."""
    for is_new in flows(t):
        name = t.create_topic(f"poll{is_new:d}")
        tx = Transactional(t, f"poll{is_new:d}", is_new=is_new)
        tx.init()
        for commit in (COMMIT, ABORT):
            place = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
            tree = {
                "replica_id": -1,
                "max_wait_ms": 3000,
                "min_bytes": 1,
                "max_bytes": 1 << 25,
                "session_epoch": -1,
            }
            topics = [{"topic": name, "topic_id": t.topic_id(name), "partitions": [place]}]
            tx.add(name) if not is_new else None
            tx.produce(name, b"x")
            t.send(
                "Fetch", t.latest("Fetch"), {**tree, "isolation_level": 1, "topics": topics}, on=1
            ) if commit else None
            tx.end(commit)
            t.receive(on=1) if commit else None
            read(t, name)


@script
def txn_deleted_records(t: Talk) -> None:
    for is_new in flows(t):
        name = t.create_topic(f"del{is_new:d}")
        tx = Transactional(t, f"del{is_new:d}", is_new=is_new)
        tx.init()
        tx.add(name) if not is_new else None
        for value in (b"a", b"b", b"c"):
            tx.produce(name, value)
        for offset in (1, 2, -1):
            place = {"partition_index": 0, "offset": offset}
            tree = {"topics": [{"name": name, "partitions": [place]}], "timeout_ms": 3000}
            t.ask("DeleteRecords", t.latest("DeleteRecords"), tree)
            read(t, name, max(offset, 0) or 3)
            describe_producers(t, (name, 0))
        tx.end(ABORT)
        read(t, name, 3)
        produce(t, t.latest("Produce"), name, encode_batch(rows(b"plain")))
        read(t, name, 3)
        offsets(t, name)


@script
def txn_deleted_topic(t: Talk) -> None:
    for is_new in flows(t):
        name, kept = t.create_topic(f"gone{is_new:d}"), t.create_topic(f"kept{is_new:d}")
        tx = Transactional(t, f"gone{is_new:d}", is_new=is_new)
        tx.init()
        tx.add(name, kept) if not is_new else None
        tx.produce(name, b"a")
        tx.produce(kept, b"a")
        t.ask("DeleteTopics", 5, {"topic_names": [name], "timeout_ms": 5000})
        time.sleep(t._settle_s)
        tx.end(COMMIT)
        tx.describe()
        read(t, kept)


# --- offsets ------------------------------------------------------------------------------------------------


@script
def txn_offsets(t: Talk) -> None:
    name = t.create_topic("source", 2)
    for version in t.versions("TxnOffsetCommit"):
        is_new = version >= 5
        tx = Transactional(t, f"o{version}", is_new=is_new)
        group = t.name(f"group{version}")
        group_ready(t, group)
        tx.init()
        at: Any = {"version": version}
        tx.commit_offset(group, name, 5, **at)  # not added
        tx.describe()
        tx.end(ABORT)
        tx.init()
        tx.add_offsets(group)
        tx.commit_offset(group, name, 10, **at)
        tx.commit_offset(group, name, 11, **at, partition=1)
        committed(t, group, name)
        committed(t, group, name, some=False)
        tx.commit_offset(group, t.name("missing"), 10, **at)
        tx.commit_offset(group, name, 10, **at, partition=9)
        tx.commit_offset("", name, 10, **at)
        tx.commit_offset(group, name, -1, **at)
        tx.commit_offset(group, name, -5, **at)
        tx.commit_offset(group, name, 12, **at, metadata=None)
        tx.commit_offset(group, name, 13, **at, metadata="m" * 5000)
        if checks_epochs(t):
            tx.commit_offset(group, name, 14, **at, pair=Pair(tx.pair.id, tx.pair.epoch + 1))
        tx.commit_offset(group, name, 14, **at, pair=Pair(tx.pair.id, max(tx.pair.epoch - 1, 0)))
        tx.commit_offset(group, name, 14, **at, pair=Pair(tx.pair.id + 1_000_000, 0))
        tx.commit_offset(group, name, 14, **at, pair=NONE)
        for transactional_id in ("", t.name("unknown")):
            tx.commit_offset(group, name, 14, **at, transactional_id=transactional_id)
        for who in (
            (
                {"generation_id_or_member_epoch": 5},
                {"member_id": "nobody"},
                {"member_id": "nobody", "generation_id_or_member_epoch": 1},
                {"group_instance_id": "nobody"},
                {"group_instance_id": "nobody", "member_id": "nobody", "generation_id_or_member_epoch": 1},
            )
            if version >= 3
            else ()
        ):
            tx.commit_offset(group, name, 14, **at, **who)
            tx.commit_offset(t.name(f"none{version}"), name, 14, **at, **who)
        t.ask("TxnOffsetCommit", version, {
            "transactional_id": tx.id, "producer_id": tx.pair.id, "producer_epoch": tx.pair.epoch,
            "group_id": group, "topics": [], "member_id": "",
        })  # fmt: skip
        tx.describe()
        tx.end(COMMIT)
        committed(t, group, name)
        # aborted, and overtaken by a plain commit
        tx.add_offsets(group) if not is_new else None
        tx.commit_offset(group, name, 20, **at)
        tx.end(ABORT)
        committed(t, group, name)
        tx.add_offsets(group) if not is_new else None
        tx.commit_offset(group, name, 30, **at)
        plain(t, group, name, 40)
        committed(t, group, name)
        tx.end(COMMIT)
        committed(t, group, name)
        tx.add_offsets(group) if not is_new else None
        tx.commit_offset(group, name, 50, **at)
        t.ask("DeleteGroups", 2, {"groups_names": [group]})
        committed(t, group, name)
        tx.end(COMMIT)
        committed(t, group, name)
        tx.add_offsets(group) if not is_new else None
        tx.commit_offset(group, name, 60, **at)
        place = [{"partition_index": 0}]
        t.ask("OffsetDelete", 0, {"group_id": group, "topics": [{"name": name, "partitions": place}]})
        tx.end(COMMIT)
        committed(t, group, name)


def plain(t: Talk, group: str, name: str, offset: int) -> None:
    place = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    tree = {"group_id": group, "member_id": "", "generation_id_or_member_epoch": -1}
    t.ask("OffsetCommit", 8, {**tree, "topics": [{"name": name, "partitions": [place]}]})


def group_ready(t: Talk, group: str) -> None:
    """Wait until the coordinator of a group answers without a loading error."""
    for _ in range(WAITS_MAX):
        found = t.ask_quietly("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [group]})
        if all(each["error_code"] == 0 for each in found["coordinators"]):
            answer = t.ask_quietly("DescribeGroups", 5, {"groups": [group]})
            if all(each["error_code"] not in LOADING for each in answer["groups"]):
                return
        time.sleep(0.02)


@script
def txn_offsets_of_members(t: Talk) -> None:
    """Send TxnOffsetCommit for a group with a member, with various generations, members and instances."""
    name = t.create_topic("fenced")
    for version in (3, 4, 5):
        if version > t.latest("TxnOffsetCommit"):
            continue
        group = t.name(f"members{version}")
        group_ready(t, group)
        tree: Any = {"group_id": group, "session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000}
        tree |= {"member_id": "", "group_instance_id": "i", "protocol_type": "consumer"}
        tree["protocols"] = [{"name": "range", "metadata": b""}]
        member = t.ask("JoinGroup", 5, tree)["member_id"]
        tx = Transactional(t, f"m{version}", is_new=version >= 5)
        tx.init()
        tx.add_offsets(group) if version < 5 else None
        for _ in range(2):
            for generation, who, instance in (
                (1, member, "i"), (1, member, None), (1, "", None), (0, member, None), (2, member, None),
                (1, "other", None), (1, "other", "i"), (1, member, "j"), (-1, "", None), (-1, member, None),
                (1, "", "i"),
            ):  # fmt: skip
                tx.commit_offset(
                    group, name, 5, version=version, member_id=who,
                    generation_id_or_member_epoch=generation, group_instance_id=instance,
                )  # fmt: skip
            synced = {"group_id": group, "generation_id": 1, "member_id": member, "group_instance_id": "i"}
            shares = [{"member_id": member, "assignment": b"all"}]
            t.ask("SyncGroup", 3, {**synced, "assignments": shares})
        tx.end(COMMIT)
        committed(t, group, name)
        t.ask(
            "LeaveGroup", 3, {"group_id": group, "members": [{"member_id": member, "group_instance_id": "i"}]}
        )


# --- markers and administration -----------------------------------------------------------------------------


@script
def txn_markers(t: Talk) -> None:
    for version in t.versions("WriteTxnMarkers"):
        for flow in (0, 1, 2) if version >= 2 else (0,):
            name = t.create_topic(f"mark{version}{flow}", 2)
            is_new = t.latest("EndTxn") >= 5 and version >= 1
            tx = Transactional(t, f"mark{version}{flow}", is_new=is_new)
            tx.init(), tx.init()
            tx.add(name) if not is_new else None
            tx.produce(name, b"a")

            def mark(
                *places: tuple[str, int], shift: int = 0, coordinator: int = 0, commit: bool = ABORT,
                of: int = 0, tx: Transactional = tx, version: int = version, flow: int = flow,
            ) -> None:  # fmt: skip
                topics = by_topic(places)
                marker = {"producer_id": tx.pair.id + of, "producer_epoch": tx.pair.epoch + shift}
                marker |= {"transaction_result": commit, "topics": topics, "coordinator_epoch": coordinator}
                t.ask("WriteTxnMarkers", version, {"markers": [{**marker, "transaction_version": flow}]})

            mark((name, 0), shift=-1)
            mark((name, 0), (name, 9), (t.name("missing"), 0), shift=-1)
            mark((name, 0))
            describe_producers(t, (name, 0))
            mark((name, 0))
            mark((name, 0), coordinator=5, shift=1)
            mark((name, 0), coordinator=4, shift=1)
            mark((name, 0), coordinator=-1, shift=1)
            mark((name, 0), shift=1, coordinator=5, commit=COMMIT)
            mark((name, 1), of=1_000_000)
            mark((t.name("missing"), 0))
            describe_producers(t, (name, 0), (name, 1))
            tx.describe()
            read(t, name)
            read(t, name, partition=1)
        t.ask("WriteTxnMarkers", version, {"markers": []})


@script
def txn_hanging(t: Talk) -> None:
    """Abort a transaction in a partition with WriteTxnMarkers, then continue the transaction."""
    for is_new in flows(t):
        name = t.create_topic(f"hang{is_new:d}")
        tx = Transactional(t, f"hang{is_new:d}", is_new=is_new)
        tx.init()
        tx.add(name) if not is_new else None
        tx.produce(name, b"a")
        marker = {"producer_id": tx.pair.id, "producer_epoch": tx.pair.epoch, "transaction_result": ABORT}
        marker |= {"topics": [{"name": name, "partition_indexes": [0]}], "coordinator_epoch": 0}
        t.ask("WriteTxnMarkers", t.latest("WriteTxnMarkers"), {"markers": [marker]})
        tx.describe()
        read(t, name)
        tx.produce(name, b"b")
        describe_producers(t, (name, 0))
        tx.end(COMMIT)
        tx.describe()
        read(t, name)


@script
def txn_describing(t: Talk) -> None:
    name = t.create_topic("seen", 2)
    made = {}
    for state in ("Empty", "Ongoing", "CompleteCommit", "CompleteAbort"):
        made[state] = brought_to(t, state, name, f"d-{state}", is_new=False)
    ids = [tx.id for tx in made.values()]
    for asked in (ids, [*ids, t.name("unknown"), ""], [], ["ö"]):
        t.ask("DescribeTransactions", 0, {"transactional_ids": asked})
    describe_producers(t, (name, 0), (name, 1), (name, 9), (t.name("missing"), 0))
    describe_producers(t, ("a/b", 0))
    t.ask("DescribeProducers", 0, {"topics": []})
    pids = [tx.pair.id for tx in made.values()]
    everything: Any = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
    pattern = t.name("d-.*")
    for version in t.versions("ListTransactions"):
        for more in (
            {"producer_id_filters": pids},
            {"producer_id_filters": pids[:1]},
            {"producer_id_filters": [*pids, pids[0], 987_654_321, -1]},
            {"producer_id_filters": pids, "state_filters": ["Ongoing"]},
            {"producer_id_filters": pids, "state_filters": ["ongoing", "CompleteAbort", "Nonsense", ""]},
            {"producer_id_filters": pids, "state_filters": list(STATES)},
            {"producer_id_filters": pids, "duration_filter": 0},
            {"producer_id_filters": pids, "duration_filter": 1_000_000},
            {"producer_id_filters": pids, "duration_filter": -2},
            {"producer_id_filters": pids, "transactional_id_pattern": pattern},
            {"producer_id_filters": pids, "transactional_id_pattern": ""},
            {"producer_id_filters": pids, "transactional_id_pattern": t.name("d-E")},
            {"producer_id_filters": pids, "transactional_id_pattern": "(?i).*D-EMPTY"},
            {"producer_id_filters": pids, "transactional_id_pattern": ".*-d-(Empty|Ongoing)"},
            {"producer_id_filters": pids, "transactional_id_pattern": "["},
            {"producer_id_filters": pids, "transactional_id_pattern": "a**"},
            {"producer_id_filters": pids, "transactional_id_pattern": "(?=a)"},
            {"producer_id_filters": pids, "transactional_id_pattern": "(a)\\1"},
            {"producer_id_filters": pids, "transactional_id_pattern": "\\p{L}+"},
        ):
            if "transactional_id_pattern" in more and version < 2:
                continue
            t.ask("ListTransactions", version, {**everything, **more})


@script
def txn_timeouts(t: Talk) -> None:
    """Send requests of a transaction after the broker has aborted it because of its timeout."""
    for is_new in flows(t):
        for case in range(4):
            name = t.create_topic(f"late{is_new:d}{case}")
            tx = Transactional(t, f"late{is_new:d}{case}", is_new=is_new)
            tx.init(timeout_ms=100)
            tx.add(name) if not is_new else None
            tx.produce(name, b"a")
            for _ in range(WAITS_MAX):
                tree = {"transactional_ids": [tx.id]}
                [found] = t.ask_quietly("DescribeTransactions", 0, tree)["transaction_states"]
                if found["transaction_state"] == "CompleteAbort":
                    break
                time.sleep(0.02)
            tx.describe()
            old = tx.pair
            if case == 0:
                tx.produce(name, b"b")
                tx.add(name)
                tx.end(COMMIT, pair=old)
                tx.end(ABORT, pair=old)
            elif case == 1:
                tx.end(ABORT)
                tx.produce(name, b"b")
                tx.end(ABORT)
            elif case == 2:
                tx.init(given=old)
            else:
                tx.init()
            tx.describe()
            read(t, name)
            describe_producers(t, (name, 0))
