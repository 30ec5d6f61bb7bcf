"""The target's limits of a group, as the broker reports them: for the group, or for all groups."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

from barnabas.client.errors import BrokerError, BrokerUnavailableError
from barnabas.client.network.connection import Connection
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.target_limits import TargetLimits, read_limits
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8

GROUP, BROKER = (32, "workers"), (4, "7")
GROUP_LIMITS = {"share.delivery.count.limit": "3", "share.partition.max.record.locks": "400"}
BROKER_LIMITS = {f"group.{name}": f"{value}0" for name, value in GROUP_LIMITS.items()}


@dataclass
class Broker:
    """A broker with settings by kind and name of the resource; also a connection to it."""

    settings: Mapping[tuple[int, str], Mapping[str, str]]
    refuses: ErrorCode = ErrorCode.none
    asked: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    async def ask(self, _api: object, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        (resource,) = request.resources
        named = (int(resource.resource_type), resource.resource_name)
        self.asked.append(named)
        there = self.settings.get(named, {})
        configs = tuple(
            DescribeConfigsResourceResult(
                name=name,
                value=there[name],
                read_only=False,
                config_source=i8(5),
                is_sensitive=False,
                synonyms=(),
                documentation=None,
            )
            for name in resource.configuration_keys or ()
            if name in there
        )
        result = DescribeConfigsResult(
            error_code=self.refuses,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=configs,
        )
        return DescribeConfigsResponse(throttle_time=cast("Any", 0), results=(result,))

    def limits(self, **settings: str) -> TargetLimits:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        return asyncio.run(read_limits(cast("Connection", self), 7, "workers", given))


def test_a_group_has_limits_of_its_own() -> None:
    broker = Broker({GROUP: GROUP_LIMITS, BROKER: BROKER_LIMITS})
    assert broker.limits() == TargetLimits(3, 400)
    assert broker.asked == [GROUP]


def test_a_broker_without_them_has_limits_for_all_groups() -> None:
    broker = Broker({GROUP: {}, BROKER: BROKER_LIMITS})
    assert broker.limits() == TargetLimits(30, 4000)
    assert broker.asked == [GROUP, BROKER]


def test_a_broker_that_does_not_know_a_setting_yet_is_asked_again() -> None:
    broker = Broker({GROUP: GROUP_LIMITS})
    with pytest.raises(BrokerUnavailableError, match=r"does not know share\.delivery"):
        broker.limits(share_delivery_count_limit="7")
    assert broker.limits(share_delivery_count_limit="3") == TargetLimits(3, 400)


def test_a_group_with_a_topic_for_dead_letters_has_them() -> None:
    name = "errors.deadletterqueue.topic.name"
    broker = Broker({GROUP: {**GROUP_LIMITS, name: "dlq.orders"}})
    assert broker.limits() == TargetLimits(3, 400, has_letters=True)
    assert Broker({GROUP: {**GROUP_LIMITS, name: ""}}).limits() == TargetLimits(3, 400)
    with pytest.raises(BrokerUnavailableError, match=r"does not know errors\.deadletterqueue"):
        broker.limits(errors_deadletterqueue_topic_name="dlq.others")


def test_no_limit_is_guessed() -> None:
    with pytest.raises(PipelineError, match=r"Broker 7 does not report share\.delivery\.count\.limit"):
        Broker({}).limits()
    with pytest.raises(BrokerError, match="settings of workers"):
        Broker({}, refuses=ErrorCode.group_authorization_failed).limits()
