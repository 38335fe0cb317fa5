"""The file of accounts: users that may log in at the gateway, and the cluster credentials for each of them.

The file is TOML. It has a table for each user, ``[users.NAME]``, with its ``password`` and a table
``cluster`` of client settings; ``[default]`` is for clients without SASL. The gateway reads the file again
when it has changed. Passwords appear neither in errors nor in a `repr`.
"""

from __future__ import annotations

import os
import secrets
import stat
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.client.config import ClientConfig
from penstock.errors import ConfigError
from penstock.gateway.accounts.settings import dotted, overlaid
from penstock.security.sasl_mechanisms import PLAIN, SCRAM_CODES
from penstock.security.scram import ScramCredential
from penstock.security.secrets import Secret, resolved
from penstock.security.unknown_users import derived_salt, fake_credential

if TYPE_CHECKING:
    from pathlib import Path

FILE_BYTES_MAX = 16 << 20
"""The largest size in bytes of a file of accounts that the gateway reads."""

USERS_MAX = 10_000
"""The most users that a file may have."""

MECHANISMS = (PLAIN, *SCRAM_CODES)
"""The SASL mechanisms that the gateway offers to clients."""

LIFETIME_MAX_MS = 2**31 - 1

_MECHANISMS, _LIFETIME = "sasl.enabled.mechanisms", "connections.max.reauth.ms"


class Account:
    """The settings and credentials of the gateway's connections to the cluster for some of its clients.

    When a user's entry in the file of accounts changes, the gateway makes a new `Account`, and closes the
    connections of the old one.
    """

    __slots__ = ("config", "name")

    def __init__(self, name: str, config: ClientConfig) -> None:
        self.name = name
        """A description of the account for logs: "user NAME" or "clients without SASL"."""
        self.config = config

    def __repr__(self) -> str:
        return f"<Account of {self.name}>"


class User:
    """A user that may log in at the gateway: the password or credentials to check, and the account."""

    __slots__ = ("account", "credentials", "password")

    def __init__(self, password: Secret, credentials: dict[str, ScramCredential], account: Account) -> None:
        self.password = password
        self.credentials = credentials
        """A dict from a SCRAM mechanism to the user's credential for it."""
        self.account = account


class _Entry(NamedTuple):
    """The contents of one table in the file of accounts, stored to detect changes at the next reading."""

    password: Secret | None
    settings: dict[str, object]


class Accounts:
    """The users and accounts from one reading of the file of accounts. Logins look users up here.

    `former` is the result of the previous reading, whose `User` and `Account` objects are reused for
    unchanged entries.

    Raises:
        ConfigError: a table is malformed, or refers to a secret that does not exist.
    """

    def __init__(
        self,
        tables: Mapping[str, object],
        base: Mapping[str, object],
        salt_key: bytes,
        where: str,
        former: Accounts | None = None,
    ) -> None:
        left = dict(tables)
        users, default = left.pop("users", {}), left.pop("default", None)
        options = _flat(left)
        self.mechanisms = _mechanisms(options.pop(_MECHANISMS, list(MECHANISMS)), where)
        """The SASL mechanisms that clients are offered."""
        self.lifetime_ms = _lifetime(options.pop(_LIFETIME, 0), where)
        """The length of a login session in milliseconds; 0 if sessions do not expire."""
        if options:
            raise ConfigError(
                f"{where}: {next(iter(options))!r} is not known; there are [users.NAME], [default],"
                f" {_MECHANISMS} and {_LIFETIME}"
            )
        if not isinstance(users, Mapping) or not (users or default is not None):
            raise ConfigError(f"{where}: name users, as [users.device-7], or a [default]")
        if len(users) > USERS_MAX:
            raise ConfigError(f"{where}: {len(users)} users, and {USERS_MAX} are the most")
        self._salt_key = salt_key
        self._base = base
        self._entries: dict[str | None, _Entry] = {}
        self.users: dict[str, User] = {}
        for name, table in users.items():
            self.users[name] = self._user(name, table, f"{where}: [users.{name}]", former)
        self.default: Account | None = None
        """The account of clients without SASL, or None if such clients may not connect."""
        if default is not None:
            shown = f"{where}: [default]"
            entry = self._entries[None] = _entry(default, shown, has_password=False)
            same = former is not None and former._entries.get(None) == entry
            self.default = (
                former.default
                if same and former is not None
                else self._account("clients without SASL", entry, shown)
            )
        self.live = {user.account for user in self.users.values()}
        """All accounts in the file. The gateway closes the connections of accounts that are not in this set.
        """
        if self.default is not None:
            self.live.add(self.default)

    def _user(self, name: str, table: object, where: str, former: Accounts | None) -> User:
        entry = self._entries[name] = _entry(table, where, has_password=True)
        password = entry.password
        assert password is not None
        if former is not None and former._entries.get(name) == entry:
            user = former.users[name]
            missing = [each for each in self.mechanisms if each not in (PLAIN, *user.credentials)]
            user.credentials.update(self._credentials(name, password, missing))
            return user
        credentials = self._credentials(name, password, [each for each in self.mechanisms if each != PLAIN])
        return User(password, credentials, self._account(f"user {name}", entry, where))

    def _credentials(self, name: str, password: Secret, mechanisms: list[str]) -> dict[str, ScramCredential]:
        # The salt is that of unknown names as well, so that it does not say which this is.
        salt = derived_salt(self._salt_key, name.encode("utf-8", "surrogatepass"))
        return {each: ScramCredential.of_password(each, password, salt) for each in mechanisms}

    def _account(self, name: str, entry: _Entry, where: str) -> Account:
        try:
            config = ClientConfig.of(overlaid(self._base, entry.settings), {})
        except ConfigError as error:
            raise ConfigError(f"{where}, cluster: {error}") from None
        return Account(name, config)

    # --- what logins ask for ----------------------------------------------------------------------------

    def password(self, name: str) -> Secret | None:
        """Return a user's password for PLAIN, or None if the user is unknown."""
        user = self.users.get(name)
        return None if user is None else user.password

    def credential(self, name: str, mechanism: str) -> ScramCredential | None:
        """Return a user's credential for a SCRAM mechanism, or None if there is none."""
        user = self.users.get(name)
        return None if user is None else user.credentials.get(mechanism)

    def token_credential(self, token_id: str, mechanism: str) -> tuple[ScramCredential, str, int] | None:
        """Return None for every delegation token, since the gateway has no delegation tokens."""
        return None

    def fake_credential(self, name: str, mechanism: str, *, is_token: bool) -> ScramCredential:
        """Return a SCRAM credential that no proof matches, for an unknown user name."""
        return fake_credential(mechanism, self._salt_key, name)


