"""Which requests are served, by their headers alone."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import pytest

from barnabas.broker.http.problem import Problem
from barnabas.broker.http.protection import AccessRules, RequestHead, check_access

RULES = AccessRules(frozenset({"broker.test"}), "a-token-of-the-tests")
READ_ONLY = RULES._replace(token=None)
NO_HEADERS: Mapping[str, str] = {}
CHANGE: Mapping[str, str] = {
    "authorization": "Bearer a-token-of-the-tests",
    "content-type": "application/json",
}


def status(
    method: str = "GET", headers: Mapping[str, str | list[str]] = NO_HEADERS, rules: AccessRules = RULES
) -> int:
    """The status of a request with these headers; 200 if it is served."""
    given = {"host": "127.0.0.1:8080", **headers}
    values = {name: [value] if isinstance(value, str) else value for name, value in given.items()}
    try:
        check_access(rules, RequestHead(method, values))
    except Problem as problem:
        return problem.details.status
    return HTTPStatus.OK


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "10.1.2.3:1", "LOCALHOST:8080", "Broker.Test:1"]
)
def test_addresses_localhost_and_allowed_names_are_served(host: str) -> None:
    assert status(headers={"host": host}) == HTTPStatus.OK


@pytest.mark.parametrize(
    "host",
    [
        "rebound.example:8080",
        "localhost.example",
        "",
        "127.0.0.1:x",
        "127.0.0.1:99999",
        "user@127.0.0.1",
        "127.0.0.1/path",
        "[::1",
        "broker.test.",
    ],
)
def test_another_name_and_a_malformed_one_are_misdirected(host: str) -> None:
    assert status(headers={"host": host}) == HTTPStatus.MISDIRECTED_REQUEST


def test_a_request_without_a_host_is_misdirected() -> None:
    with pytest.raises(Problem) as refused:
        check_access(RULES, RequestHead("GET", {}))
    assert refused.value.details.status == HTTPStatus.MISDIRECTED_REQUEST


@pytest.mark.parametrize("name", ["host", "origin", "authorization", "content-type"])
def test_a_repeated_header_is_refused(name: str) -> None:
    repeated: dict[str, str | list[str]] = {**CHANGE, name: ["127.0.0.1", "127.0.0.1"]}
    if name == "content-type":
        repeated[name] = ["application/json", "text/plain"]
    assert status("POST", repeated) == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8080", "https://127.0.0.1:8080"])
def test_a_page_of_this_server_may_use_it(origin: str) -> None:
    assert status(headers={"origin": origin}) == HTTPStatus.OK
    assert status("POST", {**CHANGE, "origin": origin}) == HTTPStatus.OK


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:8081", "file://", ""]
)
def test_a_page_of_another_website_may_not_even_read(origin: str) -> None:
    assert status(headers={"origin": origin}) == HTTPStatus.FORBIDDEN
    assert status("POST", {**CHANGE, "origin": origin}) == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "PURGE"])
def test_each_change_needs_the_token(method: str) -> None:
    assert status(method, {"content-type": "application/json"}) == HTTPStatus.UNAUTHORIZED
    assert status(method, CHANGE, READ_ONLY) == HTTPStatus.FORBIDDEN
    assert status(method, CHANGE) == HTTPStatus.OK


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic a-token-of-the-tests",
        "a-token-of-the-tests",
        "Bearer ä",
    ],
)
def test_a_wrong_token_is_refused(authorization: str) -> None:
    changed = {**CHANGE, "authorization": authorization}
    assert status("POST", changed) == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reading_needs_no_token(method: str) -> None:
    assert status(method, rules=READ_ONLY) == HTTPStatus.OK


@pytest.mark.parametrize(
    "given", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_form_of_a_website_is_no_change(given: str) -> None:
    assert status("POST", {**CHANGE, "content-type": given}) == HTTPStatus.UNSUPPORTED_MEDIA_TYPE


def test_a_content_type_may_have_parameters_and_a_deletion_needs_none() -> None:
    assert status("PUT", {**CHANGE, "content-type": "Application/JSON; charset=utf-8"}) == HTTPStatus.OK
    assert status("DELETE", {"authorization": CHANGE["authorization"]}) == HTTPStatus.OK
    assert status("POST", {"authorization": CHANGE["authorization"]}) == HTTPStatus.UNSUPPORTED_MEDIA_TYPE
