"""An administrator who resets, deletes or sets ahead the offsets of the sharing group while it has no
members.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.simulation.client import Disconnected
from tests.simulation.group_offsets import REFUSALS
from tests.simulation.ranges_model import RangesModel
from tests.simulation.shared_offsets import STRAGGLER_SECONDS, SharedOffsets
from tests.simulation.world import LiveTopic, World

_PAUSE_SECONDS_MAX = 3.0
_LEAVE_SECONDS_MAX = 4.0
_DELETION_REFUSALS = REFUSALS | {ErrorCode.non_empty_group, ErrorCode.group_subscribed_to_topic}
_NO_OFFSETS = 0


class SharingAdministrator:
    """One administrator, who does one thing at a time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._model = world.ordinary.sharing
        self._random = world.random("sharing-administrator")
        self._client = world.client("sharing-administrator")
        self._offsets = SharedOffsets(world, self._client)

    async def run(self) -> None:
        while not self._world.is_ending:
            await asyncio.sleep(self._random.uniform(0.3, _PAUSE_SECONDS_MAX))
            orders = self._world.orders
            if orders is None or self._world.is_ending or self._random.random() < 0.3:
                continue
            try:
                await self._without_members(orders)
            except Disconnected:
                self._client.disconnect()

    async def _without_members(self, orders: LiveTopic) -> None:
        """Makes the members leave. Some may come too late, so that the request is refused."""
        name = self._model.name
        self._world.left[name] = set()
        self._world.leaving.add(name)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LEAVE_SECONDS_MAX):
                    while len(self._world.left[name]) < self._world.scenario.sharers:  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
            await self._change(orders)
        finally:
            self._world.leaving.discard(name)

    async def _change(self, orders: LiveTopic) -> None:
        chance = self._random.random()
        partition = self._random.choice(orders.partitions)
        if chance < 0.6:
            await self._reset(partition)
        elif chance < 0.8:
            await self._delete_offsets(orders)
        else:
            await self._delete_group(orders)

    async def _reset(self, partition: TopicIdPartition) -> None:
        log = self._world.log(partition)
        if log is None:
            return
        next_offset = self._random.randint(0, log.log_end_offset)
        self._model.skip(partition, next_offset)
        code = await self._offsets.commit_ordinarily(partition, next_offset)
        self._note(f"sets {partition.partition} to {next_offset}", code)

    async def _delete_offsets(self, orders: LiveTopic) -> None:
        partitions = [{"partition_index": one.partition} for one in orders.partitions]
        await self._delete(
            orders,
            "offset_delete",
            group_id=self._model.name,
            topics=[{"name": orders.name, "partitions": partitions}],
        )

    async def _delete_group(self, orders: LiveTopic) -> None:
        await self._delete(orders, "delete_groups", groups_names=[self._model.name])

    async def _delete(self, orders: LiveTopic, api: str, **values: Any) -> None:
        models = [self._model.ranges(one) for one in orders.partitions]
        for partition, model in zip(orders.partitions, models, strict=True):
            self._model.may_reset(partition)
            model.begin_reset()
        code = ErrorCode.unknown_server_error
        try:
            code = _code_of(await self._client.ask(api, **values))
            self._note(api, code)
        finally:
            await self._settle(models, code)
            if api == "delete_groups":
                self._model.members.forget()

    async def _settle(self, models: list[RangesModel], code: ErrorCode) -> None:
        is_refused = code in _DELETION_REFUSALS
        is_known = is_refused or code is ErrorCode.none
        try:
            await asyncio.sleep(0 if is_known else STRAGGLER_SECONDS)
        finally:
            for model in models:
                if is_known:
                    model.end_reset(None if is_refused else _NO_OFFSETS)
                else:
                    model.lose_reset(_NO_OFFSETS)

    def _note(self, what: str, code: ErrorCode) -> None:
        self._world.trace.event(f"the administrator of the sharing group: {what}: {code.name}")


def _code_of(response: Any) -> ErrorCode:
    if hasattr(response, "results"):
        return ErrorCode(response.results[0].error_code)
    if response.error_code is not ErrorCode.none:
        return ErrorCode(response.error_code)
    return ErrorCode(response.topics[0].partitions[0].error_code)
