"""The settings of the client from all sources, each with its origin.

Earlier sources override later ones: ``-X`` (and ``-b``), ``--config FILE``, ``--profile NAME``, the
environment (``PENSTOCK_BOOTSTRAP_SERVERS`` and so on), the file that ``PENSTOCK_CONFIG`` names, the profile
that ``PENSTOCK_PROFILE`` names, or else the default profile of the user's file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from penstock.cli.client_config import ASKED, FILE_VARIABLE, SECRETS, VARIABLE_PREFIX, read_config
from penstock.cli.profiles import PROFILE_VARIABLE, Profiles, profiles_path, read_profiles
from penstock.common.suggestions import did_you_mean, nearest
from penstock.errors import ConfigError

OTHER_VARIABLES = frozenset(
    {
        FILE_VARIABLE,
        PROFILE_VARIABLE,
        "PENSTOCK_FORK_SERVER",
        "PENSTOCK_NEW_PASSWORD",
        "PENSTOCK_PROGRESS",
        "PENSTOCK_PURE_PYTHON",
        "PENSTOCK_TRACEBACK",
    }
)
"""Environment variables that users may set and that are not client settings."""

OWN_VARIABLES = frozenset(
    {ASKED, "PENSTOCK_CHOSEN_PYTHON", "PENSTOCK_FORK_SERVER_FOR", "PENSTOCK_SPARK_SESSION"}
)
"""Environment variables that Penstock sets for the processes that it starts."""

BOOTSTRAP = "bootstrap.servers"
HIDDEN = "(hidden)"
SECRET_WORDS = re.compile(
    r"password|secret|jaas|token\.provider|\.pem$|keystore\.key$|oauthbearer\.(config|ext)"
)
REFERENCE = re.compile(r"\$\{(?:env|file|dir|directory):[^}]*\}")


class ShownSetting(NamedTuple):
    """The value of a setting, and a text that names its origin, such as a file."""

    value: str
    origin: str


Layer = Mapping[str, ShownSetting]


def gathered(
    config_path: str | None,
    profile: str | None,
    environment: Mapping[str, str] = os.environ,
    typed: Mapping[str, str] | None = None,
) -> dict[str, ShownSetting]:
    """Return a dict from setting name to its value in force and origin; `typed` has the settings of ``-X``.

    If several names stand for one setting, only the one that takes effect is returned. TLS and SASL settings
    in the environment are used only if the security protocol needs them.

    Raises:
        ConfigError: a file or a profile cannot be read, or does not exist.
    """
    layers: list[Layer] = [_layer(typed or {}, "-X")]
    if config_path:
        layers.append(_layer(read_config(config_path), f"--config {config_path}"))
    profiles = read_profiles(profiles_path(environment))
    if profile is not None:
        layers.append(_of_profile(profiles, profile, "--profile"))
    variables = from_environment(environment)
    layers.append(variables)
    if path := environment.get(FILE_VARIABLE):
        layers.append(_layer(read_config(path), f"{path} ({FILE_VARIABLE})"))
    if profile is None:
        if named := environment.get(PROFILE_VARIABLE):
            layers.append(_of_profile(profiles, named, PROFILE_VARIABLE))
        elif profiles.default is not None:
            layers.append(_of_profile(profiles, profiles.default, f"{profiles.path}, profile"))
    found: dict[str, ShownSetting] = {}
    taken: set[str] = set()
    for layer in layers:
        found |= {name: setting for name, setting in layer.items() if meaning(name) not in taken}
        taken.update(map(meaning, layer))
    protocol = found.get("security.protocol", ShownSetting("PLAINTEXT", "")).value.upper()
    return {
        name: setting
        for name, setting in found.items()
        if not (setting is variables.get(name) and _has_no_use(name, protocol))
    }


def of_source(config_path: str | None, profile: str | None) -> dict[str, str]:
    """Return the settings for the source cluster of a mirror: those of a file override those of a profile.

    The environment and the default profile are not used.

    Raises:
        ConfigError: the file or the profile cannot be read, or does not exist.
    """
    found: dict[str, str] = {}
    if profile is not None:
        layer = _of_profile(read_profiles(profiles_path()), profile, "--from-profile")
        found |= {name: setting.value for name, setting in layer.items()}
    for name, value in (read_config(config_path) if config_path else {}).items():
        found = {each: one for each, one in found.items() if meaning(each) != meaning(name)}
        found[name] = value
    return found


def from_environment(environment: Mapping[str, str]) -> dict[str, ShownSetting]:
    """Return the settings in environment variables: ``PENSTOCK_`` and the setting's name in upper case."""
    if not any(variable.startswith(VARIABLE_PREFIX) for variable in environment):
        return {}  # `client_names` imports OpenSSL, which takes milliseconds
    variables = {name: variable_of(name) for name in client_names()}
    return {
        name: ShownSetting(environment[variable], variable)
        for name, variable in variables.items()
        if environment.get(variable)
    }


