"""Penstock's client logs in to Apache Kafka with OAUTHBEARER tokens from an OIDC provider or a file."""

from __future__ import annotations

import base64
import http.server
import json
import os
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from compat.peers import free_ports, real_kafka
from penstock import Admin, Consumer, Producer, read_topic
from penstock.errors import AuthenticationError
from penstock.security.oauth import base64url

pytestmark = [pytest.mark.compat, pytest.mark.soak, pytest.mark.timeout(600)]

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CLIENT = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}


def number(value: int) -> str:
    return base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def token(life_s: float, audience: str = "kafka") -> str:
    now = time.time()
    claims = {"sub": "ann", "iss": "idp", "aud": audience, "iat": now - 1, "exp": now + life_s}
    head = {"alg": "RS256", "kid": "r", "typ": "JWT"}
    body = {**claims, "iat": int(claims["iat"]), "exp": int(claims["exp"])}  # type: ignore[call-overload]
    signed = f"{base64url(json.dumps(head).encode())}.{base64url(json.dumps(body).encode())}"
    return f"{signed}.{base64url(KEY.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


GIVEN: list[str] = []
"""The tokens that the provider has given out."""


class Provider(http.server.BaseHTTPRequestHandler):
    """A token endpoint (OIDC) that issues tokens valid for 5 s to the client ``me``."""

    def do_POST(self) -> None:
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        wanted = "Basic " + base64.b64encode(b"me:secret").decode()
        is_right = self.headers["Authorization"] == wanted and form["grant_type"] == ["client_credentials"]
        answer: dict[str, object] = {"error": "invalid_client"}
        if is_right:
            GIVEN.append(token(5))
            answer = {"access_token": GIVEN[-1], "expires_in": 5, "token_type": "Bearer"}
        self.send_response(200 if is_right else 401)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: this replaces the log lines that `http.server` prints for each request."""


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    server = http.server.HTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("oidc")
    public = KEY.public_key().public_numbers()
    keys = directory / "keys.json"
    key = {
        "kty": "RSA",
        "kid": "r",
        "alg": "RS256",
        "use": "sig",
        "n": number(public.n),
        "e": number(public.e),
    }
    keys.write_text(json.dumps({"keys": [key]}))
    plain, secured, controller = free_ports(3)
    package = "org.apache.kafka.common.security.oauthbearer"
    at = "listener.name.oidc.oauthbearer."
    listeners = f"PLAINTEXT://127.0.0.1:{plain},OIDC://127.0.0.1:{secured}"
    settings = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OIDC:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.oidc.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{at}sasl.jaas.config": f"{package}.OAuthBearerLoginModule required;",
        f"{at}sasl.server.callback.handler.class": f"{package}.OAuthBearerValidatorCallbackHandler",
        f"{at}sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
        f"{at}sasl.oauthbearer.expected.audience": "kafka",
        f"{at}sasl.oauthbearer.expected.issuer": "idp",
        f"{at}connections.max.reauth.ms": 3000,
    }
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file://{keys}"
    before = os.environ.get("JAVA_TOOL_OPTIONS")
    os.environ["JAVA_TOOL_OPTIONS"] = allowed
    try:
        with real_kafka("4.3", settings, first_port=plain) as servers:
            with Admin(bootstrap_servers=servers) as admin:
                admin.create_topic("t")
            yield f"127.0.0.1:{secured}"
    finally:
        if before is None:
            del os.environ["JAVA_TOOL_OPTIONS"]
        else:
            os.environ["JAVA_TOOL_OPTIONS"] = before


def test_tokens_of_a_provider_are_shown_again_before_they_end(kafka: str, provider: str) -> None:
    settings = {
        **CLIENT,
        "bootstrap.servers": kafka,
        "sasl.oauthbearer.token.endpoint.url": provider,
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "secret",
    }
    with Producer(config=settings) as producer, Consumer(config=settings) as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        sent = [producer.send("t", b"0").result(60).offset]
        until = time.monotonic() + 12
        while time.monotonic() < until:
            sent.append(producer.send("t", b"%d" % len(sent)).result(60).offset)
            time.sleep(0.2)
        got: list[int] = []
        while len(got) < len(sent):
            got += [record.offset for record in consumer.poll(30_000)]
    assert got == sent == list(range(sent[0], sent[0] + len(sent)))
    assert len(GIVEN) >= 3
    del settings["bootstrap.servers"]
    settings["sasl.oauthbearer.client.secret"] = "wrong"
    with pytest.raises(AuthenticationError, match="invalid_client"):
        read_topic("t", kafka, config=settings)


def test_a_token_file_that_is_replaced(kafka: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token(600, "elsewhere"))
    settings = {**CLIENT, "sasl.oauthbearer.token.endpoint.url": f"file://{path}"}
    with pytest.raises(AuthenticationError):
        read_topic("t", kafka, config=settings)
    path.write_text(token(6))
    with Producer(kafka, settings) as producer:
        first = producer.send("t", b"a").result(60).offset
        time.sleep(7)
        waiting = producer.send("t", b"b")
        time.sleep(1)
        path.write_text(token(600))
        assert waiting.result(60).offset == first + 1
