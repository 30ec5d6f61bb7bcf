"""DescribeClientQuotas (key 48, versions 0 and 1; KIP-546): the quotas that match a filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.describe_client_quotas.v1.request import DescribeClientQuotasRequest
from kio.schema.describe_client_quotas.v1.response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

from barnabas.coordinator.metadata.client_quotas import QuotaEntity
from barnabas.coordinator.metadata.quota_filter import FilterPart, QuotaFilter
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import f64, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller


class Parts(NamedTuple):
    metadata: Controller


def handle_describe_client_quotas(
    parts: Parts, context: RequestContext, request: DescribeClientQuotasRequest
) -> Reply:
    wanted = [
        FilterPart(component.entity_type, component.match_type, component.match)
        for component in request.components
    ]
    try:
        asked = QuotaFilter(wanted, strict=request.strict)
    except ApiError as error:
        return DescribeClientQuotasResponse(
            throttle_time=milliseconds(0), error_code=error.code, error_message=error.message, entries=None
        )
    quotas = parts.metadata.image.client_quotas
    return DescribeClientQuotasResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        error_message="",
        entries=tuple(_entry(entity, quotas[entity]) for entity in asked.matching(quotas)),
    )


def _entry(entity: QuotaEntity, quotas: Mapping[str, float]) -> EntryData:
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
        values=tuple(ValueData(key=key, value=f64(quota)) for key, quota in quotas.items()),
    )
