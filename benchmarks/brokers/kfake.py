"""franz-go's kfake, a broker in Go that keeps everything in memory: the light peer. Needs Go to be built."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.clients.java_build import PROJECT

from benchmarks.brokers.process import LocalBroker, sibling

_MODULE = Path(__file__).resolve().parents[1] / "kfake"
_BINARY = PROJECT / ".cache" / "kfake"


def go_is_installed() -> bool:
    """Whether kfake can be built here."""
    return shutil.which("go") is not None


class Kfake(LocalBroker):
    """One kfake broker without persistence, its default."""

    def __init__(self, directory: Path) -> None:
        super().__init__("kfake", directory)

    def command(self) -> Sequence[str]:
        return [str(_BINARY), str(self.port)]

    def prepare(self) -> None:
        if not _BINARY.exists():
            _BINARY.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["go", "build", "-o", str(_BINARY), "."], cwd=_MODULE, check=True)

    def fresh(self) -> "Kfake":
        return Kfake(sibling(self.directory))
