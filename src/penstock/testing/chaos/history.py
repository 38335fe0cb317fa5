"""`History`: what an application did, recorded by any client, and whether that is what it promises.

    history = History()
    history.flow("orders", "bills", group="billing", of=lambda record: record.key)
    history.attach(broker)
    with history.watching():  # Penstock's own clients
        run_the_application(broker.bootstrap_servers)
    history.check(exactly_once=True)

An application with another client needs no hooks: an attached broker records when offsets come into effect,
and its logs are read at the end. `History.record` takes the rest by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError
from penstock.model import TopicPartition
from penstock.testing.chaos.events import (
    Event,
    Flow,
    flow_of,
)
from penstock.testing.chaos.evidence import Evidence, Log
from penstock.testing.chaos.findings import Finding, HistoryError, by_gravity
from penstock.testing.chaos.poll_rules import poll_findings
from penstock.testing.chaos.recorder import Recorder
from penstock.testing.chaos.work_rules import work_findings
from penstock.testing.chaos.write_rules import write_findings

if TYPE_CHECKING:
    from penstock.broker.broker import KafkaBroker
    from penstock.broker.cluster import KafkaCluster


class History:
    """What one application did. Events are numbered in the order in which they come."""

    def __init__(self) -> None:
        self.record = Recorder()
        """Records by hand what is not recorded by itself: `sent`, `polled`, `moved`, `committed` ..."""
        self.logs: dict[TopicPartition, Log] = {}
        """The logs at the end: read from the attached broker, or given by hand."""
        self.flows: list[Flow] = []
        self._served: list[tuple[KafkaBroker | KafkaCluster, Callable[[], None]]] = []

    def __repr__(self) -> str:
        return f"<History: {self.record.size} events, {len(self.flows)} flows>"

    # --- what the application is for -----------------------------------------------------------------------

    def flow(
        self,
        source: str,
        sink: str | Iterable[str] | None = None,
        *,
        group: str | None = None,
        of: Callable[[Any], object] | None = None,
        sink_of: Callable[[Any], object] | None = None,
    ) -> None:
        """Say that the application works on all records of topic `source`, and writes to `sink`.

        `sink` is one topic or several; without one, work is what `work` records. `group` commits the offsets
        of the source; None stands for every group. `of` returns what identifies a record, in the source and
        in the sink, where `sink_of` is not another function: by default the key, or the value of a record
        without key. A record for which it returns None does not concern the flow.

        Raises:
            ConfigError: a topic is no text, or an identity no function.
        """
        self.flows.append(flow_of(source, sink, group, of, sink_of))

    # --- what it did -------------------------------------------------------------------------------------

    @property
    def events(self) -> list[Event]:
        """What was recorded so far, in order."""
        return self.record.events

    def work(self, record: Any) -> None:
        """Record that the work on a record is done. `record` has topic, partition and offset."""
        self.record.work(record)

    # --- where it comes from -----------------------------------------------------------------------------

    def attach(self, broker: KafkaBroker | KafkaCluster) -> None:
        """Record when offsets come into effect at a broker or cluster, and read its logs for the check.

        Raises:
            ConfigError: it is no `KafkaBroker` and no `KafkaCluster`.
        """
        from penstock.testing.chaos.effects import observe
        from penstock.testing.chaos.reading import end_of

        self._served.append((broker, observe(broker, self.record)))
        self.record.end_of = lambda tp: end_of([served for served, _ in self._served], tp)

    def detach(self) -> None:
        """Record nothing more of the brokers that are attached, and leave the logs as they were read last."""
        served, self._served = self._served, []
        for _, remove in served:
            remove()

    def watching(self) -> AbstractContextManager[None]:
        """Record what every client of Penstock in this process does, for the length of a block.

        Rows only: `send_arrow`, `poll_arrow` and `poll_part` are not recorded.
        """
        from penstock.testing.chaos.watching import watching

        return watching(self.record)

    def read(self) -> None:
        """Read the logs of what is attached and runs, in place of what was read before."""
        from penstock.testing.chaos.reading import read_logs

        for served, _ in self._served:
            self.logs.update(read_logs(served))

    # --- what it is worth ----------------------------------------------------------------------------------

    def findings(
        self,
        *,
        at_least_once: bool = True,
        exactly_once: bool = False,
        ordered: bool = False,
        writes_once: bool | None = None,
    ) -> list[Finding]:
        """Return what is wrong, the gravest first; nothing for an application that does what it promises.

        `at_least_once` is that no record is without work, and no offset committed ahead of it;
        `exactly_once` that there is no work twice either, and that offsets of transactional work are in its
        transaction. `ordered` is that work is done in the order of a partition's records. `writes_once` is
        that no send is stored twice, by default as `exactly_once`. Lost, aborted and inconsistent records are
        wrong in any case. Logs of what is attached are read first.

        Raises:
            ConfigError: the source of a flow is a topic that does not exist, so that nothing could be found.
        """
        self.read()
        topics = {tp.topic for tp in self.logs}
        for flow in self.flows:
            if flow.source not in topics:
                raise ConfigError(
                    f"there is no log of topic {flow.source!r}: create it, and attach the broker"
                    f"{did_you_mean(flow.source, topics)}"
                )
        evidence = Evidence(list(self.events), self.logs, self.flows)
        once = exactly_once if writes_once is None else writes_once
        return by_gravity([*self._apply(evidence, at_least_once, exactly_once, ordered, once)])

    def _apply(
        self, evidence: Evidence, at_least_once: bool, exactly_once: bool, ordered: bool, once: bool
    ) -> Iterator[Finding]:
        yield from write_findings(evidence, writes_once=once)
        yield from poll_findings(evidence)
        yield from work_findings(
            evidence, at_least_once=at_least_once, exactly_once=exactly_once, ordered=ordered
        )

    def check(
        self,
        *,
        at_least_once: bool = True,
        exactly_once: bool = False,
        ordered: bool = False,
        writes_once: bool | None = None,
    ) -> None:
        """Raise what `findings` returns.

        Raises:
            HistoryError: an AssertionError with the findings, and the records and offsets that show them.
            ConfigError: the source of a flow is a topic that does not exist.
        """
        __tracebackhide__ = True  # of pytest: the findings are what matters
        found = self.findings(
            at_least_once=at_least_once, exactly_once=exactly_once, ordered=ordered, writes_once=writes_once
        )
        if found:
            raise HistoryError(found)
