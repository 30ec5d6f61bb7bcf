"""DescribeUserScramCredentials (key 50, version 0; KIP-554): the mechanisms for which users have credentials.

Of the credentials only the number of iterations is shown. Null and an empty array ask for all users. A user
that the request names twice is DUPLICATE_RESOURCE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.describe_user_scram_credentials.v0.request import DescribeUserScramCredentialsRequest
from kio.schema.describe_user_scram_credentials.v0.response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import MetadataImage


class Parts(NamedTuple):
    metadata: Controller


def handle_describe_user_scram_credentials(
    parts: Parts, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> Reply:
    infos = _credential_infos(parts.metadata.image)
    asked = Counter(user.name for user in request.users) if request.users else dict.fromkeys(infos, 1)
    return DescribeUserScramCredentialsResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        error_message="",
        results=tuple(_result(user, count, infos.get(user, ())) for user, count in asked.items()),
    )


def _credential_infos(image: MetadataImage) -> dict[str, list[CredentialInfo]]:
    """The credentials of each user."""
    infos: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), credential in image.scram_credentials.items():
        info = CredentialInfo(mechanism=i8(mechanism), iterations=i32(credential.iterations))
        infos.setdefault(user, []).append(info)
    return infos


def _result(
    user: str, asked_count: int, infos: Iterable[CredentialInfo]
) -> DescribeUserScramCredentialsResult:
    found = tuple(sorted(infos, key=lambda info: info.mechanism))
    error_code, message = ErrorCode.none, ""
    if asked_count > 1:
        error_code, found = ErrorCode.duplicate_resource, ()
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    elif not found:
        error_code = ErrorCode.resource_not_found
        message = f"Attempt to describe a user credential that does not exist: {user}"
    return DescribeUserScramCredentialsResult(
        user=user, error_code=error_code, error_message=message, credential_infos=found
    )
