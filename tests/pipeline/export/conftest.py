"""One broker of each kind: everything is exported from one and restored to the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benchmarks.brokers.process import LocalBroker

from tests.pipeline.brokers import KINDS, new_broker


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, LocalBroker]]:
    """By kind. Tests of a module share them."""
    directory = tmp_path_factory.mktemp("brokers")
    started = {kind: new_broker(kind, directory / kind) for kind in KINDS}
    try:
        for broker in started.values():
            broker.start()
        yield started
    finally:
        for broker in started.values():
            broker.kill()
