"""Names of a package that are imported on first use, so that importing the package stays cheap.

    __getattr__, __dir__ = lazy_names(__name__, {"Broker": "broker"})

makes `Broker` an attribute that imports the submodule `broker` when it is first asked for (PEP 562).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping

from penstock.common.extras import missing
from penstock.errors import UnknownNameError


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for `package`.

    `homes` maps each public name to the submodule that defines it, relative to the package. A name is
    imported once and then stored. If an optional library is missing for it, reading the name raises a
    `MissingDependencyError` that names the extra to install. An unknown name raises an error with advice from
    the table of `penstock.common.habits`.
    """

    def __getattr__(name: str) -> object:  # noqa: N807
        home = homes.get(name)
        if home is None:
            looks_for_submodule = sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap"
            if looks_for_submodule or name.startswith("__"):
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            from penstock.common.habits.package_names import refuse_name

            refuse_name(package, name, list(homes), UnknownNameError)
        try:
            module = importlib.import_module(f".{home}", package)
        except ImportError as error:
            raise missing(error, f"{package}.{name}") from error
        value: object = getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        names: list[str] = list(getattr(sys.modules[package], "__all__", homes))
        return names

    return __getattr__, __dir__
