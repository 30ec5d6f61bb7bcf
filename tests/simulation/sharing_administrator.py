"""An administrator who resets, deletes or sets ahead the offsets of the sharing group while it has no
members.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.simulation.client import Disconnected
from tests.simulation.group_offsets import REFUSALS
from tests.simulation.shared_offsets import SharedOffsets
from tests.simulation.world import LiveTopic, World

_PAUSE_SECONDS_MAX = 6.0
_LEAVE_SECONDS_MAX = 5.0
_DELETION_REFUSALS = REFUSALS | {ErrorCode.non_empty_group, ErrorCode.group_subscribed_to_topic}
_STRAGGLER_SECONDS = 1.0


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
            await asyncio.sleep(self._random.uniform(1, _PAUSE_SECONDS_MAX))
            orders = self._world.orders
            if orders is None or self._world.is_ending or self._random.random() < 0.5:
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

    async def _delete(self, orders: LiveTopic, api: str, **values: object) -> None:
        models = [self._model.ranges(one) for one in orders.partitions]
        for partition, model in zip(orders.partitions, models, strict=True):
            self._model.may_reset(partition)
            model.begin_reset()
        try:
            response = await self._client.ask(api, **values)
        except BaseException:
            try:
                await asyncio.sleep(_STRAGGLER_SECONDS)
            finally:
                for model in models:
                    model.lose_reset(0)
                self._model.members.forget()
            raise
        code = _code_of(response)
        self._note(api, code)
        if code not in _DELETION_REFUSALS and code is not ErrorCode.none:
            for model in models:
                model.lose_reset(0)
        else:
            for model in models:
                model.end_reset(0 if code is ErrorCode.none else None)
        if api == "delete_groups":
            self._model.members.forget()

    def _note(self, what: str, code: ErrorCode) -> None:
        self._world.trace.event(f"the administrator of the sharing group: {what}: {code.name}")


def _code_of(response: object) -> ErrorCode:
    if hasattr(response, "results"):
        return ErrorCode(response.results[0].error_code)
    if response.error_code is not ErrorCode.none:
        return ErrorCode(response.error_code)
    return ErrorCode(response.topics[0].partitions[0].error_code)
