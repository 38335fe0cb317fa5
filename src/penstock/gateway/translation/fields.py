"""Conversion of messages between versions by the names of their fields.

Fields that exist in both versions are copied; new fields get their defaults. A field that would be lost is an
error if it is set, unless its definition marks it as ignorable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from penstock.gateway.translation.errors import NotForwarded
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.compile import classes_of
from penstock.protocol.compiler.struct_types import has_default
from penstock.protocol.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.protocol.compiler.wire_type import StructLayout
    from penstock.protocol.schema.definition import FieldSpec, StructSpec

M = TypeVar("M", bound=Message)


def convert(message: M, source: int, target: int, *, may_lose: bool = False) -> M:
    """Return a copy of a message of version `source` as one of version `target`.

    With `may_lose`, fields that `target` lacks are dropped, such as leader epochs in responses.

    Raises:
        Refused: a field is set that `target` lacks, or is null and not nullable in `target`.
        UnsupportedVersionError: the message has no such version.
    """
    converted: M = _plan(type(message), source, target).apply(message, may_lose)
    return converted


class _Copy(NamedTuple):
    """A field that exists in both versions, with the conversion of its value."""

    attribute: str
    name: str
    nullable: bool
    is_array: bool
    inner: _StructPlan | None


class _StructPlan:
    """The conversion of a struct between two versions: fields to copy, and fields that must not be set."""

    __slots__ = ("_copies", "_keeps_tags", "_layout", "_make", "_strict", "_title")

    def __init__(
        self,
        spec: StructSpec,
        layout: StructLayout,
        classes: Mapping[str, Any],
        target: int,
        keeps_tags: bool,
        title: str,
    ) -> None:
        self._layout = layout
        self._make = classes[spec.name]
        self._keeps_tags = keeps_tags
        self._title = title
        self._copies: list[_Copy] = []
        self._strict: list[FieldSpec] = []
        for field in spec.fields:
            if layout.version not in field.versions:
                continue
            if target not in field.versions:
                if not field.ignorable:
                    self._strict.append(field)
                continue
            field_type = field.type_at(target)
            inner = None
            if field_type.is_struct:
                inner = _StructPlan(
                    layout.structs[field_type.base], layout, classes, target, keeps_tags, title
                )
            self._copies.append(
                _Copy(field.attribute, field.name, target in field.nullable, field_type.is_array, inner)
            )

    def apply(self, struct: Any, may_lose: bool) -> Any:
        """Return `struct` as a struct of the target version."""
        for field in () if may_lose else self._strict:
            if not has_default(self._layout, field, struct):
                raise NotForwarded(f"{self._title} has no field {field.name}, which is set")
        made = self._make()
        for attribute, name, nullable, is_array, inner in self._copies:
            value = getattr(struct, attribute)
            if value is None:
                if not nullable:
                    raise NotForwarded(f"{self._title} has no null for {name}")
            elif inner is not None:
                if is_array:
                    value = [inner.apply(each, may_lose) for each in value]
                else:
                    value = inner.apply(value, may_lose)
            elif is_array:
                value = list(value)
            setattr(made, attribute, value)
        if self._keeps_tags:
            made.unknown_tags = struct.unknown_tags
        return made


_PLANS: dict[tuple[type[Message], int, int], _StructPlan] = {}


def _plan(message_class: type[Message], source: int, target: int) -> _StructPlan:
    """Return the (cached) conversion of a message class between two versions."""
    made = _PLANS.get((message_class, source, target))
    if made is None:
        made = _PLANS[message_class, source, target] = _make_plan(message_class, source, target)
    return made


def _make_plan(message_class: type[Message], source: int, target: int) -> _StructPlan:
    layout = codec_for(message_class, source).layout
    keeps_tags = layout.flexible and codec_for(message_class, target).layout.flexible
    title = f"{message_class.NAME} {target}"
    return _StructPlan(layout.spec, layout, classes_of(message_class), target, keeps_tags, title)
