"""Pieces of topics, and that nothing else is read for them; without Spark and without a broker."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast
from uuid import UUID

import pytest

from barnabas.client.cluster.topics import EARLIEST, Isolation, Topic
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.replay import topic_origin
from barnabas.pipeline.replay.plan import Piece
from barnabas.pipeline.replay.topic_origin import TopicOrigin
from barnabas.protocol.identity import TopicIdPartition

ORDERS, ANEW = UUID(int=1), UUID(int=2)


class ScriptedCatalog:
    """Topics of ten records in each partition."""

    def __init__(self) -> None:
        self.topics = {"orders": Topic("orders", ORDERS, 2)}

    def __call__(self, _servers: object) -> ScriptedCatalog:
        return self

    def close(self) -> None: ...

    def find(self, names: Collection[str]) -> list[Topic]:
        return [self.topics[name] for name in names]

    def find_known(self, names: Collection[str]) -> list[Topic]:
        return [self.topics[name] for name in names if name in self.topics]

    def offsets(
        self, partitions: Collection[TopicIdPartition], at: Mapping[TopicIdPartition, int], _: Isolation
    ) -> dict[TopicIdPartition, int | None]:
        return {one: 0 if at[one] == EARLIEST else 10 for one in partitions}


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> ScriptedCatalog:
    scripted = ScriptedCatalog()
    monkeypatch.setattr(topic_origin, "Catalog", scripted)
    return scripted


def origin() -> TopicOrigin:
    return TopicOrigin(cast("Any", None), {"servers": "nowhere:1", "topics": "orders"})


def test_pieces_name_their_topic(catalog: ScriptedCatalog) -> None:
    pieces = list(origin().pieces())
    assert pieces == [Piece(f"orders/{ORDERS}/{number}", 0, 10) for number in (0, 1)]
    origin().check(pieces)


@pytest.mark.parametrize("made_anew", [{}, {"orders": Topic("orders", ANEW, 2)}])
def test_nothing_is_read_of_a_topic_that_was_deleted(
    catalog: ScriptedCatalog, made_anew: dict[str, Topic]
) -> None:
    pieces = tuple(origin().pieces())
    catalog.topics = made_anew
    gone = rf"The topic orders \(id {ORDERS}\) was deleted since the replay began. Begin another replay"
    with pytest.raises(PipelineError, match=gone):
        origin().check(pieces)
    with pytest.raises(PipelineError, match=gone):
        origin().read(pieces)
