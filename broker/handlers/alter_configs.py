"""AlterConfigs (key 33): all the settings that topics, brokers and groups are to have of their own (KIP-133).

Settings that are left out are unset, which is why IncrementalAlterConfigs took its place. What is allowed is
decided by the controller and the rules of the configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kio.schema.alter_configs.v2.request import AlterConfigsRequest, AlterConfigsResource
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse, AlterConfigsResponse

from barnabas.broker.handlers.altered_resources import answer_altered, resource_key
from barnabas.coordinator.metadata.config_decisions import ResourceReplacement

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.broker.node.broker import Broker


def handle_alter_configs(broker: Broker, context: RequestContext, request: AlterConfigsRequest) -> Reply:
    return answer_altered(
        request.resources,
        without_value=_without_value,
        fault=lambda _: None,
        decide=lambda sound: broker.metadata.replace_configs(
            [_replacement(one) for one in sound], validate_only=request.validate_only
        ),
        response=AlterConfigsResponse,
        result=AlterConfigsResourceResponse,
    )


def _without_value(resource: AlterConfigsResource) -> list[str]:
    return [config.name for config in resource.configs if config.value is None]


def _replacement(resource: AlterConfigsResource) -> ResourceReplacement:
    configs = {config.name: config.value for config in resource.configs if config.value is not None}
    return ResourceReplacement(resource_key(resource), configs)
