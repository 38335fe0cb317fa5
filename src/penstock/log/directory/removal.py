"""Remove the directories of deleted partitions: a few immediately, many in a thread.

Deleting a topic renames the directories of its partitions; their files may be removed at any time after that.
One directory takes a fraction of a millisecond, but one request may delete thousands, and a file of gigabytes
takes longer. So the caller's thread spends a limited part of every second on removals, and another thread
removes all other directories. Directories left by a stop or a crash are removed after the next start.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.log.directory.files import remove_file, storage

logger = logger_named("penstock.log")

PERIOD_S = 1.0

INLINE_S = 0.02
"""The seconds in each second that the caller's thread may spend on removals; the last removal may exceed
the limit.
"""


class Remover:
    """Removes directories of deleted partitions of one data directory. Its methods are for one thread."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._period_began = 0.0
        self._spent_s = 0.0
        self._waiting: deque[str] = deque()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._left: deque[str] = deque()
        """Directories whose removal has failed; `retry` tries again."""

    def remove(self, path: str) -> None:
        """Remove a directory with all its contents, immediately or, if there are many, soon in a thread.

        Raises:
            StorageError: the immediate removal fails; `retry` tries again.
        """
        began = self._monotonic()
        if not 0 <= began - self._period_began < PERIOD_S:
            self._period_began, self._spent_s = began, 0.0
        if self._spent_s < INLINE_S and not self._waiting:
            try:
                remove_directory(path)
            except StorageError:
                self._left.append(path)
                raise
            finally:
                self._spent_s += self._monotonic() - began
            return
        self._waiting.append(path)
        self._begin()

    def retry(self) -> None:
        """Try again, in the thread, to remove the directories that could not be removed."""
        while self._left:
            self._waiting.append(self._left.popleft())
        if self._waiting:
            self._begin()

    def _begin(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="penstock-remover", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until the thread has removed all directories."""
        while self._waiting or (self._thread is not None and self._thread.is_alive()):
            if self._thread is not None:
                self._thread.join()
            if self._waiting:  # came when the thread had just ended
                self._run()

    def stop(self) -> None:
        """Stop after the file that is being removed now, even if directories are left.

        These keep their names (with `-delete`), so that the next start finds them.
        """
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        """Remove the queued directories; leave failed removals to `retry` or the next start."""
        while self._waiting and not self._stopping.is_set():
            path = self._waiting.popleft()
            try:
                remove_directory(path, self._stopping.is_set)
            except StorageError as error:
                self._left.append(path)
                logger.warning("%s; it is tried again later, or at the next start", error)
            except Exception:
                logger.exception("removing %s failed; it is tried again at the next start", path)


def remove_directory(path: str, is_enough: Callable[[], bool] = lambda: False) -> bool:
    """Remove a directory with all its contents; return True if it was removed completely.

    `is_enough` is called before each file. When it returns True, the removal stops.

    Raises:
        StorageError: a file in it cannot be removed.
    """
    for child in _children(path):
        if is_enough():
            return False
        if not child.is_dir(follow_symlinks=False):
            remove_file(child.path)
        elif not remove_directory(child.path, is_enough):
            return False
    with storage("delete", path):
        os.rmdir(path)
    return True


def _children(path: str) -> Iterator[os.DirEntry[str]]:
    with storage("read", path), os.scandir(path) as found:
        yield from list(found)
