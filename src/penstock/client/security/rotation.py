"""Secrets and certificates that are replaced while clients run: their files, and how long to wait.

A broker keeps one password per user. Between the change of the password at the broker and in the file that a
client reads, no login can succeed: clients that have been accepted before wait that long. This module does no
network I/O.
"""

from __future__ import annotations

import os
import re
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.client.security.options import OPTIONS, parse_security
from penstock.common.logs import logger_named
from penstock.errors import AuthenticationError, ConfigError, LoginPendingError
from penstock.security.secrets import Secret, reference, revealed
from penstock.security.tls_context import NO_SYSTEM_CAS, PEM_BEGIN, TlsSettings, client_context

if TYPE_CHECKING:
    import ssl

    from penstock.client.security.settings import SecuritySettings

log = logger_named("penstock.client")

TRY_AGAIN_AFTER_S = 1.0
"""The interval in seconds between attempts of a pending login, unless a file changes."""

LOOK_EVERY_S = 0.1
"""The interval in seconds between checks of the files of a pending login."""

TIMESTAMP_STEP_NS = 50_000_000
"""The resolution of file times in nanoseconds: two writes within this time may leave the same file time."""

LOGINS_MAX = 256
"""The maximum number of logins that a process keeps track of. The oldest is removed first."""

REFERENCE = re.compile(r"\$\{[^{}]+\}")
TLS_FILES = ("ca", "ca_inline", "truststore", "keystore", "certificate", "crl")

Stamp = tuple[tuple[int, int, int] | None, ...]


def paths_of(settings: SecuritySettings) -> tuple[list[str], list[str]]:
    """Return two lists of paths: files with login secrets, and TLS files (certificates, keys and stores)."""
    login: list[str] = []
    tls: list[str] = []
    for name, value in settings.given.items():
        if not isinstance(value, (str, Secret)) or name not in OPTIONS:
            continue
        meaning, _ = OPTIONS[name]
        is_login = not hasattr(settings.tls, meaning)
        (login if is_login else tls).extend(_referenced(revealed(value), is_nested=meaning == "jaas"))
    for each in TLS_FILES:
        path = getattr(settings.tls, each)
        if path is not None and PEM_BEGIN not in path and path not in NO_SYSTEM_CAS:
            tls.append(path)
    key = settings.tls.key
    if key is not None and PEM_BEGIN not in key.reveal():
        tls.append(key.reveal())
    if settings.oauth.is_token_file:
        login.append(urllib.parse.unquote(urllib.parse.urlsplit(settings.oauth.token_endpoint or "").path))
    if settings.kerberos_keytab:
        login.append(settings.kerberos_keytab)
    return list(dict.fromkeys(login)), list(dict.fromkeys(tls))


def _referenced(text: str, *, is_nested: bool) -> Iterator[str]:
    for match in REFERENCE.finditer(text):
        kept_at = reference(match[0])
        if kept_at is None or kept_at.path is None:
            continue
        yield kept_at.path
        if is_nested and match[0] == text:
            yield from _referenced(kept_at.read().reveal(), is_nested=False)


class SecurityFiles:
    """The files of the security settings, from which settings and TLS context can be read again."""

    def __init__(self, settings: SecuritySettings) -> None:
        """Record the state of the files.

        Call this before reading them, so that a later change is detected.
        """
        self.login_paths, self._tls_paths = paths_of(settings)
        self._stamp = self._stamped()
        self._is_settled = _is_settled(self._stamp)

    def have_changed(self) -> bool:
        """Return True if a file has been replaced or written since it was read."""
        if not (self.login_paths or self._tls_paths):
            return False
        return not self._is_settled or self._stamped() != self._stamp

    def read(self, present: SecuritySettings) -> tuple[SecuritySettings, ssl.SSLContext | None] | None:
        """Read the files again; return the settings, and the TLS context or None without TLS.

        If the files cannot be used (half written, a key without its certificate), log that and return None;
        the settings in use then stay until a file changes again. The call may take milliseconds.
        """
        self._stamp = self._stamped()
        self._is_settled = _is_settled(self._stamp)
        try:
            settings = parse_security(present.given)
            assert settings is not None
            context = context_of(settings)
            login_paths, tls_paths = paths_of(settings)
        except ConfigError as error:
            log.warning("a file of the security settings cannot be used now, going on as before: %s", error)
            return None
        if (login_paths, tls_paths) != (self.login_paths, self._tls_paths):
            self.login_paths, self._tls_paths = login_paths, tls_paths
            self._is_settled = False
        return settings, context

    def _stamped(self) -> Stamp:
        """Return inode, size and modification time of each file, or None for a file that does not exist."""
        found: list[tuple[int, int, int] | None] = []
        for path in (*self.login_paths, *self._tls_paths):
            try:
                status = os.stat(os.path.expanduser(path))
            except OSError:
                found.append(None)
            else:
                found.append((status.st_ino, status.st_size, status.st_mtime_ns))
        return tuple(found)


