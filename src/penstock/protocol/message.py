"""What every message class shares: equality, a readable repr, bytes at a version.

The classes themselves are generated from the definitions, one module per message, into
`penstock.protocol.messages`. A field that a version lacks keeps its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

if TYPE_CHECKING:
    from penstock.protocol.codec import Codec
    from penstock.protocol.definition import Definition

Records: TypeAlias = Any
"""Record batches: a memoryview when decoded; when encoded anything with a length, or a list of such."""

UnknownTags: TypeAlias = "dict[int, bytes] | None"
"""Tagged fields that the definition does not know, by tag. They are kept and written again."""

M = TypeVar("M", bound="Message")


class Struct:
    """A group of fields inside a message."""

    __slots__ = ("unknown_tags",)
    __hash__ = None  # type: ignore[assignment]

    unknown_tags: UnknownTags

    def _values(self) -> list[tuple[str, Any]]:
        values = [(name, getattr(self, name)) for name in self.__slots__]
        return [*values, ("unknown_tags", self.unknown_tags)] if self.unknown_tags else values

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._values() == other._values()

    def __repr__(self) -> str:
        """The fields that are not at their default."""
        plain = dict(type(self)()._values())
        parts = [f"{name}={value!r}" for name, value in self._values() if value != plain.get(name)]
        return f"{type(self).__name__}({', '.join(parts)})"


class Message(Struct):
    """A whole message. `VERSIONS` are the lowest and highest versions that the definition describes."""

    __slots__ = ()

    NAME: ClassVar[str]
    API_KEY: ClassVar[int | None]
    VERSIONS: ClassVar[tuple[int, int]]
    DEFINITION: ClassVar[Definition | None] = None
    CODECS: ClassVar[dict[int, Codec[Any]]]

    def __init_subclass__(cls) -> None:
        cls.CODECS = {}

    def encode(self, version: int) -> bytes:
        """The bytes of this message at `version`, without header or size.

        Raises:
            EncodeError: a value does not fit its type, or the version cannot carry it.
            UnsupportedVersionError: there is no such version.
        """
        from penstock.protocol.codec import codec_for

        return codec_for(type(self), version).encode(self)

    @classmethod
    def decode(cls: type[M], data: bytes | bytearray | memoryview, version: int) -> M:
        """Read a message from the beginning of `data`; what follows it is ignored.

        Raises:
            DecodeError: the bytes are no such message.
            UnsupportedVersionError: there is no such version.
        """
        from penstock.protocol.codec import codec_for

        return codec_for(cls, version).decode(data, 0)[0]
