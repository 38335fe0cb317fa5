"""Schemas of keys and values: registry client and server, wire formats, Arrow columns and serializers.

Every name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.registry.client import RegistryClient as RegistryClient
    from penstock.registry.client import RegistryError as RegistryError
    from penstock.registry.dead_letters import DeadLetters as DeadLetters
    from penstock.registry.decoding import Decoded as Decoded
    from penstock.registry.decoding import Decoder as Decoder
    from penstock.registry.decoding import from_schema as from_schema
    from penstock.registry.encoding import to_schema as to_schema
    from penstock.registry.schemas import Reference as Reference
    from penstock.registry.schemas import RegisteredSchema as RegisteredSchema
    from penstock.registry.schemas import Schema as Schema
    from penstock.registry.serializers import AvroDeserializer as AvroDeserializer
    from penstock.registry.serializers import AvroSerializer as AvroSerializer
    from penstock.registry.serializers import JSONDeserializer as JSONDeserializer
    from penstock.registry.serializers import JSONSerializer as JSONSerializer
    from penstock.registry.serializers import ProtobufDeserializer as ProtobufDeserializer
    from penstock.registry.serializers import ProtobufSerializer as ProtobufSerializer
    from penstock.registry.serializers import SerializationContext as SerializationContext
    from penstock.registry.server.registry import Registry as Registry

_HOMES = {
    "DeadLetters": "dead_letters",
    "Decoded": "decoding",
    "Decoder": "decoding",
    "Reference": "schemas",
    "RegisteredSchema": "schemas",
    "Registry": "server.registry",
    "RegistryClient": "client",
    "RegistryError": "client",
    "Schema": "schemas",
    "AvroDeserializer": "serializers",
    "AvroSerializer": "serializers",
    "JSONDeserializer": "serializers",
    "JSONSerializer": "serializers",
    "ProtobufDeserializer": "serializers",
    "ProtobufSerializer": "serializers",
    "SerializationContext": "serializers",
    "from_schema": "decoding",
    "to_schema": "encoding",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
