"""Brokers of old releases that clients need not wait for in tests."""

from __future__ import annotations

import pytest


def ask_0_9_briefly(release: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have clients ask a broker of 0.9 for its versions in a fifth of a second, where they take four.

    Such a broker is silent, and a client asks it four times before it takes that for an answer. Others
    answer: a client that asked them so briefly could take a pause of the machine for silence.
    """
    if release == "0.9":
        monkeypatch.setattr("penstock.client.cluster.negotiation.ONCE_MORE_S", 0.05)
