"""The state of a schema registry, and its decisions: subjects, versions, ids, compatibility, modes.

No I/O. The methods that decide about a request return the records that would change the state. The state
changes when the records are read back from the log, in this and every other registry on the topic.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import DecodeError, PenstockError
from penstock.registry.comparison import misreadings
from penstock.registry.schemas import AVRO, JSON, PROTOBUF, TYPES, Reference, Schema, references_in

LEVELS = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")
DEFAULT_CONTEXT = "."
ID_END = 1 << 31
MARK_KEY = {"magic": 0, "keytype": "NOOP"}
"""The key of the record that stores each context's highest id, so that ids of deleted schemas are not reused.

Confluent's registry and Karapace ignore records of type NOOP, with any value. Confluent's registry writes
NOOP records too, without values. In the keys of those records `keytype` comes first, so that compaction
treats them as different keys.
"""
SUBJECTS_MAX = 100_000
VERSIONS_MAX = 10_000

LogRecord = tuple[dict[str, Any], dict[str, Any] | None]
"""A record of the topic that stores schemas: its key, and its value or None for a deletion (tombstone)."""


class RefusedError(PenstockError):
    """Raised if a request is refused, with HTTP status, error code and message as in Confluent's registry."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def no_subject(subject: str) -> RefusedError:
    """Return the error for a subject that does not exist."""
    return RefusedError(404, 40401, f"Subject '{subject}' not found.")


def no_version(version: object) -> RefusedError:
    """Return the error for a version that does not exist."""
    return RefusedError(404, 40402, f"Version {version} not found.")


def no_schema(what: object = "") -> RefusedError:
    """Return the error for a schema id or GUID that does not exist."""
    return RefusedError(404, 40403, f"Schema {what} not found" if what != "" else "Schema not found")


def no_leader() -> RefusedError:
    """Return the error for a write while no registry is elected."""
    return RefusedError(500, 50004, "No registry is elected to write: try again in some seconds")


def stopped() -> RefusedError:
    """Return the error for a request that was in progress when the registry was stopped."""
    return RefusedError(
        500,
        50004,
        "This registry is stopped, and what was asked for may have been done: try again at another",
    )


@dataclass
class Version:
    """A version of a subject: its number, and the id and the schema registered under it."""

    subject: str
    number: int
    id: int
    schema: Schema
    is_deleted: bool = False
    more: Mapping[str, Any] | None = None
    """The ``metadata`` and ``ruleSet`` with which the version was registered."""

    def as_json(self) -> dict[str, Any]:
        """Return the version as JSON for answers."""
        found: dict[str, Any] = {
            "subject": self.subject,
            "version": self.number,
            "id": self.id,
            "guid": guid_of(self.schema),
            **schema_json(self.schema, self.more),
        }
        return found


