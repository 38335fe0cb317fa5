"""Encode and decode messages: one codec per message and version, compiled on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from penstock.errors import EncodeError, UnsupportedVersionError
from penstock.protocol.compiler.runtime import CHUNK_BYTES_MIN

if TYPE_CHECKING:
    from penstock.protocol.schema.definition import Definition


class Encodable(Protocol):
    """The attributes of a message class that a `Codec` needs. The base class `Message` has them."""

    NAME: ClassVar[str]
    VERSIONS: ClassVar[tuple[int, int]]
    DEFINITION: ClassVar[Definition | None]
    CODECS: ClassVar[dict[int, Codec[Any]]]


M = TypeVar("M", bound=Encodable)

Decode = Callable[[Any, int], tuple[M, int]]


class Codec(Generic[M]):
    """Encodes and decodes one message class at one version.

    The decoder and the encoder are compiled on their first use, since many programs need only one of them: a
    broker never writes requests.
    """

    __slots__ = (
        "_has_large", "_is_compiled", "_layout", "_read_view", "_write", "decode", "encode", "message_class",
        "version",
    )  # fmt: skip

    decode: Callable[..., tuple[M, int]]
    """The function ``decode(data, position=0)``, which returns (message, position of the byte after the
    message).

    Trailing bytes are ignored, unknown tagged fields kept. `records` come as views of `data`.
    Raises DecodeError if the bytes are not a message of this class and version.
    """

    encode: Callable[[M], bytes]
    """The function ``encode(message)``, which returns the bytes of a message.

    Raises EncodeError if a value does not fit its type, or this version cannot carry it.
    """

    def __init__(self, message_class: type[M], version: int) -> None:
        low, high = message_class.VERSIONS
        if not isinstance(version, int) or not low <= version <= high:
            raise UnsupportedVersionError(f"{message_class.NAME} has versions {low} to {high}, not {version}")
        self.message_class = message_class
        self.version = version
        self._layout: Any = None
        self._has_large = True
        self._write: Callable[[M, list[Any]], bool] = self._compile_write
        self.encode = self._first_encode
        self.decode = self._first_decode
        self._is_compiled = False
        self._read_view: Decode[M] | None = None

    def write(self, message: M, parts: list[Any]) -> None:
        """Append an encoded message to `parts` as pieces: bytes, and the unchanged values of records fields.

        Raises:
            EncodeError: a value does not fit its type, or the version lacks a field that is set.
        """
        try:
            self._write(message, parts)
        except Exception as error:
            raise self._explain(message, error) from error

    def encode_chunks(self, message: M) -> list[Any]:
        """Return the bytes of a message in chunks, so that large values need not be copied.

        Bytes-like values over 4 KiB are chunks of their own, and so is any records value that is
        not bytes-like, such as a region of a file: only its length is used.

        Raises:
            EncodeError: a value does not fit its type, or the version lacks a field that is set.
        """
        parts: list[Any] = []
        try:
            return join_chunks(parts) if self._write(message, parts) else [b"".join(parts)]
        except Exception as error:
            raise self._explain(message, error) from error

    def join(self, message: M, parts: list[Any]) -> list[Any]:
        """Join adjacent small pieces in `parts`, to which `write` has appended; return the chunks to send.

        Large pieces and pieces that are not bytes-like stay chunks of their own.

        Raises:
            EncodeError: one of the pieces is neither bytes nor records.
        """
        try:
            return join_chunks(parts) if self._has_large else [b"".join(parts)]
        except TypeError as error:
            raise self._explain(message, error) from error

    def _first_decode(self, data: Any, position: int = 0) -> tuple[M, int]:
        """Compile the decoder and store it as `decode`; then decode `data` with it."""
        if not self._is_compiled:
            self._compile_decode(type(data) is bytes)
            self._is_compiled = True
        return self.decode(data, position)

    def _compile_decode(self, from_bytes: bool) -> None:
        from penstock.protocol.compiler.compile import decoder_source

        layout = self.layout
        source, constants = decoder_source(layout, from_views=layout.holds_records and not from_bytes)
        constants["decode_view"] = self._decode_view
        self.decode = self._build("decode", source, constants)

    def _decode_view(self, data: Any, position: int) -> tuple[M, int]:
        """Decode a message from a memoryview, for which the compiled decoder needs a second function."""
        from penstock.protocol.compiler.compile import decoder_source

        if self._read_view is None:
            self._read_view = self._build("decode", *decoder_source(self.layout, from_views=True))
        return self._read_view(data, position)

    def _first_encode(self, message: M) -> bytes:
        """Compile the encoder and store it as `encode`; then encode `message` with it."""
        if self.encode == self._first_encode:
            from penstock.protocol.compiler.compile import encoder_source

            source, constants = encoder_source(self.layout)
            constants["explain"] = self._explain
            self.encode = self._build("encode", source, constants)
        return self.encode(message)

    def _compile_write(self, message: M, parts: list[Any]) -> bool:
        from penstock.protocol.compiler.compile import writer_source

        self._has_large = self.layout.holds_blobs
        self._write = self._build("write", *writer_source(self.layout))
        return self._write(message, parts)

    def _build(self, name: str, source: str, constants: dict[str, Any]) -> Any:
        """Compile Python source and return the function `name` in it."""
        from penstock.protocol.compiler.compile import build, classes_of

        return build(name, self.layout, source, constants, classes_of(self.message_class))

    @property
    def layout(self) -> Any:
        """The layout of the message at this version (`penstock.protocol.compiler.wire_type.StructLayout`)."""
        if self._layout is None:
            from penstock.protocol.compiler.layout import resolve
            from penstock.protocol.schema.loader import load_definition

            definition = self.message_class.DEFINITION or load_definition(self.message_class.NAME)
            self._layout = resolve(definition, self.version)
        return self._layout

    def _explain(self, message: M, error: Exception) -> EncodeError:
        """Return an error that names the field that could not be encoded; slow, for use after a failure."""
        from penstock.common.suggestions import short_repr
        from penstock.protocol.compiler.struct_types import struct_problem

        if not isinstance(message, self.message_class):
            return EncodeError(f"{short_repr(message)} is no {self.message_class.NAME}")
        title = f"{self.message_class.NAME} v{self.version}"
        problem = struct_problem(self.layout, message)
        return EncodeError(f"{title}{problem}" if problem else f"{title}: {error}")


def codec_for(message_class: type[M], version: int) -> Codec[M]:
    """Return the codec of a message class at a version.

    Raises:
        UnsupportedVersionError: the message has no such version.
    """
    codec = message_class.CODECS.get(version)
    if codec is None:
        codec = message_class.CODECS[version] = Codec(message_class, version)
    return codec


def join_chunks(parts: list[Any]) -> list[Any]:
    """Join adjacent small items of `parts`, and drop empty ones; keep large items and non-bytes unchanged."""
    if 0 < sum(map(len, parts)) <= CHUNK_BYTES_MIN:
        try:
            return [b"".join(parts)]
        except TypeError:
            pass  # one of them is opaque
    chunks: list[Any] = []
    small: list[Any] = []
    for part in parts:
        size = len(part)
        if size <= CHUNK_BYTES_MIN and isinstance(part, (bytes, bytearray, memoryview)):
            small.append(part)
        elif size:
            if isinstance(part, str):
                raise TypeError("a string where bytes were expected")
            if small:
                chunks.append(b"".join(small))
                small = []
            chunks.append(part)
    if small:
        chunks.append(b"".join(small))
    return chunks
