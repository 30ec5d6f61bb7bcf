"""AlterConfigs (key 33, versions 0 to 2; KIP-133): replaces all own settings of topics, brokers and groups.

A setting that the request leaves out is reset, so IncrementalAlterConfigs has replaced this API. The
controller and the rules of the configuration decide on the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.alter_configs.v2.request import AlterConfigsRequest, AlterConfigsResource
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse, AlterConfigsResponse

from barnabas.broker.handlers.common.altered_resources import answer_altered, resource_key
from barnabas.coordinator.metadata.config_decisions import ResourceReplacement

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller


class Parts(NamedTuple):
    metadata: Controller


def handle_alter_configs(parts: Parts, context: RequestContext, request: AlterConfigsRequest) -> Reply:
    return answer_altered(
        request.resources,
        without_value=_without_value,
        fault=lambda _: None,
        decide=lambda sound: parts.metadata.replace_configs(
            [_replacement(resource) for resource in sound], validate_only=request.validate_only
        ),
        response=AlterConfigsResponse,
        result=AlterConfigsResourceResponse,
    )


def _without_value(resource: AlterConfigsResource) -> list[str]:
    return [config.name for config in resource.configs if config.value is None]


def _replacement(resource: AlterConfigsResource) -> ResourceReplacement:
    configs = {config.name: config.value for config in resource.configs if config.value is not None}
    return ResourceReplacement(resource_key(resource), configs)
