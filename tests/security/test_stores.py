"""Tests of key stores and trust stores that Java's keytool writes, and of those that cannot be opened."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.peers import need
from penstock.errors import ConfigError
from penstock.security.secrets import Secret
from penstock.security.stores import JKS_MAGIC, read_jks, read_keystore, read_truststore
from penstock.security.tls_context import TlsSettings, client_context
from security_certificates import authority, issue

CA = authority()
CLIENT = issue(CA, "ann", client=True)
PASSWORD = Secret("changeit-canary")


def keytool(*arguments: object) -> None:
    subprocess.run([need("keytool"), *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create ``keys.p12``, ``keys.jks``, ``trust.p12`` and ``trust.jks``, all with `PASSWORD`."""
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    directory = tmp_path_factory.mktemp("stores")
    word = PASSWORD.reveal()
    data = pkcs12.serialize_key_and_certificates(
        b"ann", CLIENT.key, CLIENT.certificate, [CA.certificate], BestAvailableEncryption(word.encode())
    )
    (directory / "keys.p12").write_bytes(data)
    (directory / "ca.pem").write_text(CA.certificate_pem)
    same = ["-storepass", word, "-noprompt"]
    for kind in ("jks", "pkcs12"):
        store = directory / ("trust.jks" if kind == "jks" else "trust.p12")
        keytool("-importcert", "-alias", "ca", "-file", directory / "ca.pem", "-keystore", store,
                "-storetype", kind, *same)  # fmt: skip
    keytool("-importkeystore", "-srckeystore", directory / "keys.p12", "-srcstorepass", word, "-destkeystore",
            directory / "keys.jks", "-deststoretype", "jks", "-deststorepass", word, "-noprompt")  # fmt: skip
    return directory


@pytest.mark.parametrize("kind", ["jks", "p12"])
def test_stores_of_keytool_make_a_context(stores: Path, kind: str) -> None:
    context = client_context(
        TlsSettings(
            keystore=str(stores / f"keys.{kind}"),
            keystore_password=PASSWORD,
            truststore=str(stores / f"trust.{kind}"),
            truststore_password=PASSWORD,
        )
    )
    assert [dict(x[0] for x in ca["subject"]) for ca in context.get_ca_certs()] == [{"commonName": "test CA"}]


@pytest.mark.parametrize("kind", ["jks", "p12"])
def test_a_key_comes_with_its_chain(stores: Path, kind: str) -> None:
    path = stores / f"keys.{kind}"
    key, chain, _ = read_keystore(str(path), path.read_bytes(), PASSWORD, None)
    assert key.reveal() == CLIENT.key_pem
    assert chain == [CLIENT.certificate_pem, CA.certificate_pem]


@pytest.mark.parametrize("name", ["keys.jks", "keys.p12", "trust.jks", "trust.p12"])
def test_a_wrong_password_is_told_and_not_shown(stores: Path, name: str) -> None:
    path = stores / name
    wrong, data = Secret("wrong-canary"), path.read_bytes()
    with pytest.raises(ConfigError, match="password of the store is wrong") as caught:
        _ = read_keystore(name, data, wrong, None) if "keys" in name else read_truststore(name, data, wrong)
    assert "canary" not in str(caught.value).replace(str(path), "")


def test_a_key_with_a_password_of_its_own(stores: Path) -> None:
    path = stores / "own.jks"
    shutil.copy(stores / "keys.jks", path)
    keytool("-keypasswd", "-alias", "ann", "-keystore", path, "-storepass", PASSWORD.reveal(), "-keypass",
            PASSWORD.reveal(), "-new", "of-the-key")  # fmt: skip
    key, _, _ = read_keystore(str(path), path.read_bytes(), PASSWORD, Secret("of-the-key"))
    assert key.reveal() == CLIENT.key_pem
    with pytest.raises(ConfigError, match=r"ssl\.key\.password"):
        read_keystore(str(path), path.read_bytes(), PASSWORD, None)


def test_a_truststore_of_java_opens_without_a_password(stores: Path) -> None:
    path = stores / "trust.jks"
    assert read_truststore(str(path), path.read_bytes(), None) == [CA.certificate_pem]


def test_a_truststore_may_be_a_keystore_and_a_keystore_must_hold_a_key(stores: Path) -> None:
    path = stores / "keys.jks"
    assert read_truststore(str(path), path.read_bytes(), PASSWORD) == [CLIENT.certificate_pem]
    for name in ("trust.jks", "trust.p12"):
        with pytest.raises(ConfigError, match="no private key"):
            read_keystore(name, (stores / name).read_bytes(), PASSWORD, None)
    with pytest.raises(ConfigError, match=r"set ssl\.keystore\.password"):
        read_keystore("x", b"", None, None)


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"\xce\xce\xce\xce", "JCEKS.*keytool -importkeystore"), (b"hello", "no store that is known")],
)
def test_other_files_are_named(data: bytes, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read_truststore("x", data, PASSWORD)


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_damaged_stores_raise_nothing_but_config_errors(data: bytes) -> None:
    for beginning in (JKS_MAGIC + b"\0\0\0\x02", b"\x30\x82"):
        try:
            read_truststore("x", beginning + data, None)
        except ConfigError:
            continue


def test_every_cut_of_a_store_is_noticed(stores: Path) -> None:
    data = (stores / "keys.jks").read_bytes()
    for end in range(12, len(data) - 20, 37):
        with pytest.raises(ConfigError):
            read_jks("x", data[:end], PASSWORD)
        with pytest.raises(ConfigError):
            read_jks("x", data[:end] + bytes(20), None)
