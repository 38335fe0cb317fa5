"""The base class of the blocking clients: calls on the background loop, and a check for forked processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.client.background_loop import run
from penstock.common.operating_system import after_fork_in_child
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.client.cluster.instance_id import HasInstanceId

T = TypeVar("T")
S = TypeVar("S", bound="Blocking")


class Blocking(ABC):
    """Base class of the blocking clients.

    Each call runs a coroutine on the background loop. A forked child process must make a client of its own.
    """

    _this_process = object()
    """An object that is replaced in each forked child, so that clients can detect the fork. The comparison is
    made for every record that is sent; `os.getpid()` would cost a tenth of a send."""

    def __init__(self) -> None:
        self._process = Blocking._this_process
        self._is_closed = False

    def __enter__(self: S) -> S:
        self._start()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: object, traceback: object) -> None:
        self.close()

    def __repr__(self) -> str:
        # What the asyncio client says of itself, under the name of this class.
        return repr(self._twin()).replace(f"<{type(self._twin()).__name__} ", f"<{type(self).__name__} ", 1)

    def client_instance_id(self, timeout: float | None = None) -> str:
        """Return the client instance id that a broker has assigned for this client's metrics (KIP-714).

        The id is text, as Kafka prints ids. The call waits for `timeout` seconds at most, by default 30.

        Raises:
            ConfigError: ``enable.metrics.push`` is false.
            UnsupportedVersionError: the broker that was asked for metadata accepts no metrics.
            NetworkError, RequestTimeoutError: no broker answers, or not in time.
        """
        return self._run(self._twin().client_instance_id(timeout))

    @abstractmethod
    def _twin(self) -> HasInstanceId:
        """Return the asyncio client that does the work of this blocking client."""

    @abstractmethod
    def _start(self) -> None:
        """Start the client when a `with` block is entered."""

    @abstractmethod
    def close(self) -> None:
        """Finish pending work, and close the connections."""

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._process is not Blocking._this_process:
            coroutine.close()
            raise PenstockError(
                f"this {type(self).__name__} was made before the process forked, and its connections stayed "
                "with the parent: make a new one in the child"
            )
        return run(coroutine)


def _in_new_process() -> None:
    Blocking._this_process = object()


after_fork_in_child(_in_new_process)
