"""Histories that Apache Kafka has played, played on Barnabas: every field of every answer is compared."""

from __future__ import annotations

import pytest

from tests.conformance.harness import open_lab
from tests.differential.compare import Comparison
from tests.differential.peers import LabPeer
from tests.differential.playing import AREAS, SETTINGS, observe, unique_suffix
from tests.differential.recording import recorded
from tests.differential.warming import warm_up


@pytest.mark.parametrize("store", ["topic", "log"])
@pytest.mark.parametrize("area", AREAS)
async def test_answers_are_kafkas(area: str, store: str) -> None:
    settings = {name.replace(".", "__"): value for name, value in SETTINGS.items()}
    comparison = Comparison()
    async with open_lab(**settings, share__state__store=store) as lab:
        await warm_up(LabPeer(lab))
        for seed, kafka in recorded(area).items():
            ours = await observe(LabPeer(lab), area, seed, unique_suffix(area, seed, 0))
            real = comparison.add(kafka, ours)
            assert not real, f"history {seed}"
    assert comparison.field_count > 0
