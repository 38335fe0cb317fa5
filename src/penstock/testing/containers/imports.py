"""An import hook that makes ``import testcontainers.kafka`` load Penstock's stand-in.

If the package testcontainers is installed, its Kafka modules are replaced, its `DockerContainer` makes
stand-ins for images of Kafka, and its `Network` needs no Docker. If the package is not installed, the parts
of its core that Kafka test suites import are provided, too. `docker.from_env` returns a client that also
finds the stand-ins. ``pytest_kafka`` is always replaced by `penstock.testing.pytest_kafka`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from penstock.testing.containers.docker_client import client_of
from penstock.testing.containers.images import docker_container_of
from penstock.testing.containers.unavailable import network_of

_HERE = "penstock.testing.containers"

_ALWAYS = {
    "testcontainers.kafka": _HERE,
    "testcontainers.kafka._redpanda": _HERE,
    "testcontainers.community.kafka": _HERE,
    "testcontainers.community.kafka._redpanda": _HERE,
    "pytest_kafka": "penstock.testing.pytest_kafka",
    "pytest_kafka.constants": "penstock.testing.pytest_kafka",
}
"""A dict from module names to the modules of Penstock that always replace them."""

_WITHOUT_IT = {
    "testcontainers": None,
    "testcontainers.community": None,
    "testcontainers.core": None,
    "testcontainers.core.config": f"{_HERE}.waiting",
    "testcontainers.core.container": f"{_HERE}.unavailable",
    "testcontainers.core.exceptions": f"{_HERE}.waiting",
    "testcontainers.core.generic": f"{_HERE}.unavailable",
    "testcontainers.core.network": f"{_HERE}.unavailable",
    "testcontainers.core.wait_strategies": f"{_HERE}.waiting",
    "testcontainers.core.waiting_utils": f"{_HERE}.waiting",
}
"""A dict from module names to replacements that are provided if the package testcontainers is not installed;
None stands for an empty package."""

_WITHOUT_DOCKER = {
    "docker": f"{_HERE}.docker_client",
    "docker.errors": f"{_HERE}.docker_client",
}
"""The replacements for the package docker if it is not installed."""

_CHANGED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "docker": ("from_env", client_of),
    "testcontainers.core.container": ("DockerContainer", docker_container_of),
    "testcontainers.core.network": ("Network", network_of),
}
"""A dict from modules of installed packages to (the name in the module to replace, a function that makes its
replacement).
"""

_COMMUNITY = "testcontainers.community"
"""The package in which Testcontainers since 4.15 has its Kafka modules. Earlier releases get an empty package
of this name."""


class StandIns(MetaPathFinder, Loader):
    """An import finder and loader for replacement modules, whose contents come from modules of Penstock."""

    def __init__(self) -> None:
        package = PathFinder.find_spec("testcontainers")
        self.homes: dict[str, str | None] = {**_ALWAYS, **({} if package else _WITHOUT_IT)}
        if package is not None:
            changed = [name for name in _CHANGED if name.startswith("testcontainers.")]
            self.homes |= dict.fromkeys(changed, f"{_HERE}.unavailable")
            if PathFinder.find_spec(_COMMUNITY, package.submodule_search_locations) is None:
                self.homes[_COMMUNITY] = None
        self._installed = {"testcontainers"} if package is not None else set()
        docker = PathFinder.find_spec("docker")
        if docker is None:
            self.homes |= _WITHOUT_DOCKER
        elif docker.loader is not None:  # a directory of that name in the suite is left alone
            self.homes["docker"] = f"{_HERE}.docker_client"
            self._installed.add("docker")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a replacement module, or None if `fullname` is not replaced."""
        if fullname not in self.homes:
            return None
        spec = ModuleSpec(fullname, self, is_package=True)
        if fullname in _CHANGED and fullname.partition(".")[0] in self._installed:
            theirs = spec.loader_state = PathFinder.find_spec(fullname, path)
            if theirs is not None:
                spec.submodule_search_locations = theirs.submodule_search_locations
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Copy the names in the corresponding module of Penstock to a replacement module."""
        home = self.homes[module.__name__]
        if home is None:
            return
        theirs = module.__spec__.loader_state if module.__spec__ is not None else None
        if theirs is not None and theirs.loader is not None:
            theirs.loader.exec_module(module)
            filled = vars(module)
            name, change = _CHANGED[module.__name__]
            filled[name] = change(filled[name])
            return
        ours = importlib.import_module(home)
        names = getattr(ours, "__all__", None) or [name for name in vars(ours) if not name.startswith("_")]
        for name in names:
            setattr(module, name, getattr(ours, name))
        module.__doc__ = ours.__doc__


def install() -> StandIns:
    """Make imports find the replacement modules from now on, even if the originals were already imported."""
    found = StandIns()
    for name in found.homes:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, found)
    return found


def remove(found: StandIns) -> None:
    """Undo `install`, so that imports find the installed packages again."""
    if found in sys.meta_path:
        sys.meta_path.remove(found)
    for name in found.homes:
        sys.modules.pop(name, None)
