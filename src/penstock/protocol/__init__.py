"""Kafka's wire protocol: messages described as data, codecs compiled from them, frames and headers.

Nothing here does I/O. `codec_for` returns the codec of a message, `penstock.protocol.messages` holds the
message classes, `API_TABLE` lists the APIs and their versions, and `RELEASES` the API versions of each
release of Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.protocol.api import API_TABLE as API_TABLE
    from penstock.protocol.api import Api as Api
    from penstock.protocol.api import ApiKey as ApiKey
    from penstock.protocol.codec import Codec as Codec
    from penstock.protocol.codec import codec_for as codec_for
    from penstock.protocol.error_codes import ErrorCode as ErrorCode
    from penstock.protocol.error_codes import error_for as error_for
    from penstock.protocol.framing import FrameReader as FrameReader
    from penstock.protocol.inspect.json_form import from_json as from_json
    from penstock.protocol.inspect.json_form import to_json as to_json
    from penstock.protocol.loaded_classes import load_message as load_message
    from penstock.protocol.message import Message as Message
    from penstock.protocol.releases import RELEASES as RELEASES
    from penstock.protocol.releases import Release as Release
    from penstock.protocol.releases import api_versions as api_versions
    from penstock.protocol.releases import release as release

_HOMES = {
    "API_TABLE": "api",
    "Api": "api",
    "ApiKey": "api",
    "Codec": "codec",
    "ErrorCode": "error_codes",
    "FrameReader": "framing",
    "Message": "message",
    "RELEASES": "releases",
    "Release": "releases",
    "api_versions": "releases",
    "codec_for": "codec",
    "error_for": "error_codes",
    "from_json": "inspect.json_form",
    "load_message": "loaded_classes",
    "to_json": "inspect.json_form",
    "release": "releases",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
