"""Makes the exception for a broker's refusal of an admin request, with the broker's own message."""

from __future__ import annotations

from penstock.errors import AuthorizationError, KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for


def refusal(code: int, what: str, message: str | None = None) -> KafkaError:
    """Return the exception for an error code. `what` names the object; `message` is the broker's own text."""
    plain = error_for(code, what)
    if isinstance(plain, AuthorizationError):
        return plain  # which has advice about a missing right; brokers have none
    # A topic that does not exist will not come to be by waiting.
    retriable = plain.retriable and code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    text = message or str(plain)
    label = "" if plain.name in text else f" ({plain.name})"
    return KafkaError(code, plain.name, f"{text}{label}", retriable=retriable)
