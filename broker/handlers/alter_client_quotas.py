"""AlterClientQuotas (key 49, versions 0 and 1; KIP-546): sets and removes quotas of clients.

An entity is a user, a client id, both, or an IP address. The controller checks each entity by itself. An
entity that the request names twice has one result, an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest
from kio.schema.alter_client_quotas.v1.request import EntryData as RequestEntryData
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse, EntityData, EntryData

from barnabas.broker.handlers.common.error_fields import error_fields
from barnabas.broker.network.replies import respond_to_each
from barnabas.coordinator.metadata.client_quotas import QuotaAlteration, QuotaEntity, quota_entity
from barnabas.protocol.errors import ApiError
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller


class Parts(NamedTuple):
    metadata: Controller


def handle_alter_client_quotas(
    parts: Parts, context: RequestContext, request: AlterClientQuotasRequest
) -> Reply:
    alterations = [_alteration(entry) for entry in request.entries]

    def respond(errors: Sequence[ApiError | None]) -> AlterClientQuotasResponse:
        entities = [alteration.entity for alteration in alterations]
        error_by_entity = dict(zip(entities, errors, strict=True))
        return AlterClientQuotasResponse(
            throttle_time=milliseconds(0),
            entries=tuple(_entry(entity, error) for entity, error in error_by_entity.items()),
        )

    reply = parts.metadata.alter_client_quotas(alterations, validate_only=request.validate_only)
    return respond_to_each(reply, len(alterations), respond)


def _alteration(entry: RequestEntryData) -> QuotaAlteration:
    values = {op.key: None if op.remove else op.value for op in entry.ops}
    entity = quota_entity({part.entity_type: part.entity_name for part in entry.entity})
    return QuotaAlteration(entity, values, has_duplicates=len(values) < len(entry.ops))


def _entry(entity: QuotaEntity, error: ApiError | None) -> EntryData:
    return EntryData(
        **error_fields(error),
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
    )
