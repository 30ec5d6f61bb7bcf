"""The OpenAPI document is valid, and describes exactly the operations that are served."""

from __future__ import annotations

from typing import Any

from barnabas.broker.http.operations import broker_operations
from barnabas.broker.http.streams import Streams
from tests.broker.http.http_lab import open_http_lab


async def document() -> Any:
    async with open_http_lab() as http:
        return await http.json("/openapi.json")


async def test_the_document_is_valid_openapi() -> None:
    # Importing it takes seconds, which each process of pytest would need to collect the tests.
    from openapi_spec_validator import OpenAPIV31SpecValidator, validate

    validate(await document(), cls=OpenAPIV31SpecValidator)


async def test_each_operation_is_described_once() -> None:
    async with open_http_lab() as http:
        paths = (await http.json("/openapi.json"))["paths"]
        described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
        served = {(one.method, one.path) for one in broker_operations(http.lab.broker, Streams())}
        assert described == served | {("GET", "/openapi.json")}
        names = [one["operationId"] for methods in paths.values() for one in methods.values()]
        assert len(set(names)) == len(names)


async def test_changes_name_the_token_and_reads_do_not() -> None:
    paths = (await document())["paths"]
    for methods in paths.values():
        for method, operation in methods.items():
            assert operation["security"] == ([] if method == "get" else [{"token": []}])
            assert ("401" in operation["responses"]) == (method != "get")


async def test_parameters_have_their_bounds_and_defaults() -> None:
    paths = (await document())["paths"]
    parameters = {one["name"]: one for one in paths["/api/v1/groups"]["get"]["parameters"]}
    assert parameters["limit"]["schema"]["maximum"] == 1000
    assert parameters["limit"]["schema"]["default"] == 100
    assert parameters["type"]["schema"]["items"]["enum"] == ["classic", "consumer", "share"]
    names = [one["name"] for one in paths["/api/v1/topics/{topic}/partitions"]["get"]["parameters"]]
    assert names == ["topic", "limit", "cursor"]


async def test_each_answer_fits_its_schema() -> None:
    """The schemas come from the structs that are encoded, so one look at each list is enough."""
    async with open_http_lab() as http:
        await http.lab.create_topic("t")
        schemas = (await http.json("/openapi.json"))["components"]["schemas"]
        for path, schema in (
            ("/api/v1/topics", "TopicPage"),
            ("/api/v1/topics/t/partitions", "PartitionPage"),
            ("/api/v1/groups", "GroupPage"),
            ("/readyz", "Readiness"),
        ):
            assert set(await http.json(path)) == set(schemas[schema]["properties"])
