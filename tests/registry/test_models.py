"""Tests of dataclasses and pydantic models as schemas: registration, encoding and decoding."""

from __future__ import annotations

import datetime
import enum
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional, Union

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from pydantic import BaseModel, Field

from penstock.errors import ConfigError, DecodeError, EncodeError
from penstock.registry import (
    AvroDeserializer,
    AvroSerializer,
    JSONDeserializer,
    JSONSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    Registry,
    RegistryClient,
    SerializationContext,
    from_schema,
)
from penstock.registry.models import avro_schema_of, json_schema_of


class Kind(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Place:
    city: str
    zip: int | None = None


@dataclass
class Email:
    address: str


@dataclass
class Phone:
    number: str
    country: int = 49


@dataclass
class Order:
    id: int
    when: datetime.datetime
    kind: Kind
    level: Level
    price: Annotated[Decimal, (9, 2)]
    key: uuid.UUID
    day: datetime.date
    time: datetime.time
    place: Place
    contact: Email | Phone
    others: list[Place]
    named: dict[str, Place]
    tags: set[str]
    data: bytes = b"\0\1"
    ok: bool = True
    rate: float = 0.5
    note: Optional[str] = None  # noqa: UP045 - users write both
    mode: Literal["a", "b"] = "a"
    parts: Sequence[int] = field(default_factory=list)
    sizes: Mapping[str, int] = field(default_factory=dict)
    wide: Union[int, str] = "x"  # noqa: UP007


class PlaceModel(BaseModel):
    city: str
    zip: int | None = None


class OrderModel(BaseModel):
    id: int
    kind: Kind
    price: Decimal = Field(max_digits=9, decimal_places=2)
    place: PlaceModel
    when: datetime.datetime
    others: list[PlaceModel] = []
    total: int = Field(default=1, alias="totalCount")


NOON = datetime.datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=datetime.UTC)
ROW = Order(
    1,
    NOON,
    Kind.LARGE,
    Level.HIGH,
    Decimal("1.50"),
    uuid.UUID(int=7),
    NOON.date(),
    datetime.time(1, 2, 3, 4),
    Place("Bern", 3000),
    Phone("1"),
    [Place("Ulm")],
    {"home": Place("Basel")},
    {"x"},
    parts=[1, 2],
    sizes={"a": 1},
)
MODEL = OrderModel(
    id=1, kind=Kind.SMALL, price=Decimal("2.25"), place=PlaceModel(city="Bern"), when=NOON, totalCount=3
)
HERE = SerializationContext("orders")


@pytest.fixture
def client() -> Iterator[RegistryClient]:
    with Registry() as registry, registry.client() as client:
        yield client


@pytest.mark.parametrize("row", [ROW, MODEL])
def test_rows_of_a_class_come_back_as_its_instances(client: RegistryClient, row: Any) -> None:
    kind = type(row)
    data = AvroSerializer(client, kind)(row, HERE)
    assert AvroDeserializer(client, kind)(data, HERE) == row
    assert client.subjects() == ["orders-value"]
    assert json.loads(client.version("orders-value").schema.text)["name"] == kind.__name__
    found = from_schema(pa.array([data]), "avro", client).whole().to_pylist()[0]
    assert found["place"]["city"] == "Bern"
    assert found["price"] == row.price
    assert found["kind"] == row.kind.value

    there = SerializationContext("json")
    data = JSONSerializer(kind, client)(row, there)
    assert JSONDeserializer(kind, schema_registry_client=client)(data, there) == row


def test_the_schema_of_a_class() -> None:
    text = avro_schema_of(Order)
    fastavro.parse_schema(json.loads(text))
    fields = {each["name"]: each for each in json.loads(text)["fields"]}
    assert fields["kind"]["type"] == {"type": "enum", "name": "Kind", "symbols": ["small", "large"]}
    assert fields["level"]["type"]["symbols"] == ["LOW", "HIGH"]
    assert fields["place"]["type"]["fields"][1] == {"name": "zip", "type": ["null", "long"], "default": None}
    assert fields["others"]["type"] == {"type": "array", "items": "Place"}
    assert fields["wide"] == {"name": "wide", "type": ["string", "long"], "default": "x"}
    assert fields["parts"]["default"] == []
    assert "default" not in fields["data"]
    assert "default" not in fields["id"]
    assert [each["name"] for each in json.loads(avro_schema_of(OrderModel))["fields"]][-1] == "totalCount"

    text = json_schema_of(Order)
    assert json.loads(text)["required"][:2] == ["id", "when"]
    assert json.loads(text)["$defs"]["Place"]["properties"]["city"] == {"type": "string"}
    assert json.loads(json_schema_of(OrderModel))["title"] == "OrderModel"


def test_a_class_that_grows_reads_what_it_wrote_before(client: RegistryClient) -> None:
    @dataclass
    class Point:
        x: int

    old = AvroSerializer(client, Point)(Point(1), HERE)

    @dataclass
    class Wider:
        x: float
        y: int = 5

    Wider.__name__ = "Point"
    AvroSerializer(client, Wider)(Wider(1.0), HERE)
    assert AvroDeserializer(client, Wider)(old, HERE) == Wider(1.0, 5)


def test_what_has_no_place_in_a_schema_is_said(client: RegistryClient) -> None:
    @dataclass
    class Money:
        amount: Decimal

    @dataclass
    class Anything:
        value: complex

    @dataclass
    class Pair:
        value: tuple[int, str]

    with pytest.raises(ConfigError, match=r"Money\.amount: a decimal needs its digits"):
        AvroSerializer(client, Money)
    with pytest.raises(ConfigError, match=r"Anything\.value: Avro has no type for complex"):
        AvroSerializer(client, Anything)
    with pytest.raises(ConfigError, match=r"Anything\.value: JSON has no type for complex"):
        JSONSerializer(Anything, client)
    with pytest.raises(ConfigError, match="Avro has no type for tuple"):
        AvroSerializer(client, Pair)
    with pytest.raises(ConfigError, match="is no schema: its text, a dataclass or a pydantic model"):
        AvroSerializer(client, int)
    data = AvroSerializer(client, Place)(Place("Bern"), HERE)
    with pytest.raises(DecodeError, match="the value is no PlaceModel"):
        JSONDeserializer(PlaceModel, conf={"validate": False})(b"\0\0\0\0\1{}", HERE)
    assert AvroDeserializer(client, Place, lambda found, _: found["city"])(data, HERE) == "Bern"


def test_rows_of_several_kinds_become_protobuf_messages(client: RegistryClient) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="place.proto", syntax="proto3")
    message = file.message_type.add(name="Place")
    message.field.add(name="city", number=1, type=9, label=1)
    message.field.add(name="zip", number=2, type=3, label=1)
    pool = DescriptorPool()
    pool.Add(file)
    kind = GetMessageClass(pool.FindMessageTypeByName("Place"))
    write, read = ProtobufSerializer(kind, client), ProtobufDeserializer(kind)
    wanted = kind(city="Bern", zip=3000)
    for row in (
        wanted,
        Place("Bern", 3000),
        PlaceModel(city="Bern", zip=3000),
        {"city": "Bern", "zip": 3000},
    ):
        assert read(write(row, HERE), HERE) == wanted
    with pytest.raises(EncodeError, match=r"does not fit Place: .*size"):
        write({"size": 1}, HERE)
    with pytest.raises(EncodeError, match="a Place is needed, not int"):
        write(5, HERE)
