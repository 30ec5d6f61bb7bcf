"""AlterUserScramCredentials (key 51, version 0; KIP-554): sets and deletes the SCRAM credentials of users.

The credentials are kept for tools, and for a move to a broker with authentication; Barnabas does not use
them. The controller checks each user by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.alter_user_scram_credentials.v0.request import AlterUserScramCredentialsRequest
from kio.schema.alter_user_scram_credentials.v0.response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

from barnabas.broker.handlers.common.error_fields import error_fields
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.metadata.scram_credentials import Deletion, Upsertion
from barnabas.protocol.errors import ApiError
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller


class Parts(NamedTuple):
    metadata: Controller


def handle_alter_user_scram_credentials(
    parts: Parts, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> Reply:
    deletions = [Deletion(deletion.name, deletion.mechanism) for deletion in request.deletions]
    upsertions = [
        Upsertion(
            upsertion.name,
            upsertion.mechanism,
            upsertion.iterations,
            upsertion.salt,
            upsertion.salted_password,
        )
        for upsertion in request.upsertions
    ]
    names = [deletion.name for deletion in request.deletions]
    names += [upsertion.name for upsertion in request.upsertions]
    reply = parts.metadata.alter_scram_credentials(deletions, upsertions)
    return respond_when_done(reply, _response, lambda error: _response(dict.fromkeys(names, error)))


def _response(errors: Mapping[str, ApiError | None]) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        throttle_time=milliseconds(0),
        results=tuple(
            AlterUserScramCredentialsResult(
                user=user,
                **error_fields(error),
            )
            for user, error in errors.items()
        ),
    )
