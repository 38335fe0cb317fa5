"""The base of all message classes: equality, a readable repr, encoding and decoding at a version.

The classes themselves are generated from the definitions, one module per message, into
`penstock.protocol.messages`. A field that a version lacks keeps its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, overload

from penstock.protocol.codec import Codec, codec_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.protocol.schema.definition import Definition

    Self = TypeVar("Self", bound="MadeLate[Any]")

Records: TypeAlias = Any
"""The type of record batches in messages. Decoded messages have a memoryview; to encode, any object with a
length, or a list of such objects, is accepted.
"""

UnknownTags: TypeAlias = "dict[int, bytes] | None"
"""A dict from tag to the bytes of a tagged field that the definition does not have. They are stored when a
message is decoded, and written again when it is encoded."""

M = TypeVar("M", bound="Message")
S = TypeVar("S", bound="Struct")


class Struct:
    """A struct within a message: named fields."""

    __slots__ = ("unknown_tags",)
    __hash__ = None  # type: ignore[assignment]

    unknown_tags: UnknownTags

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return _values(self) == _values(other)

    def __repr__(self) -> str:
        """Return the class name and the fields that are not at their defaults."""
        plain = dict(_values(type(self)()))
        parts = [f"{name}={value!r}" for name, value in _values(self) if value != plain.get(name)]
        return f"{type(self).__name__}({', '.join(parts)})"


def _values(struct: Any) -> list[tuple[str, Any]]:
    """Return (name, value) of a struct's attributes, and its unknown tagged fields if it has any."""
    names = [slot.removeprefix("_") for slot in struct.__slots__]
    if struct.unknown_tags:
        names.append("unknown_tags")
    return [(name, getattr(struct, name)) for name in names]


class MadeLate(Generic[S]):
    """A descriptor for an attribute that holds a struct; the default struct is created on first use.

    Most of these structs are never sent and never read, and creating them would be a quarter of the work of
    decoding a message. The slot of the attribute, whose name has a leading underscore, holds None until then.
    """

    __slots__ = ("_get", "_make", "_set")

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        slot = owner.__dict__[f"_{name}"]
        self._get, self._set = slot.__get__, slot.__set__

    @overload
    def __get__(self: Self, holder: None, owner: type) -> Self: ...

    @overload
    def __get__(self, holder: Struct, owner: type) -> S: ...

    def __get__(self, holder: Struct | None, owner: type) -> Any:
        if holder is None:
            return self
        value = self._get(holder)
        if value is None:
            value = self._make()
            self._set(holder, value)
        return value

    def __set__(self, holder: Struct, value: S) -> None:
        self._set(holder, value)


class Message(Struct):
    """A whole message. `VERSIONS` are the lowest and highest versions of its definition."""

    __slots__ = ()

    NAME: ClassVar[str]
    API_KEY: ClassVar[int | None]
    VERSIONS: ClassVar[tuple[int, int]]
    DEFINITION: ClassVar[Definition | None] = None
    CODECS: ClassVar[dict[int, Codec[Any]]]

    def __init_subclass__(cls) -> None:
        cls.CODECS = {}

    def encode(self, version: int) -> bytes:
        """Return the bytes of this message at `version`, without header or size.

        Raises:
            EncodeError: a value does not fit its type, or the version lacks a field that is set.
            UnsupportedVersionError: there is no such version.
        """
        return codec_for(type(self), version).encode(self)

    @classmethod
    def decode(cls: type[M], data: bytes | bytearray | memoryview, version: int) -> M:
        """Return the message at the beginning of `data`; bytes after it are ignored.

        Raises:
            DecodeError: the bytes are not a message of this class.
            UnsupportedVersionError: there is no such version.
        """
        return codec_for(cls, version).decode(data, 0)[0]
