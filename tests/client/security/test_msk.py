"""Tests of tokens for AWS MSK: the signer in the how-to guide agrees with AWS's own signer."""

from __future__ import annotations

import asyncio
import base64
import datetime
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from penstock.client.security.credentials import TokenSource
from penstock.client.security.settings import OAuthSettings

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "security.md"
NOW = datetime.datetime(2026, 11, 23, 2, 0, tzinfo=datetime.UTC)


def shown() -> dict[str, Any]:
    """Execute the Python example of the how-to guide; return the names that it defines."""
    (code,) = re.findall(r"```python\n([^`]*def msk_token.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def test_the_signer_of_the_how_to_signs_as_awss_does() -> None:
    text, ends_at = shown()["msk_token"]("eu-central-1", "AKIDEXAMPLE", "secret/key", "session+token=", NOW)
    url = base64.urlsafe_b64decode(text + "==").decode()
    query = parse_qs(urlsplit(url).query)
    # The signature is that of aws-msk-iam-sasl-signer-python 1.0.2 for the same keys and time.
    assert query["X-Amz-Signature"] == ["493d775f628dcdc1ccfb6dc2bf1cec4395cb5ae3ad63f092f40dd57c494a62e3"]
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert ends_at == NOW.timestamp() + 900


def test_a_token_of_awss_signer_with_its_milliseconds_is_sent_and_renewed() -> None:
    async def play() -> None:
        calls = []

        def provider() -> tuple[str, int]:
            now = datetime.datetime.now(datetime.UTC)
            calls.append(now)
            text, ends_at = shown()["msk_token"]("eu-central-1", "AKIDEXAMPLE", "secret", now=now)
            return text, int(ends_at * 1000)

        tokens = TokenSource(OAuthSettings(provider=provider))
        token = await tokens.token()
        assert token.expires_at_s is not None
        assert 0 < token.expires_at_s - calls[0].timestamp() <= 900
        await tokens.token()
        assert len(calls) == 1

    asyncio.run(play())
