"""A Kerberos server that tests with GSSAPI run, made of MIT's programs.

On Debian the programs are in krb5-kdc, krb5-admin-server and krb5-user.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

from compat.peers import need, until
from free_ports import free_ports


class Realm:
    """A Kerberos realm with its files in `directory`; programs that get `environment` use this realm."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.port = free_ports(1)[0]
        self.environment = {
            "KRB5_CONFIG": f"{directory}/krb5.conf",
            "KRB5_KDC_PROFILE": f"{directory}/kdc.conf",
            "KRB5CCNAME": f"FILE:{directory}/tickets",
            "PATH": f"{os.environ['PATH']}:/usr/sbin",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Make the realm without principals, and start its KDC."""
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "krb5.conf").write_text(CLIENT.format(realm=self.name, port=self.port))
        (self.directory / "kdc.conf").write_text(
            SERVER.format(realm=self.name, port=self.port, directory=self.directory)
        )
        self.run("kdb5_util", "create", "-s", "-r", self.name, "-P", "master")
        with (self.directory / "kdc.log").open("ab") as log:
            self._process = subprocess.Popen(
                [need("krb5kdc"), "-n"], stdout=log, stderr=log, env={**os.environ, **self.environment}
            )
        until(self._is_up, "the KDC")

    def _is_up(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5):
            return True
        return False

    def add(self, keytab: Path, principals: Iterable[str]) -> None:
        """Make principals with random keys, and add these to a keytab."""
        for principal in principals:
            self.run("kadmin.local", "-q", f"addprinc -randkey {principal}")
            self.run("kadmin.local", "-q", f"ktadd -k {keytab} {principal}")

    def run(self, *command: str) -> None:
        environment = {**os.environ, **self.environment}
        subprocess.run(command, check=True, capture_output=True, timeout=60, env=environment)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


CLIENT = """[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""

SERVER = """[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {directory}/principal
    key_stash_file = {directory}/stash
    acl_file = {directory}/acl
  }}
"""
