"""The exceptions of Penstock, in one tree.

An error has a class of its own if a caller may need to catch it separately. Messages say what was wrong and
what to do; the command line prints them as they are, without a traceback.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.printable import printable


class PenstockError(Exception):
    """Base class of every exception that Penstock raises on purpose.

    Messages quote what peers and files have sent. The text is printable; `args` holds the text as it was
    received. Reading an attribute that only the exceptions of other Kafka clients have raises an error that
    says what to use instead.
    """

    def __str__(self) -> str:
        return printable(super().__str__())

    if not TYPE_CHECKING:  # type checkers find mistakes by themselves, unless there is this method

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name)
            place = "KafkaError" if isinstance(self, KafkaError) else "PenstockError"
            text = _unknown_names().described(place, name, f"{type(self).__name__!r} object", dir(self))
            raise UnknownNameError(text, name=name)


class ConfigError(PenstockError, ValueError):
    """An option or argument is unknown or malformed, or contradicts another option or argument."""


class UnknownNameError(PenstockError, AttributeError):
    """An object or a module lacks an attribute.

    If another Kafka client has it, the message says what to use.
    """

    def __init__(self, message: str, *, name: str | None = None) -> None:
        AttributeError.__init__(self, message, name=name)


class CallError(ConfigError, TypeError):
    """A function does not take these arguments. If another client's does, the message says what to use."""


class MissingDependencyError(PenstockError, ImportError):
    """An optional library is not installed; the message names the extra that installs it."""


class DecodeError(PenstockError, ValueError):
    """Bytes from a peer or from a file do not follow the format that was expected."""


class ProtocolViolationError(DecodeError):
    """A response can be decoded, but does not fit the request: such as a missing partition.

    Offsets that go back are another example. The client counts such a response as a failed attempt. When the
    time for retries is over, a `RequestTimeoutError` may have it as its cause.
    """


class CorruptRecordError(DecodeError):
    """A record batch fails its checksum or contradicts its own header (Kafka error 2)."""


class UnpackLimitError(CorruptRecordError):
    """Compressed records decompress to more bytes or records than a limit allows.

    The data may be intact: with a higher limit they can be read.
    """


class EncodeError(PenstockError, ValueError):
    """A value given by the caller cannot be written in the required format or version."""


class SerializationError(EncodeError):
    """A serializer of the application has raised (its exception is `__cause__`), or returned no bytes."""


class DeserializationError(DecodeError):
    """A deserializer of the application has raised. Its exception is `__cause__`.

    `record` is the `penstock.Record` as it is in the topic, with key and value as bytes. The record counts as
    returned: the consumer's next call continues after it. To read the record again, `seek` to its offset.
    """

    def __init__(self, message: str, record: Any) -> None:
        super().__init__(message)
        self.record = record

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.record)


class StorageError(PenstockError, OSError):
    """The log directory cannot be read or written: full disk, permissions, damaged files."""


class NetworkError(PenstockError, ConnectionError):
    """A peer cannot be reached, or the connection ended before a response came."""


class AuthenticationError(PenstockError):
    """The client or the broker rejects the other's credentials, SASL mechanism or security protocol.

    With unchanged settings, a retry does not help.
    """

    is_of_one_broker = False
    """True if other brokers of the cluster may accept the login, for example because only this broker's
    certificate has expired."""


class LoginPendingError(NetworkError):
    """A login that was accepted before is refused, and its secrets come from files that may be replaced.

    Clients retry for `penstock.login.patience.ms`, after which they raise the refusal as an
    `AuthenticationError`.
    """


class RequestTimeoutError(PenstockError, TimeoutError):
    """No response came within the time limit, or no attempt succeeded within it, in spite of retries."""


class UnsupportedVersionError(PenstockError):
    """The client and the broker share no version of an API, or the version lacks a required feature."""


class TransactionError(PenstockError):
    """A transactional call of a producer has failed. The subclass says what to do next (KIP-1050).

    `__cause__` is the broker's or the network's error, if there was one.
    """


