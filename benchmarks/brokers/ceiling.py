"""The ceiling: a broker whose share fetches cost nothing; see `benchmarks.ceiling_broker`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.brokers.process import LocalBroker, sibling


class Ceiling(LocalBroker):
    """The upper limit of the clients with share fetches, on this machine and in this run."""

    def __init__(self, directory: Path) -> None:
        super().__init__("ceiling", directory)

    def command(self) -> Sequence[str]:
        data = self.directory / "data"
        return [sys.executable, "-m", "benchmarks.ceiling_broker", str(self.port), str(data)]

    def fresh(self) -> "Ceiling":
        return Ceiling(sibling(self.directory))