class AccountBook:
    """The current accounts of a gateway, read from a file, or from mappings with the same tables as the file.

    `base` has the settings of the gateway's connections to the cluster, by their dotted names.

    Raises:
        ConfigError: as `read`.
    """

    def __init__(
        self, source: str | os.PathLike[str] | Mapping[str, object], base: Mapping[str, object]
    ) -> None:
        self._source = source
        self._base = base
        self._salt_key = secrets.token_bytes(32)
        self._state: object = None
        self._accounts: Accounts | None = None
        self.read()

    @property
    def accounts(self) -> Accounts:
        """The accounts of the last successful reading."""
        assert self._accounts is not None
        return self._accounts

    def has_changed(self) -> bool:
        """Return True if the file's modification time, size or inode has changed since the last reading."""
        return not isinstance(self._source, Mapping) and self._state != _state_of(self._source)

    def read(self) -> Accounts:
        """Read and return the accounts. If that fails, the accounts of the last reading stay valid.

        With SCRAM, reading takes 2 to 5 ms of processor time for each user whose entry is new.

        Raises:
            ConfigError: the file cannot be read, other users may read it, or a table is malformed.
        """
        source = self._source
        if isinstance(source, Mapping):
            tables, where = source, "accounts"
        else:
            where = os.fspath(source)
            self._state = _state_of(source)
            tables = _tables(os.path.expanduser(where), where)
        self._accounts = Accounts(tables, self._base, self._salt_key, where, self._accounts)
        return self._accounts


def _state_of(path: str | os.PathLike[str]) -> object:
    try:
        found = os.stat(os.path.expanduser(path))
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _tables(path: str | Path, where: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:  # ValueError: no system takes such a path
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"the accounts in {where} cannot be read: {why}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise ConfigError(
            f"{where} has passwords, and other users of this machine may read or write it: chmod 600 {where}"
        )
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{where} is longer than {FILE_BYTES_MAX} bytes: is it a file of accounts?")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigError(f"{where} is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # The text of the error names a place, and at most one character of the file.
        raise ConfigError(f"{where}: {error}") from None


def _entry(table: object, where: str, *, has_password: bool) -> _Entry:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} is no table")
    left = dict(table)
    settings = left.pop("cluster", None)
    if not isinstance(settings, Mapping):
        raise ConfigError(
            f'{where}: a table `cluster` is missing, with the account there: cluster.sasl.username = "…"'
        )
    password = None
    if has_password:
        given = left.pop("password", None)
        text = given.reveal() if isinstance(given, Secret) else given
        if not isinstance(text, str) or not text:
            raise ConfigError(f"{where}: a password is missing, as text")
        try:
            password = resolved(text)
        except ConfigError as error:
            raise ConfigError(f"{where}: password: {error}") from None
        if not password:
            raise ConfigError(f"{where}: the password is empty")
    if left:
        known = "password and cluster" if has_password else "cluster"
        raise ConfigError(f"{where}: {next(iter(left))!r} is not known, there is {known}")
    flat = _flat(settings)
    if "bootstrap.servers" in flat:
        raise ConfigError(f"{where}: bootstrap.servers is that of the gateway, for all accounts")
    return _Entry(password, flat)


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return settings by dotted names, since TOML reads ``sasl.username`` as nested tables."""
    flat: dict[str, object] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat |= dotted({prefix + name: value})
    return flat


def _mechanisms(value: object, where: str) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    found = tuple(str(each).strip().upper() for each in names) if isinstance(names, (list, tuple)) else ()
    if not found or set(found) - set(MECHANISMS):
        raise ConfigError(f"{where}: {_MECHANISMS}: name some of {', '.join(MECHANISMS)}")
    return tuple(dict.fromkeys(found))


def _lifetime(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LIFETIME_MAX_MS:
        raise ConfigError(f"{where}: {_LIFETIME}: a number of milliseconds is needed, 0 for no end")
    return value
