"""Wait functions and strategies of `testcontainers.core`, for machines without that package."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Self, TypeVar

from penstock.testing.containers.wrapped import ContainerError

F = TypeVar("F", bound=Callable[..., Any])

ContainerStartException = ContainerConnectException = ContainerError


class TestcontainersConfiguration:
    """The options of Testcontainers. The options can be set, but have no effect."""

    __test__ = False
    timeout = 120
    sleep_time = 1
    max_tries = 120
    ryuk_disabled = True


testcontainers_config = TestcontainersConfiguration()


def wait_for_logs(
    container: Any, predicate: Any, timeout: float = 120, interval: float = 1, *more: Any, **options: Any
) -> float:
    """Return 0.0 (seconds waited) if the logs match; logs are complete once a container has started.

    Raises:
        TimeoutError: the logs do not match.
    """
    if isinstance(predicate, WaitStrategy):
        predicate.wait_until_ready(container)
        return 0.0
    matches = predicate if callable(predicate) else re.compile(predicate, re.MULTILINE).search
    output, errors = (text.decode() for text in container.get_logs())
    if not (matches(output) or matches(errors)):
        raise TimeoutError(
            f"the log of the container, which is complete, does not match {predicate!r}: {output}"
        )
    return 0.0


def wait_container_is_ready(*transient_exceptions: type[BaseException]) -> Callable[[F], F]:
    """Return a decorator that returns its function unchanged, since a started broker is ready."""
    return lambda function: function


def wait_for(condition: Callable[[], Any]) -> bool:
    """Return the result of `condition` as a bool, without waiting."""
    return bool(condition())


class WaitStrategy:
    """A wait strategy that considers every started container ready."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.arguments = arguments

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("with_", "for_", "using_")):
            return lambda *arguments, **options: self
        raise AttributeError(f"{type(self).__name__} has no {name!r} without the package testcontainers")

    def wait_until_ready(self, container: Any) -> None:
        """Return at once, since `start` returns only when clients can connect."""

    def with_startup_timeout(self, timeout: Any) -> Self:
        return self


class LogMessageWaitStrategy(WaitStrategy):
    """A wait strategy that checks the log for a message."""

    def wait_until_ready(self, container: Any) -> None:
        """Return if the log has the message.

        Raises:
            TimeoutError: the log does not have the message.
        """
        wait_for_logs(container, getattr(self.arguments[0], "pattern", self.arguments[0]))


class PortWaitStrategy(WaitStrategy):
    """A wait strategy for an open port, which returns at once."""


class HttpWaitStrategy(WaitStrategy):
    """A wait strategy for an HTTP response, which returns at once."""


class HealthcheckWaitStrategy(WaitStrategy):
    """A wait strategy for a health check of the image, which returns at once."""