class TransactionAbortableError(TransactionError):
    """The transaction cannot be committed any more: abort it, then do its work again with this producer."""


class TransactionRetriableError(TransactionError, RequestTimeoutError):
    """The call did not end in time, and is still under way: make the same call again before any other."""


class TransactionFatalError(TransactionError):
    """This producer cannot be used any more: close it, and continue with a new one.

    The new producer continues from the last committed state.
    """


class ProducerFencedError(TransactionFatalError):
    """Another producer uses the transactional id, or the transaction's timeout has passed (Kafka 47, 90)."""


class TransactionStateError(TransactionError):
    """The call does not fit the producer's state, such as a commit without a begin. Nothing has changed."""


class KafkaError(PenstockError):
    """An error code in a broker's response.

    `code` is Kafka's number, `name` its constant (``UNKNOWN_TOPIC_OR_PARTITION``); `retriable` is True if the
    same request may succeed later. `detail` is the message without the general description of the code:
    brokers send only this part, since clients add the description. Message and detail are cut after
    `MESSAGE_CHARACTERS_MAX` characters, since they quote what was sent, and a string in a response may have
    32,767 bytes. `code` and `name` are an int and a str; calling them as in other clients raises an error
    that says to leave out the brackets.
    """

    def __init__(
        self, code: int, name: str, message: str, *, retriable: bool = False, detail: str = ""
    ) -> None:
        super().__init__(_cut(message))
        self.code: int = _Code(code)
        self.name: str = _Name(name)
        self.retriable = retriable
        self.detail = _cut(detail or message)

    def __reduce__(self) -> tuple[object, ...]:
        values = (type(self), int(self.code), str(self.name), self.args[0], self.retriable, self.detail)
        return (_kafka_error, values)


class _Code(int):
    """An error code. Calling it raises CallError, because confluent-kafka's ``error.code()`` is a method."""

    __slots__ = ()

    def __call__(self, *arguments: object, **keywords: object) -> NoReturn:
        raise CallError(
            f"the code of an error is a number, {self!r} here: write error.code, without brackets"
        )


class _Name(str):
    """An error name. Calling it raises CallError, because confluent-kafka's ``error.name()`` is a method."""

    __slots__ = ()

    def __call__(self, *arguments: object, **keywords: object) -> NoReturn:
        raise CallError(f"the name of an error is text, {self!r} here: write error.name, without brackets")


class AuthorizationError(KafkaError):
    """The principal is not authorized for the operation. A retry helps only after its ACLs have changed."""


class TopicAuthorizationError(AuthorizationError):
    """A right on a topic is missing (Kafka error 29)."""


class GroupAuthorizationError(AuthorizationError):
    """A right on a group is missing (Kafka error 30)."""


class ClusterAuthorizationError(AuthorizationError):
    """A right on the cluster is missing (Kafka error 31)."""


class TransactionalIdAuthorizationError(AuthorizationError):
    """A right on a transactional id is missing (Kafka error 53)."""


class TopicRecreatedError(KafkaError):
    """A topic was deleted and created again: a position in the old topic means nothing in the new one.

    The client detects this from the topic's id, which brokers have since Kafka 2.8. `code` is 1
    (OFFSET_OUT_OF_RANGE).
    """


MESSAGE_CHARACTERS_MAX = 2000
"""The greatest length of an error's message in characters. Messages quote names, which may be very long."""


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARACTERS_MAX else f"{text[: MESSAGE_CHARACTERS_MAX - 1]}…"


def _kafka_error(
    kind: type[KafkaError], code: int, name: str, message: str, retriable: bool, detail: str
) -> KafkaError:
    return kind(code, name, message, retriable=retriable, detail=detail)


def _unknown_names() -> Any:
    """Import the module that finds advice for unknown names. Only an error message needs the module."""
    return importlib.import_module("penstock.common.habits.unknown_names")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        known = [each for each in globals() if each[0].isupper()]
        importlib.import_module("penstock.common.habits.package_names").refuse_name(
            __name__, name, known, UnknownNameError, place="errors"
        )
