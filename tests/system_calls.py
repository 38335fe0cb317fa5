"""The file system calls that tests watch or make fail, and the modules in which to patch them."""

from __future__ import annotations

import builtins
import errno
import gc
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from penstock.common import operating_system
from penstock.log.directory import files


def owner_of(name: str) -> ModuleType:
    """Return the module through which Penstock makes a call.

    It is Penstock's own module for calls that some systems lack, otherwise `os`.
    """
    return operating_system if hasattr(operating_system, name) else os


CALLS = (
    "open", "write", "pwrite", "pread", "fsync", "fdatasync", "ftruncate", "fstat", "stat", "utime",
    "mkdir", "rmdir", "unlink", "rename", "replace", "listdir", "scandir",
)  # fmt: skip


class Refusals:
    """A counter of file system calls, which makes some of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.first = self.last = -1
        self.number = errno.ENOSPC
        for name in CALLS:
            owner = owner_of(name)
            # What a device keeps is `test_power_cut`'s: waiting for it here would only take time.
            call = (lambda fd: None) if name in ("fsync", "fdatasync") else getattr(owner, name)
            monkeypatch.setattr(owner, name, self._counted(call))
        monkeypatch.setattr(builtins, "open", self._counted(builtins.open))
        monkeypatch.setattr(files.OpenFile, "__init__", self._counted(files.OpenFile.__init__))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.first <= self.count <= self.last:
                raise OSError(self.number, os.strerror(self.number))
            return call(*args, **kwargs)

        return counted

    def arm(self, first: int, last: int, number: int) -> None:
        gc.disable()  # what other tests have left would meet the refusals in its finalizers
        self.count, self.first, self.last, self.number = 0, first, last, number

    def disarm(self) -> None:
        self.first = self.last = -1
        gc.enable()
