"""A thread for work that would hold up the event loop, which answers the request afterwards.

Decompressing and checking records is such work. A handler first tries with a small budget (`inline_budget`).
If the budget is not enough, the handler copies the bytes, passes the work to `answer_later`, and returns the
resulting `Wait`. There is one thread, so that one request at a time takes the memory of its budget. Requests
of one connection keep their order, since a connection has one in progress at a time.

The thread pauses every millisecond or so, so that the event loop can run: Python runs one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock.broker.context import Parts
from penstock.broker.requests.purgatory import Wait
from penstock.records.compression.codecs import UnpackBudget

if TYPE_CHECKING:
    from penstock.broker.context import Context
    from penstock.broker.requests.purgatory import Purgatory
    from penstock.records.compression.codecs import UnpackLimits

INLINE_BYTES = 256 << 10
"""The maximum bytes that one request may decompress on the event loop: about a millisecond."""

INLINE_RECORDS = 2_000
"""The maximum number of decompressed records that one request may read on the event loop: some
milliseconds.
"""

QUEUED_BYTES_MAX = 32 << 20
"""The maximum bytes of requests that wait for the thread. Beyond that, requests get a retriable error."""

PATIENCE_S = 3600
"""The seconds that a request may wait for the thread: longer than any work takes."""


E = TypeVar("E", bound=BaseException)


def to_be_raised_later(error: E) -> E:
    """Remove traceback, context and cause of an exception, and return it.

    The frames of a traceback refer to decompressed data, and often to the object that refers to the
    exception. Such a reference cycle keeps hundreds of megabytes in memory until the garbage collector runs,
    which may take long.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


class SideJob:
    """Work for the side thread. A request that waits for it has this object as its key in the purgatory."""

    __slots__ = ("failure", "size_bytes", "work")

    def __init__(self, work: Callable[[], None], size_bytes: int) -> None:
        self.work = work
        self.size_bytes = size_bytes
        self.failure: BaseException | None = None


class SideThread:
    """The thread of one broker for long work. It starts with the first job."""

    def __init__(self, purgatory: Purgatory, call: Callable[[Callable[[], None]], object]) -> None:
        """Prepare the thread. `call` schedules a function in the broker's own thread, from any thread."""
        from concurrent.futures import ThreadPoolExecutor  # few brokers have such work

        self._purgatory = purgatory
        self._call = call
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-unpack")
        self.queued_bytes = 0
        self._has_worked = False

    def has_room(self, size_bytes: int) -> bool:
        """Return True if another job with `size_bytes` may wait. A single job may have any size."""
        return not self.queued_bytes or self.queued_bytes + size_bytes <= QUEUED_BYTES_MAX

    def begin(self, work: Callable[[], None], size_bytes: int) -> SideJob:
        """Run `work` in the thread; return the job. `size_bytes` count as waiting until it is done."""
        job = SideJob(work, size_bytes)
        self._has_worked = True
        self.queued_bytes += size_bytes
        self._thread.submit(self._run, job)
        return job

    def release_memory(self) -> None:
        """Release memory that earlier jobs have freed to the operating system. Called once a second."""
        if self._has_worked and not self.queued_bytes:
            self._has_worked = False
            self._thread.submit(_trim_heap)

    def _run(self, job: SideJob) -> None:
        try:
            job.work()
        except BaseException as error:
            # Raised again in the broker's thread, where the connection's barrier stops it.
            job.failure = error
        try:
            self._call(partial(self._done, job))
        except RuntimeError:
            return  # the broker has stopped

    def _done(self, job: SideJob) -> None:
        self.queued_bytes -= job.size_bytes
        self._purgatory.notify(job)

    def close(self) -> None:
        """Cancel the jobs that have not begun; the thread ends after the job in progress."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class UsesSideThread(Parts, Protocol):
    """The attributes of a broker that `full_budget` and `answer_later` use."""

    unpack_limits: UnpackLimits

    def side_thread(self) -> SideThread | None: ...


def inline_budget(context: Context[Parts]) -> UnpackBudget:
    """Return the budget for decompression on the event loop by the request in progress.

    All partitions of the request share the budget, and so do requests that arrived together.
    """
    known = context.inline
    if known is None or known[0] != context.arrived:
        known = context.inline = context.arrived, UnpackBudget(INLINE_BYTES, INLINE_RECORDS)
    return known[1]


def full_budget(context: Context[UsesSideThread]) -> UnpackBudget:
    """Return the budget for decompression in the thread by one request.

    Its limits are `penstock.unpack.max.bytes` and `penstock.unpack.max.records`.
    """
    from penstock.common.threads import pause

    node = context.node
    return UnpackBudget(*node.unpack_limits, pause)


def answer_later(
    context: Context[UsesSideThread], work: Callable[[], None], size_bytes: int, answer: Callable[[], Any]
) -> Any:
    """Run `work` in the thread, then answer the request with the result of `answer`.

    `answer` runs in the broker's thread and may start more work. In a node without a server, there is no
    thread: `work` and `answer` run at once. If `work` raises an exception, it is raised again and `answer` is
    not called.
    """
    thread = context.node.side_thread()
    if thread is None:
        work()
        return answer()
    job = thread.begin(work, size_bytes)

    def finish() -> Any:
        failure, job.failure = job.failure, None
        if failure is not None:
            raise failure
        return answer()

    return Wait([job], context.now + PATIENCE_S, 1, finish)


def _trim_heap() -> None:
    """Release free pages of the heap to the operating system, if the C library can (glibc).

    glibc keeps freed blocks of up to 32 MiB for the next allocation of their size: without this call, memory
    that decompression used once would stay with the broker permanently.
    """
    import ctypes  # few brokers ever unpack that much

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