def _is_settled(stamp: Stamp) -> bool:
    """Return True if the last write is so old that any later write changes the file's time."""
    newest = max((each[2] for each in stamp if each is not None), default=0)
    return not 0 <= time.time_ns() - newest < TIMESTAMP_STEP_NS


def context_of(settings: SecuritySettings) -> ssl.SSLContext | None:
    """Return the TLS context of a client, or None without TLS. Raises ConfigError."""
    if not settings.uses_tls:
        return None
    return settings.ssl_context or client_context(settings.tls)


def is_same_login(one: SecuritySettings, other: SecuritySettings) -> bool:
    """Return True if two settings have the same login: they differ at most in TLS."""
    plain = {"tls": TlsSettings(), "ssl_context": None}
    return replace(one, **plain) == replace(other, **plain)  # type: ignore[arg-type]


class Logins:
    """The logins that brokers have accepted, each with the time since which brokers refuse it, or None.

    All clients of a process share these records, because a program may make a new client for every task.
    `clock` returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refused_since: dict[object, float | None] = {}

    def accept(self, key: object) -> None:
        """Record that brokers accept this login, in this process or in another one."""
        if self._refused_since.pop(key, None) is not None:
            log.info("the login is accepted again")
        self._refused_since[key] = None
        if len(self._refused_since) > LOGINS_MAX:
            # Two threads may find the same one.
            self._refused_since.pop(next(iter(self._refused_since)), None)

    def presume(self, key: object) -> None:
        """Count a login as accepted, if this process has no record of it."""
        if key not in self._refused_since:
            self.accept(key)

    def judge(
        self, key: object, error: AuthenticationError, patience_s: float, files: SecurityFiles
    ) -> AuthenticationError | LoginPendingError:
        """Return the exception to raise for a refused login: `error`, or a `LoginPendingError` to try again.

        The login is attempted again if a file with its secrets has changed since it was read, or, for
        `patience_s` seconds, if brokers accepted it before and its secrets come from files.
        """
        if not files.login_paths:
            return error
        where = ", ".join(files.login_paths)
        if files.have_changed():
            return LoginPendingError(f"{error}; {where} has changed meanwhile")
        if key not in self._refused_since:
            return error
        since = self._refused_since[key]
        if since is None:
            since = self._refused_since[key] = self._clock()
            if patience_s > 0:
                log.warning("%s; waiting up to %g s for another secret in %s", error, patience_s, where)
        if self._clock() - since >= patience_s:
            return error
        return LoginPendingError(f"{error}; waiting for another secret in {where}")


LOGINS = Logins()
"""The logins of all clients of this process."""


def presume_accepted(servers: object, settings: SecuritySettings | None) -> None:
    """Count the login of these settings as one that `servers` have accepted in another process."""
    if settings is not None and settings.uses_sasl:
        LOGINS.presume(login_key(servers, settings.given))


def login_key(servers: object, given: Mapping[str, object]) -> object:
    """Return the key of a login in `Logins`: the servers, and the settings as they were given."""
    return servers, frozenset(
        (name, revealed(value)) for name, value in given.items() if isinstance(value, (str, Secret))
    )
