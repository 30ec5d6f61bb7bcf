"""Decides from its headers whether a request may be served, before anything else looks at it.

- Host: an IP address, localhost, or a name that the configuration allows. So a website that lets its own name
  point at this machine (DNS rebinding) is refused.
- Origin: if there is one, it must be the address in Host. So the pages of other websites cannot use the API.
- A change needs the token, in a header that a browser never adds by itself, and JSON as its content type.
- A change is any request that is not GET, HEAD or OPTIONS, so no route can forget it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hmac import compare_digest
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from barnabas.broker.http.problem import Problem

JSON_TYPE: Final = "application/json"
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_WITHOUT_BODY: Final = frozenset({"DELETE"})
_SCHEME: Final = "bearer "
_CHALLENGE: Mapping[str, str] = {"WWW-Authenticate": 'Bearer realm="barnabas"'}


class AccessRules(NamedTuple):
    """The requests that are served."""

    allowed_hosts: frozenset[str]
    """In lower case, besides localhost and IP addresses."""
    token: str | None
    """None if nothing may be changed."""


class RequestHead(NamedTuple):
    """The parts of a request that decide: the values of each header by its name in lower case."""

    method: str
    headers: Mapping[str, Sequence[str]]


def check_access(rules: AccessRules, head: RequestHead) -> None:
    """Raises Problem: 400, 421 (Host), 403 (Origin, or changes are off), 401 (token), 415."""
    host = _single(head, "host")
    if host is None or not _is_allowed(rules, host):
        raise Problem(
            HTTPStatus.MISDIRECTED_REQUEST,
            "This server does not answer for the name in the Host header. Use an IP address or localhost, or "
            "add the name to http.allowed.hosts.",
        )
    origin = _single(head, "origin")
    if origin is not None and not _is_same(origin, host):
        raise Problem(HTTPStatus.FORBIDDEN, "Pages of other websites may not use this server.")
    if head.method not in SAFE_METHODS:
        _check_token(rules, _single(head, "authorization"))
        _check_content_type(head)


def _single(head: RequestHead, name: str) -> str | None:
    values = head.headers.get(name, ())
    if len(values) > 1:
        raise Problem(HTTPStatus.BAD_REQUEST, f"The request has the header {name} more than once.")
    return values[0] if values else None


def _is_allowed(rules: AccessRules, host: str) -> bool:
    name = _host_name(host)
    if name is None:
        return False
    if name == "localhost" or name in rules.allowed_hosts:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _host_name(host: str) -> str | None:
    """The name or address in `Host`, in lower case, without port and brackets; None if it is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises for an impossible one
    except ValueError:
        return None
    is_plain = parts.netloc == host and "@" not in host
    return parts.hostname if is_plain else None


def _is_same(origin: str, host: str) -> bool:
    """A proxy in front may speak https."""
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


def _check_token(rules: AccessRules, authorization: str | None) -> None:
    if rules.token is None:
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "Changes over HTTP are off. To allow them with a token, set http.token.file at the start.",
        )
    given = authorization or ""
    is_bearer = given[: len(_SCHEME)].lower() == _SCHEME
    if not is_bearer or not compare_digest(given[len(_SCHEME) :].strip().encode(), rules.token.encode()):
        raise Problem(
            HTTPStatus.UNAUTHORIZED,
            "A change needs the token of http.token.file: Authorization: Bearer TOKEN.",
            headers=_CHALLENGE,
        )


def _check_content_type(head: RequestHead) -> None:
    given = _single(head, "content-type")
    if given is None and head.method in _WITHOUT_BODY:
        return
    if given is None or given.partition(";")[0].strip().lower() != JSON_TYPE:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The body of a change must have the content type {JSON_TYPE}."
        )