def unread_variables(environment: Mapping[str, str]) -> list[str]:
    """Return a sentence for each environment variable that looks like a misspelled setting."""
    known = {variable_of(name) for name in client_names()} | OTHER_VARIABLES
    # The prefix alone would make two variables alike.
    words = [name.removeprefix(VARIABLE_PREFIX) for name in known]
    unread = sorted(environment.keys() - known - OWN_VARIABLES)
    return [
        f"{variable} is not read; did you mean {VARIABLE_PREFIX}{near}?"
        for variable in unread
        if variable.startswith(VARIABLE_PREFIX)
        for near in nearest(variable.removeprefix(VARIABLE_PREFIX), words)
    ]


def variable_of(name: str) -> str:
    """Return the name of the environment variable of a setting."""
    return VARIABLE_PREFIX + name.replace(".", "_").upper()


def client_names() -> list[str]:
    """Return the names of all settings that apply to every client and can be written as text."""
    from penstock.client.config import ClientConfig, known_names
    from penstock.client.security.options import OPTIONS

    no_text = {"ssl.context", "oauth.cb"}
    return [*known_names(ClientConfig), *(name for name in OPTIONS if name not in no_text)]


def meaning(name: str) -> str:
    """Return the canonical name of a setting, which all aliases of the setting share."""
    from penstock.client.config import ClientConfig, known_names
    from penstock.client.security.options import OPTIONS

    if name in OPTIONS:
        return f"security {OPTIONS[name][0]}"
    option = known_names(ClientConfig).get(name)
    return name if option is None else option.name


def shown(name: str, value: str) -> str:
    """Return the value of a setting for display: a secret is hidden, a reference to a secret is not."""
    if (name in SECRETS or SECRET_WORDS.search(name)) and not REFERENCE.fullmatch(value):
        return HIDDEN
    return value


def _layer(settings: Mapping[str, str], origin: str) -> Layer:
    return {name: ShownSetting(value, origin) for name, value in settings.items()}


def _of_profile(profiles: Profiles, name: str, asked_by: str) -> Layer:
    """Return the settings of a profile that apply to every client, as `read_config` does for a file."""
    from penstock.client.config import SECURITY_NAMES, ConsumerConfig, ProducerConfig, known_names

    mine = set(client_names())
    others = {*known_names(ConsumerConfig), *known_names(ProducerConfig)}
    settings = profiles.named(name, asked_by)
    for each in settings:
        if each not in mine and each not in others and not each.startswith(SECURITY_NAMES):
            hint = did_you_mean(each, mine | others)
            raise ConfigError(f"{profiles.path}, [{name}]: clients have no setting {each!r}{hint}")
    concerning = {
        each: value for each, value in settings.items() if each in mine or each.startswith(SECURITY_NAMES)
    }
    return _layer(concerning, f"profile {name} in {profiles.path}")


def _has_no_use(name: str, protocol: str) -> bool:
    if name.startswith(("sasl.", "oauth.", "enable.sasl.")):
        return not protocol.startswith("SASL")
    return name.startswith(("ssl.", "enable.ssl.", "https.")) and protocol == "PLAINTEXT"


def is_readable_by_others(path: Path) -> bool:
    """Return True if other users of the machine can read a file."""
    try:
        return bool(path.stat().st_mode & 0o044)
    except OSError:
        return False