def schema_json(schema: Schema, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a schema as JSON for answers."""
    return {
        **({} if schema.type == AVRO else {"schemaType": schema.type}),
        **schema.as_json(),
        **(more or {}),
    }


def guid_of(schema: Schema) -> str:
    """Return the GUID of a schema, which is the same in every registry."""
    digest = hashlib.md5(json.dumps(schema.as_json(), sort_keys=True).encode(), usedforsecurity=False)
    return str(uuid.UUID(bytes=digest.digest()))


def context_of(subject: str) -> str:
    """Return the context of a subject, such as ``.team`` in ``:.team:orders-value``; the default is a dot."""
    return subject[1:].partition(":")[0] if subject.startswith(":.") else DEFAULT_CONTEXT


class RegistryState:
    """Subjects and their versions, compatibility levels and modes; changed only by records of the log."""

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, Version]] = {}
        self.ids: dict[str, dict[int, Schema]] = {}
        self.configs: dict[str | None, dict[str, Any]] = {}
        self.modes: dict[str | None, str] = {}
        self._holders: dict[tuple[str, int], set[tuple[str, int]]] = {}
        """A dict from (context, id) to the versions that use the id, each as (subject, version number)."""
        self._by_schema: dict[tuple[str, Schema], int] = {}
        self._canonical: dict[Schema, Schema] = {}
        self._highest: dict[str, int] = {}
        """A dict from context to the highest id ever assigned in it, according to the records of the log."""
        self._marked: dict[str, int] = {}
        """A dict from context to the highest id that a NOOP record stores, even if the id's schema is
        deleted."""

    # --- the log ---

    def apply(self, key: Mapping[str, Any], value: Mapping[str, Any] | None) -> None:
        """Apply one record to the state; records of unknown kinds are ignored."""
        kind, subject = key.get("keytype"), key.get("subject")
        if kind == "SCHEMA" and isinstance(subject, str):
            self._apply_schema(subject, int(key["version"]), value)
        elif kind == "CONFIG":
            _put(self.configs, subject, None if value is None else dict(value))
        elif kind == "MODE":
            _put(self.modes, subject, None if value is None else str(value.get("mode")))
        elif kind == "NOOP" and isinstance(value, Mapping):
            self._apply_mark(value.get("highestIds"))
        elif kind in ("DELETE_SUBJECT", "CLEAR_SUBJECT") and isinstance(subject, str) and value is not None:
            last = int(value.get("version", 1 << 31))
            for version in self.subjects.get(subject, {}).values():
                version.is_deleted |= version.number <= last

    def _apply_schema(self, subject: str, number: int, value: Mapping[str, Any] | None) -> None:
        if value is None:
            versions = self.subjects.get(subject, {})
            gone = versions.pop(number, None)
            if not versions:
                self.subjects.pop(subject, None)
            if gone is not None:
                self._drop(gone)
            return
        schema = Schema(
            str(value["schema"]), value.get("schemaType") or AVRO, references_in(value.get("references"))
        )
        more = {name: value[name] for name in ("metadata", "ruleSet") if value.get(name) is not None}
        version = Version(subject, number, int(value["id"]), schema, bool(value.get("deleted")), more or None)
        context = context_of(subject)
        before = self.subjects.setdefault(subject, {}).get(number)
        self.subjects[subject][number] = version
        self._holders.setdefault((context, version.id), set()).add((subject, number))
        if before is not None and before.id != version.id:
            self._drop(before)
        self._highest[context] = max(version.id, self._highest.get(context, 0))
        self.ids.setdefault(context, {})[version.id] = schema
        self._by_schema.setdefault((context, self._as_compared(schema)), version.id)

    def _drop(self, gone: Version) -> None:
        """Remove the id and the schema of a deleted version, unless another version uses the id."""
        context = context_of(gone.subject)
        holders = self._holders[context, gone.id]
        holders.discard((gone.subject, gone.number))
        if holders:
            return
        del self._holders[context, gone.id]
        self.ids[context].pop(gone.id, None)
        key = context, self._as_compared(gone.schema)
        if self._by_schema.get(key) == gone.id:
            del self._by_schema[key]
        self._canonical.pop(gone.schema, None)

    def _apply_mark(self, found: object) -> None:
        for context, number in found.items() if isinstance(found, Mapping) else ():
            if isinstance(number, int) and 0 < number < ID_END:
                self._marked[context] = max(number, self._marked.get(context, 0))
                self._highest[context] = max(number, self._highest.get(context, 0))

    # --- looking ---

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Return the versions of a subject, oldest first; raise `RefusedError` if it has none."""
        found = self.subjects.get(subject, {})
        chosen = [found[number] for number in sorted(found) if deleted or not found[number].is_deleted]
        if not chosen:
            raise no_subject(subject)
        return chosen

    def version(self, subject: str, number: str, *, deleted: bool = False) -> Version:
        """Return a version of a subject: ``latest``, -1 or a number; raise `RefusedError` if missing."""
        wanted = version_number(number)
        found = self.versions(subject, deleted=deleted)
        if wanted is None:
            return found[-1]
        for version in found:
            if version.number == wanted:
                return version
        raise no_version(wanted)

    def by_id(self, schema_id: int, subject: str | None = None) -> Schema:
        """Return the schema with an id, in a subject's context; raise `RefusedError` if there is none."""
        context = context_of(subject or "")
        found = self.ids.get(context, {}).get(schema_id)
        if found is None:
            raise no_schema(schema_id)
        return found

    def by_guid(self, guid: str) -> Schema:
        """Return the schema with a GUID; raise `RefusedError` if there is none."""
        for schemas in self.ids.values():
            for schema in schemas.values():
                if guid_of(schema) == guid:
                    return schema
        raise no_schema(guid)

    def all_versions(self, *, deleted: bool = False) -> list[Version]:
        """Return every version of every subject."""
        return [
            version
            for name in sorted(self.subjects)
            for _, version in sorted(self.subjects[name].items())
            if deleted or not version.is_deleted
        ]

    def referring_to(self, subject: str, number: int) -> list[int]:
        """Return the ids of the schemas that refer to a version of a subject."""
        return sorted(
            {
                version.id
                for version in self.all_versions()
                if any(
                    (each.subject, each.version) == (subject, number) for each in version.schema.references
                )
            }
        )

    def referenced(self, schema: Schema) -> dict[str, Schema]:
        """Return the schemas that a schema refers to, at any depth, in order of dependency."""
        found: dict[str, Schema] = {}

        def collect(each: Schema, depth: int) -> None:
            if depth > 32 or len(found) > 1_000:
                raise RefusedError(422, 42201, "Invalid schema: too many references")
            for reference in each.references:
                if reference.name not in found:
                    try:
                        other = self.version(reference.subject, str(reference.version)).schema
                    except RefusedError:
                        raise RefusedError(
                            422,
                            42201,
                            f'Invalid schema: no schema reference found for subject "{reference.subject}" '
                            f"and version {reference.version}",
                        ) from None
                    collect(other, depth + 1)
                    found[reference.name] = other

        collect(schema, 0)
        return found

    def level(self, subject: str) -> str:
        """Return the compatibility level of a subject, or the global level if it has none of its own."""
        for key in (subject, None):
            found = self.configs.get(key, {}).get("compatibilityLevel")
            if found:
                return str(found)
        return "BACKWARD"

    def mode(self, subject: str | None) -> str:
        """Return the mode of a subject, or the global mode if it has none of its own."""
        return self.modes.get(subject) or self.modes.get(None) or "READWRITE"

    # --- deciding ---

    def checked(self, body: Mapping[str, Any], *, normalize: bool = False) -> Schema:
        """Return the canonical schema in a request's body; raise `RefusedError` if the schema is invalid."""
        text, kind = body.get("schema"), body.get("schemaType") or AVRO
        if kind not in TYPES:
            raise RefusedError(422, 42201, f"Invalid schema type {kind}")
        if not isinstance(text, str) or not text.strip():
            raise RefusedError(422, 42201, "Empty schema")
        try:
            schema = Schema(text, kind, references_in(body.get("references")))
            return canonical(schema, self.referenced(schema), normalize=normalize)
        except DecodeError as error:
            raise RefusedError(422, 42201, f"Invalid schema {text:.200}, details: {error}") from None

    def same(self, subject: str, schema: Schema, *, deleted: bool = False) -> Version | None:
        """Return the version of a subject that contains the given schema, or None if no version does."""
        for version in self.subjects.get(subject, {}).values():
            if self._as_compared(version.schema) == schema and (deleted or not version.is_deleted):
                return version
        return None

    def _as_compared(self, schema: Schema) -> Schema:
        """Return a stored schema in canonical form, since other registries may store it in another form."""
        found = self._canonical.get(schema)
        if found is None:
            try:
                found = canonical(schema, self.referenced(schema))
            except (DecodeError, RefusedError):
                found = schema  # of a kind that another registry takes, and this one does not
            self._canonical[schema] = found
        return found

    def register(
        self, subject: str, body: Mapping[str, Any], *, normalize: bool = False
    ) -> tuple[Version, list[LogRecord]]:
        """Return the new or existing version of a schema, and the records to write for it."""
        normalize = normalize or bool(self.configs.get(subject, {}).get("normalize"))
        schema = self.checked(body, normalize=normalize)
        known = self.same(subject, schema)
        if known is not None:
            return known, []
        mode = self.mode(subject)
        if mode in ("READONLY", "READONLY_OVERRIDE"):
            raise RefusedError(422, 42205, f"Subject {subject} is in read-only mode")
        given = body.get("id")
        if given is not None and int(given) >= 0 and mode != "IMPORT":
            raise RefusedError(422, 42205, f"Subject {subject} is not in import mode")
        if mode != "IMPORT":
            problems = self.incompatibilities(subject, schema)
            if problems:
                raise RefusedError(
                    409,
                    409,
                    f"Schema being registered is incompatible with an earlier schema for subject "
                    f'"{subject}", details: [{", ".join(problems)}]',
                )
        numbers = self.subjects.get(subject, {})
        if len(numbers) >= VERSIONS_MAX or (not numbers and len(self.subjects) >= SUBJECTS_MAX):
            raise RefusedError(422, 42201, "The registry keeps no more subjects or versions")
        context = context_of(subject)
        schema_id = self._by_schema.get((context, schema))
        if mode == "IMPORT" and given is not None and int(given) >= 0:
            schema_id = int(given)
            if self.ids.get(context, {}).get(schema_id, schema) != schema:
                raise RefusedError(422, 42205, f"Overwrite new schema with id {schema_id} is not permitted.")
        if schema_id is None:
            schema_id = self._highest.get(context, 0) + 1
        number = max(numbers, default=0) + 1
        if mode == "IMPORT" and body.get("version"):
            number = int(body["version"])
        more = {name: body[name] for name in ("metadata", "ruleSet") if body.get(name) is not None}
        version = Version(subject, number, schema_id, schema, False, more)
        mark = self._mark(subject) if number in numbers else []  # an import may overwrite a version
        return version, [*mark, schema_record(version)]

    def incompatibilities(
        self, subject: str, schema: Schema, against: Iterable[Version] | None = None, level: str | None = None
    ) -> list[str]:
        """Return the reasons why a compatibility level forbids a schema as the next version of a subject."""
        level = level or self.level(subject)
        if level == "NONE":
            return []
        if against is None:
            known = [each for each in self.subjects.get(subject, {}).values() if not each.is_deleted]
            against = sorted(known, key=lambda each: -each.number)
            if not level.endswith("_TRANSITIVE"):
                against = against[:1]
        found: list[str] = []
        for version in against:
            problems = self._between(schema, version.schema, level)
            if problems:
                found += [
                    *problems,
                    f"{{oldSchemaVersion: {version.number}}}",
                    f"{{compatibility: '{level}'}}",
                ]
        return found

    def _between(self, new: Schema, old: Schema, level: str) -> list[str]:
        if new.type != old.type:
            return ["Incompatible because of different schema type"]
        found: list[str] = []
        if level.startswith(("BACKWARD", "FULL")):
            found += misreadings(new, self.referenced(new), old, self.referenced(old))
        if level.startswith(("FORWARD", "FULL")):
            found += misreadings(old, self.referenced(old), new, self.referenced(new))
        return list(dict.fromkeys(found))

    def delete_version(self, subject: str, number: str, *, permanent: bool) -> tuple[int, list[LogRecord]]:
        """Return the number of a version, and the records to write for its deletion."""
        self._refuse_read_only(subject)
        version = self.version(subject, number, deleted=permanent)
        if self.referring_to(subject, version.number):
            raise RefusedError(
                422,
                42206,
                f"One or more references exist to the schema {{subject={subject},version={version.number}}}.",
            )
        if permanent:
            if not version.is_deleted:
                raise RefusedError(
                    404,
                    40407,
                    f"Subject '{subject}' Version {version.number} was not deleted first before being "
                    "permanently deleted",
                )
            return version.number, [*self._mark(subject), (schema_record(version)[0], None)]
        gone = Version(subject, version.number, version.id, version.schema, True, version.more)
        return version.number, [schema_record(gone)]

    def delete_subject(self, subject: str, *, permanent: bool) -> tuple[list[int], list[LogRecord]]:
        """Return the version numbers of a subject, and the records to write for its deletion."""
        self._refuse_read_only(subject)
        every = self.versions(subject, deleted=True)
        found = every if permanent else [each for each in every if not each.is_deleted]
        if not found:
            raise RefusedError(
                404, 40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
            )
        for version in found:
            if not version.is_deleted and self.referring_to(subject, version.number):
                raise RefusedError(
                    422,
                    42206,
                    f"One or more references exist to the schema {{subject={subject},"
                    f"version={version.number}}}.",
                )
        numbers = [version.number for version in found]
        if not permanent:
            key = {"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}
            return numbers, [(key, {"subject": subject, "version": numbers[-1]})]
        if any(not version.is_deleted for version in found):
            raise RefusedError(
                404, 40405, f"Subject '{subject}' was not deleted first before being permanently deleted"
            )
        records = self._mark(subject)
        records += [(schema_record(version)[0], None) for version in found]
        for kind, kept in (("CONFIG", self.configs), ("MODE", self.modes)):
            if subject in kept:
                records.append(({"keytype": kind, "subject": subject, "magic": 0}, None))
        return numbers, records

    def _mark(self, subject: str) -> list[LogRecord]:
        """Return the record that stores the highest id, so that ids of deleted schemas are never reused."""
        context = context_of(subject)
        highest = self._highest.get(context, 0)
        if highest <= self._marked.get(context, 0):
            return []
        return [({**MARK_KEY}, {"highestIds": {**self._marked, context: highest}})]

    def set_config(
        self, subject: str | None, body: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[LogRecord]]:
        """Return the settings in a request, and records that store them for a subject (None: globally)."""
        level = body.get("compatibility") or body.get("compatibilityLevel")
        if level is not None and str(level).upper() not in LEVELS:
            raise RefusedError(
                422,
                42203,
                "Invalid compatibility level. Valid values are none, backward, forward, full, "
                "backward_transitive, forward_transitive, and full_transitive",
            )
        stored = {**self.configs.get(subject, {})}
        for name in _CONFIG_FIELDS:
            if body.get(name) is not None:
                stored[name] = body[name]
        if level is not None:
            stored["compatibilityLevel"] = str(level).upper()
        return dict(body), [({"keytype": "CONFIG", "subject": subject, "magic": 0}, stored)]

    def set_mode(self, subject: str | None, mode: object, *, force: bool) -> list[LogRecord]:
        """Return the records that set the mode of a subject, or the global mode."""
        if mode not in MODES:
            raise RefusedError(
                422,
                42204,
                "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, and IMPORT",
            )
        if mode == "IMPORT" and not force:
            names = self.subjects if subject is None else [name for name in self.subjects if name == subject]
            if any(not each.is_deleted for name in names for each in self.subjects[name].values()):
                raise RefusedError(422, 42205, "Cannot import since found existing subjects")
        return [({"keytype": "MODE", "subject": subject, "magic": 0}, {"mode": mode})]

    def _refuse_read_only(self, subject: str) -> None:
        if self.mode(subject) in ("READONLY", "READONLY_OVERRIDE"):
            raise RefusedError(422, 42205, f"Subject {subject} is in read-only mode")


_CONFIG_FIELDS = (
    "alias",
    "normalize",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
    "validateFields",
)


def _put(kept: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        kept.pop(key, None)
    else:
        kept[key] = value


def version_number(text: str) -> int | None:
    """Parse a version in a URL: return its number, or None for ``latest`` or -1.

    Raises `RefusedError` for any other text.
    """
    if text in ("latest", "-1"):
        return None
    if text.isascii() and text.isdigit() and 0 < int(text) < 1 << 31:
        return int(text)
    raise RefusedError(
        422,
        42202,
        f"The specified version '{text}' is not a valid version id. Allowed values are between "
        '[1, 2^31-1] and the string "latest"',
    )


def schema_record(version: Version) -> LogRecord:
    """Return the log record that stores a version, as Confluent's registry writes it."""
    key = {"keytype": "SCHEMA", "subject": version.subject, "version": version.number, "magic": 1}
    value: dict[str, Any] = {"subject": version.subject, "version": version.number, "id": version.id}
    if version.schema.type != AVRO:
        value["schemaType"] = version.schema.type
    if version.schema.references:
        value["references"] = [each.as_json() for each in version.schema.references]
    return key, {
        **value,
        **(version.more or {}),
        "schema": version.schema.text,
        "deleted": version.is_deleted,
    }


def canonical(schema: Schema, referenced: Mapping[str, Schema], *, normalize: bool = False) -> Schema:
    """Return a schema in the form in which it is stored and compared; raise `DecodeError` if invalid."""
    if schema.type == PROTOBUF:
        from penstock.registry.protobuf.schema import parse_protobuf, proto_text

        file = parse_protobuf(schema.text, {name: each.text for name, each in referenced.items()})
        return Schema(proto_text(file), PROTOBUF, _sorted(schema.references))
    if schema.type == JSON:
        from penstock.registry.json_schema.columns import parse_json_schema

        found = parse_json_schema(schema.text)
    else:
        from penstock.registry.avro.schema import loaded, parse_avro

        parse_avro(schema.text, [each.text for each in referenced.values()])
        found = loaded(schema.text)
        if isinstance(found, dict) and found.keys() == {"type"} and isinstance(found["type"], str):
            found = found["type"]  # {"type": "string"} is "string"
    text = json.dumps(found, separators=(",", ":"), sort_keys=normalize, ensure_ascii=False)
    return Schema(text, schema.type, _sorted(schema.references))


def _sorted(references: Iterable[Reference]) -> tuple[Reference, ...]:
    return tuple(sorted(references, key=lambda each: each.name))
