"""franz-go's kfake, a broker in Go that keeps everything in memory: the light peer. Building it needs Go."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.brokers.process import LocalBroker, sibling
from benchmarks.go_programs import go_program


class Kfake(LocalBroker):
    """One kfake broker without persistence, its default."""

    def __init__(self, directory: Path) -> None:
        super().__init__("kfake", directory)

    def command(self) -> Sequence[str]:
        return [str(go_program("kfake")), str(self.port)]

    def prepare(self) -> None:
        go_program("kfake")

    def fresh(self) -> "Kfake":
        return Kfake(sibling(self.directory))
