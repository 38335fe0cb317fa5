"""The error tree: everything that Penstock raises on purpose.

Subclasses exist where a caller would catch them. Messages say what was wrong and what to do;
the command line prints them as they are, without a traceback.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.printable import printable


class PenstockError(Exception):
    """Base of every error that Penstock raises on purpose.

    Messages quote what peers and files have sent. Their text is printable; `args` hold it as it was.
    A name of other clients' errors that it does not have ends in an error that says what to type.
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
    """An option is unknown, malformed or contradicts another one."""


class UnknownNameError(PenstockError, AttributeError):
    """An object or a module has no such name. Where another client has it, the message says what to type."""

    def __init__(self, message: str, *, name: str | None = None) -> None:
        AttributeError.__init__(self, message, name=name)


class CallError(ConfigError, TypeError):
    """The arguments of a call do not fit. Where another client takes them, the message says what to type."""


class MissingDependencyError(PenstockError, ImportError):
    """An optional library is needed; the message names the extra that installs it."""


class DecodeError(PenstockError, ValueError):
    """Bytes from a peer or a file do not follow the format."""


class ProtocolViolationError(DecodeError):
    """An answer can be read, but does not answer what was asked: a partition is missing, offsets go back.

    The client counts it as a failed attempt. It is raised by itself, or as the last obstacle of a
    `RequestTimeoutError`, once the time allowed for retries is over.
    """


class CorruptRecordError(DecodeError):
    """A record batch fails its checksum or contradicts its own header (Kafka error 2)."""


class UnpackLimitError(CorruptRecordError):
    """Compressed records hold more than a limit lets be unpacked, or more records than it lets be read.

    The data may be sound: with a higher limit they can be read.
    """


class EncodeError(PenstockError, ValueError):
    """A value cannot be written in the format or version asked for. The caller's fault."""


class SerializationError(EncodeError):
    """A serializer of the application has raised, or returned no bytes. What it raised is `__cause__`."""


class DeserializationError(DecodeError):
    """A deserializer of the application has raised. What it raised is `__cause__`.

    `record` is the `penstock.Record` as it is in the topic, with key and value as bytes. It counts as handed
    out: the consumer's next call goes on behind it. `seek` to its offset to have it again.
    """

    def __init__(self, message: str, record: Any) -> None:
        super().__init__(message)
        self.record = record

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.record)


class StorageError(PenstockError, OSError):
    """The log directory cannot be read or written: full disk, permissions, damaged files."""


class NetworkError(PenstockError, ConnectionError):
    """A peer cannot be reached, or the connection ended while answers were due."""


class AuthenticationError(PenstockError):
    """The two ends do not accept each other: password, token, certificate, mechanism, protocol of the port.

    Never worth another try with the same settings.
    """

    is_of_one_broker = False
    """Whether another broker of the cluster may well accept, as with a certificate that has expired on
    one.
    """


class LoginPendingError(NetworkError):
    """A login was refused that was accepted before, and its secrets come from files that may be replaced.

    Clients try again for `penstock.login.patience.ms`, after which the refusal is an `AuthenticationError`.
    """


class RequestTimeoutError(PenstockError, TimeoutError):
    """No answer, or no success in spite of retries, within the time allowed."""


class UnsupportedVersionError(PenstockError):
    """The two ends share no version of an API, or the version lacks a feature that was asked for."""


class TransactionError(PenstockError):
    """A transaction of a producer did not go as asked. What to do next is in the subclass (KIP-1050).

    The reason, where a broker or the network gave one, is `__cause__`.
    """


class TransactionAbortableError(TransactionError):
    """The transaction cannot be committed any more: abort it, then do its work again with this producer."""


class TransactionRetriableError(TransactionError, RequestTimeoutError):
    """The call did not end in time, and goes on: make the same call again, and no other one before."""


class TransactionFatalError(TransactionError):
    """This producer can do nothing more: close it, and go on with a new one from the last committed state."""


class ProducerFencedError(TransactionFatalError):
    """Another producer uses the transactional id, or the transaction ran into its timeout (Kafka 47, 90)."""


class TransactionStateError(TransactionError):
    """The call does not fit what the producer is doing, such as a commit without a begin. Nothing changed."""


class KafkaError(PenstockError):
    """An error code answered by a broker.

    `code` is Kafka's number, `name` its constant (``UNKNOWN_TOPIC_OR_PARTITION``); `retriable`
    says whether the same request may succeed later. `detail` is what happened here, without what the code
    means everywhere: the message a broker sends, since clients add the rest. Both texts are cut after
    `MESSAGE_CHARACTERS_MAX`, since they quote what was sent, and answers hold strings of 32,767 bytes.
    `code` and `name` are a plain number and a text but for a call, which says to leave out the brackets.
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
    """A number that is not called: confluent-kafka's ``error.code()`` is a method."""

    __slots__ = ()

    def __call__(self, *arguments: object, **keywords: object) -> NoReturn:
        raise CallError(
            f"the code of an error is a number, {self!r} here: write error.code, without brackets"
        )


class _Name(str):
    """A text that is not called: confluent-kafka's ``error.name()`` is a method."""

    __slots__ = ()

    def __call__(self, *arguments: object, **keywords: object) -> NoReturn:
        raise CallError(f"the name of an error is text, {self!r} here: write error.name, without brackets")


class AuthorizationError(KafkaError):
    """The principal is not allowed the operation. Another try helps after its rights have changed."""


class TopicAuthorizationError(AuthorizationError):
    """A right on a topic is missing (Kafka error 29)."""


class GroupAuthorizationError(AuthorizationError):
    """A right on a group is missing (Kafka error 30)."""


class ClusterAuthorizationError(AuthorizationError):
    """A right on the cluster is missing (Kafka error 31)."""


class TransactionalIdAuthorizationError(AuthorizationError):
    """A right on a transactional id is missing (Kafka error 53)."""


class TopicRecreatedError(KafkaError):
    """A topic was deleted and created anew under its name: a position in the old one means nothing here.

    Noticed by the id of the topic, which brokers have since Kafka 2.8. `code` is 1, of offsets out of range.
    """


MESSAGE_CHARACTERS_MAX = 2000
"""Characters of a message in an answer. Names that it quotes may have as many as a request holds."""


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARACTERS_MAX else f"{text[: MESSAGE_CHARACTERS_MAX - 1]}…"


def _kafka_error(
    kind: type[KafkaError], code: int, name: str, message: str, retriable: bool, detail: str
) -> KafkaError:
    return kind(code, name, message, retriable=retriable, detail=detail)


def _unknown_names() -> Any:
    """Return the module with the text for wrong names. By its name: it is above this one, read after a
    mistake.
    """
    return importlib.import_module("penstock.common.habits.unknown_names")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        known = [each for each in globals() if each[0].isupper()]
        importlib.import_module("penstock.common.habits.package_names").refuse_name(
            __name__, name, known, UnknownNameError, place="errors"
        )
