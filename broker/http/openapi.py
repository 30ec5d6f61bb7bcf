"""The OpenAPI document (3.1), made from the table of operations and its structs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, cast

from msgspec import Struct, json
from starlette.responses import Response

from barnabas.broker.http.problem import PROBLEM_TYPE, ProblemDetails
from barnabas.broker.http.protection import JSON_TYPE
from barnabas.broker.http.routes import Call, NoParameters, Operation, json_response, without_parameters

Node = dict[str, object]
"""An object of the document, as JSON has it."""

OPENAPI_PATH: Final = "/openapi.json"
_REFERENCE: Final = "#/components/schemas/{name}"
_TOKEN: Final = "token"
_PARAMETER = re.compile(r"\{(\w+)\}")

_ANY_FAILURES: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.MISDIRECTED_REQUEST)
_CHANGE_FAILURES: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
_BODY_FAILURES: Final = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
_STORAGE_FAILURES: Final = (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)


def with_document(version: str, operations: Sequence[Operation]) -> Sequence[Operation]:
    """These operations, and one that serves the document about all of them."""

    async def show(_: Call) -> Response:
        return json_response(describe(version, served))

    document = Operation(
        path=OPENAPI_PATH,
        handler=without_parameters(show),
        name="getDocument",
        summary="This document",
        tag="document",
    )
    served = (*operations, document)
    return served


class Document(Struct, kw_only=True):
    """An OpenAPI document."""

    openapi: str
    info: Node
    paths: dict[str, Node]
    components: Node


def describe(version: str, operations: Iterable[Operation]) -> Document:
    """The document about these operations of a broker of this version."""
    described = list(operations)
    schemas = _schemas(described)
    paths: dict[str, Node] = {}
    for operation in described:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas)
    return Document(
        openapi="3.1.0",
        info={
            "title": "Barnabas",
            "version": version,
            "description": "Health, metrics and administration of a Barnabas broker.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        paths=paths,
        components={
            "schemas": {name: schema for name, schema in schemas.items() if not name.endswith("Query")},
            "securitySchemes": {
                _TOKEN: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token in http.token.file.",
                }
            },
        },
    )


def _schemas(operations: Iterable[Operation]) -> Mapping[str, Node]:
    """The schemas of all structs by name."""
    kinds: dict[type[Struct], None] = {ProblemDetails: None}
    for operation in operations:
        for kind in (operation.handler.query, operation.handler.body, operation.answer):
            if kind is not None and kind is not NoParameters:
                kinds[kind] = None
    _, schemas = json.schema_components(kinds, ref_template=_REFERENCE)
    return schemas


def _operation(operation: Operation, schemas: Mapping[str, Node]) -> Node:
    described: Node = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": [*_path_parameters(operation), *_query_parameters(operation, schemas)],
        "responses": _responses(operation),
        "security": [{_TOKEN: []}] if operation.is_change else [],
    }
    if operation.handler.has_body:
        content = _content(JSON_TYPE, operation.handler.body)
        described["requestBody"] = {"required": True, "content": content}
    return described


def _path_parameters(operation: Operation) -> Iterable[Node]:
    for name in _PARAMETER.findall(operation.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query_parameters(operation: Operation, schemas: Mapping[str, Node]) -> Iterable[Node]:
    query = operation.handler.query
    if query is NoParameters:
        return
    properties = cast("Mapping[str, Node]", schemas[query.__name__]["properties"])
    for name, schema in properties.items():
        yield {"name": name, "in": "query", "required": False, "schema": schema}


def _responses(operation: Operation) -> Node:
    success: Node = {"description": operation.summary}
    if operation.answer is not None:
        success["content"] = _content(JSON_TYPE, operation.answer)
    elif operation.status is not HTTPStatus.NO_CONTENT:
        kind = "object" if operation.media_type == JSON_TYPE else "string"
        success["content"] = {operation.media_type: {"schema": {"type": kind}}}
    failures: Node = {
        str(failure.value): {
            "description": failure.phrase,
            "content": _content(PROBLEM_TYPE, ProblemDetails),
        }
        for failure in sorted(_failures(operation))
    }
    return {str(operation.status.value): success, **failures}


def _failures(operation: Operation) -> set[HTTPStatus]:
    failures = {*_ANY_FAILURES, *_STORAGE_FAILURES, *operation.failures}
    if operation.is_change:
        failures.update(_CHANGE_FAILURES)
    if operation.handler.has_body:
        failures.update(_BODY_FAILURES)
    return failures


def _content(media_type: str, kind: type[Struct]) -> Node:
    return {media_type: {"schema": {"$ref": _REFERENCE.format(name=kind.__name__)}}}
