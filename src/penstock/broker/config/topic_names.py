"""Kafka's rules for the names of topics."""

from __future__ import annotations

import re

from penstock.protocol.error_codes import ErrorCode, error_for

TOPIC_NAME_LENGTH_MAX = 249
"""The maximum number of characters of a topic name. Names of partition directories add ``-NUMBER``, and
have at most 255 bytes.
"""

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Check that a name is valid for a topic.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION (17), with the reason.
    """
    if not name:
        reason = "the empty string is no topic name"
    elif name in (".", ".."):
        reason = f"{name!r} is no topic name"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        reason = f"a topic name has at most {TOPIC_NAME_LENGTH_MAX} characters, not {len(name)}"
    elif not _LEGAL_NAME.fullmatch(name):
        reason = f"topic name {name!r} has characters other than ASCII letters, digits, '.', '_' and '-'"
    else:
        return
    raise error_for(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
