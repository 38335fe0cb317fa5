"""Makes responses with the error code of a fault, in the form that the API uses for errors.

A response has the structure of its request: an entry for each topic and partition in the request. So the
response is built from both message definitions in parallel. For the entries that must not fail, the broker
handles a request with only these entries.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator
from typing import Any

from penstock.broker.context import CloseConnection, Context
from penstock.broker.faults.entities import NO_ENTITY, Entity
from penstock.broker.faults.faults import Fault, Faults
from penstock.broker.faults.requests import Request
from penstock.broker.requests.routes import Answer, Interceptor, VersionedRoute, when_answered
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_response import ResponseParts, error_arrays, fields_at
from penstock.protocol.schema.definition import FieldSpec, StructSpec

CodeOf = Callable[[Entity], int]
"""A function that returns the error code for an entity, or 0 if the entity must not fail."""

WHOLE_ANSWER_CODES = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    )
)
"""Error codes that are put into the top-level `error_code` of a response, if it has this field, instead
of into its entries.
"""


def answering_faults(faults: Faults) -> Interceptor:
    """Return the interceptor that answers requests with the error codes that `faults` specify."""

    def intercept(route: VersionedRoute) -> VersionedRoute:
        handle = route.handle

        def fail_if_planned(request: Any, context: Context[Any]) -> Answer:
            planned, faults.planned = faults.planned, None
            if planned is None:
                return handle(request, context)
            asked, failures = planned
            answerer = failing(asked, failures)
            question = answerer.question(request)
            real: Answer = None if question is None else handle(question, context)
            return when_answered(real, lambda response: answerer.answer(request, response))

        return route._replace(handle=fail_if_planned)

    return intercept


def failing(request: Request, failures: list[Fault]) -> Answerer:
    """Return the `Answerer` that answers a request with the error codes of the faults that apply to it."""

    def code_of(entity: Entity) -> int:
        return next((fault.code for fault in failures if fault.target.holds(entity)), 0)

    return Answerer(request, code_of, applied=any(fault.applied for fault in failures))


class Answerer:
    """Answers one request with error codes for some or all entries; the broker handles the others."""

    def __init__(self, request: Request, code_of: CodeOf, *, applied: bool) -> None:
        self._request = request
        self._guide = request.guide
        self._code_of = code_of
        self._applied = applied
        self._version = request.version
        self._parts = ResponseParts(request.key, request.version)
        self._definition = self._parts.response
        self._classes = importlib.import_module(API_TABLE[request.key].response.__module__)

    def question(self, message: Any) -> Any:
        """Return the part of a request that the broker handles: all of it, some entries, or None.

        `message` is the request as the broker has decoded it.
        """
        if self._applied or self._request.key == ApiKey.DESCRIBE_LOG_DIRS:
            return message
        if self._request.key == ApiKey.METADATA:
            asked = copy.copy(message)
            asked.allow_auto_topic_creation = False
            return asked
        if self._request.key == ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
            return None if self._any_code else message
        if self._code_for_all() or not self._succeeding(self._request.entities):
            return None
        return self._rest(message)

    def answer(self, message: Any, real: Any) -> Any:
        """Return the response with errors; `real` is the broker's response to `question`, or None.

        Raises:
            CloseConnection: the request has no answer (Produce with acks=0).
        """
        if self._request.key == ApiKey.METADATA:
            return self._metadata(real)
        if self._request.key == ApiKey.DESCRIBE_LOG_DIRS:
            return self._log_dirs(real)
        if self._request.key == ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
            return self._scram_users(message, real)
        if self._request.key == ApiKey.PRODUCE and message.acks == 0:
            raise CloseConnection("a Produce without acknowledgement fails on demand")
        root = self._definition.root
        whole = self._code_for_all()
        if whole:
            return self._fresh(root, message, whole)
        return self._mirror(root, message, self._guide.definition.root, NO_ENTITY, real)

    @property
    def _any_code(self) -> int:
        return next(filter(None, map(self._code_of, self._request.entities)), 0)

    def _code_for_all(self) -> int:
        """Return the error code for the response's top-level field, or 0 if only its entries have codes."""
        root = self._definition.root
        has_top = any(field.attribute == "error_code" for field in fields_at(root, self._version))
        if not has_top:
            return 0
        codes = {self._code_of(entity) for entity in self._request.entities}
        code = next((code for code in codes if code), 0)
        if (
            not self._error_arrays(root)
            or self._request.entities == [NO_ENTITY]
            or code in WHOLE_ANSWER_CODES
        ):
            return code
        return 0 if any(self._request_arrays(self._request.message)) else code

    def _request_arrays(self, message: Any) -> Iterator[bool]:
        for field in self._guide.array_fields(self._guide.definition.root):
            yield bool(getattr(message, field.attribute))

    def _succeeding(self, entities: list[Entity]) -> bool:
        return any(not self._code_of(entity) for entity in entities)

    def _failing(self, entities: list[Entity]) -> bool:
        return any(self._code_of(entity) for entity in entities)

    # --- what is left of the request -----------------------------------------------------------------------

    def _rest(self, message: Any) -> Any:
        rest = self._rest_of(message, self._guide.definition.root, NO_ENTITY)
        if self._request.key == ApiKey.FETCH:
            # An error in any partition ends the wait.
            rest.max_wait_ms = rest.min_bytes = 0
        return rest

    def _rest_of(self, item: Any, spec: StructSpec, outer: Entity) -> Any:
        rest = copy.copy(item)
        entity = self._guide.entity_of_struct(item, spec, outer)
        for field in self._guide.array_fields(spec):
            kept = []
            for each in getattr(item, field.attribute) or ():
                below = self._guide.entities_below(each, field, entity)
                if not self._failing(below):
                    kept.append(each)
                elif self._succeeding(below):
                    inner = self._guide.definition.structs[field.type_at(self._version).base]
                    kept.append(self._rest_of(each, inner, entity))
            setattr(rest, field.attribute, kept)
        return rest

    # --- the answer ----------------------------------------------------------------------------------------

    def _mirror(self, spec: StructSpec, item: Any, asked: StructSpec, outer: Entity, real: Any) -> Any:
        """Return the response to `item`, a part of the request: error entries, and others from `real`."""
        entity = self._guide.entity_of_struct(item, asked, outer)
        answer = real if real is not None else self._fresh(spec, item, 0)
        arrays = self._guide.array_fields(asked)
        for field in self._error_arrays(spec):
            source = next((each for each in arrays if getattr(item, each.attribute)), None)
            if source is None:
                continue
            given = iter(getattr(real, field.attribute) or () if real is not None else ())
            entries = [
                self._entry(field, each, source, entity, given) for each in getattr(item, source.attribute)
            ]
            setattr(answer, field.attribute, entries)
        return answer

    def _entry(
        self, field: FieldSpec, item: Any, source: FieldSpec, outer: Entity, given: Iterator[Any]
    ) -> Any:
        below = self._guide.entities_below(item, source, outer)
        succeeds = self._succeeding(below)
        real = next(given, None) if succeeds or self._applied else None
        if not self._failing(below) and real is not None:
            return real
        spec = self._definition.structs[field.type_at(self._version).base]
        if not isinstance(item, (str, int)):
            asked = self._guide.definition.structs[source.type_at(self._version).base]
            if self._error_arrays(spec) and any(
                getattr(item, each.attribute) for each in self._guide.array_fields(asked)
            ):
                return self._mirror(spec, item, asked, outer, real)
        return self._fresh(spec, item, self._code_of(below[0]))

    def _fresh(self, spec: StructSpec, item: Any, code: int) -> Any:
        """Return a new response (or entry) with an error code, and the names in `item` of the request."""
        if spec is self._parts.response.root:
            make = self._parts.top(repeats=True)
        else:
            make = self._parts.entry(spec, type(item))
        return make(item, code, "a fault on demand" if code else None)

    def _error_arrays(self, spec: StructSpec) -> list[FieldSpec]:
        """Return a struct's array fields whose entries, or entries nested in those, have an error code."""
        return error_arrays(self._parts.response, spec, self._version)

    # --- Metadata ------------------------------------------------------------------------------------------

    def _metadata(self, answer: Any) -> Any:
        """Set errors in the broker's Metadata response, which may list more than the request names."""
        for topic in answer.topics:
            code = self._code_of(Entity(topic.name))
            if code:
                topic.error_code, topic.partitions = code, []
            for partition in topic.partitions:
                code = self._code_of(Entity(topic.name, partition.partition_index))
                if code:
                    partition.error_code, partition.leader_id = code, -1
        return answer

    def _scram_users(self, message: Any, answer: Any) -> Any:
        """Return the answer to AlterUserScramCredentials: one result for each user in the request."""
        code = self._any_code
        if answer is None:
            answer = self._classes.AlterUserScramCredentialsResponse()
            names = dict.fromkeys(each.name for each in (*message.deletions, *message.upsertions))
            answer.results = [self._classes.AlterUserScramCredentialsResult(user=name) for name in names]
        for result in answer.results if code else ():
            result.error_code, result.error_message = code, "a fault on demand"
        return answer

    def _log_dirs(self, answer: Any) -> Any:
        """Set the error in every directory of a DescribeLogDirs answer: topics have no error code there."""
        code = self._any_code
        for directory in answer.results:
            directory.error_code, directory.topics = code, []
        return answer
