"""ACL requests to a broker without an authorizer are answered as Apache Kafka 4.4.0 answers them."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Lab

DISABLED = ErrorCode.security_disabled
ANY = 1
FILTER: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
CREATION: dict[str, Any] = {
    "resource_type": 2,
    "resource_name": "t",
    "resource_pattern_type": 3,
    "principal": "User:alice",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_no_acls_can_be_described(lab: Lab, version: int) -> None:
    answer = await lab.admin.ask("describe_acls", version, **FILTER)
    assert (answer.error_code, answer.resources) == (DISABLED, ())


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2])
async def test_each_acl_to_create_is_refused(lab: Lab, version: int, count: int) -> None:
    answer = await lab.admin.ask("create_acls", version, creations=[CREATION] * count)
    assert [result.error_code for result in answer.results] == [DISABLED] * count


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2])
async def test_each_filter_of_acls_to_delete_is_refused(lab: Lab, version: int, count: int) -> None:
    answer = await lab.admin.ask("delete_acls", version, filters=[FILTER] * count)
    results = [(result.error_code, result.matching_acls) for result in answer.filter_results]
    assert results == [(DISABLED, ())] * count
