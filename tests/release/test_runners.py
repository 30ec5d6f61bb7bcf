"""The commands of docs/installing.md with uv and pipx start a broker from a wheel."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from release.artefacts import Artefacts
from tests.clients.test_readme import blocks
from tests.release.environments import install, round_trip, run, script, serving

pytestmark = pytest.mark.release

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "installing.md"
RUN, INSTALL = range(2)
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def client(artefacts: Artefacts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the asyncio client."""
    return install(artefacts.native_wheel, tmp_path_factory.mktemp("client") / "environment").python


def uv_variables(tmp_path: Path) -> dict[str, str]:
    return {
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
        "UV_TOOL_DIR": str(tmp_path / "uv-tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "uv-bin"),
        "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
    }


def pipx_variables(tmp_path: Path) -> dict[str, str]:
    return {
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "pipx-bin"),
        "PIPX_DEFAULT_PYTHON": sys.executable,
    }


def shell(line: str, variables: dict[str, str]) -> list[str | Path]:
    """A line of the page for a shell beside `dist`, with uv and pipx in its path."""
    settings = {**variables, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    exports = "; ".join(f"export {name}='{value}'" for name, value in settings.items())
    return ["sh", "-eu", "-c", f"cd '{PROJECT}'; {exports}; exec {line}", "sh"]


@pytest.mark.parametrize(
    ("number", "variables_in"), [(0, uv_variables), (1, pipx_variables)], ids=["uvx", "pipx"]
)
def test_a_broker_runs_without_an_install(
    artefacts: Artefacts,
    client: Path,
    tmp_path: Path,
    number: int,
    variables_in: Callable[[Path], dict[str, str]],
) -> None:
    del artefacts
    line = blocks(PAGE, "sh")[RUN].splitlines()[number].removesuffix(" serve")
    command = script(tmp_path / "barnabas", *shell(f'{line} "$@"', variables_in(tmp_path)))
    with serving(command, tmp_path / "data") as broker:
        round_trip(client, broker)


@pytest.mark.parametrize(
    ("number", "variables_in", "folder"),
    [(0, uv_variables, "uv-bin"), (1, pipx_variables, "pipx-bin")],
    ids=["uv tool", "pipx"],
)
def test_an_installed_command_serves(
    artefacts: Artefacts,
    client: Path,
    tmp_path: Path,
    number: int,
    variables_in: Callable[[Path], dict[str, str]],
    folder: str,
) -> None:
    del artefacts
    run(*shell(blocks(PAGE, "sh")[INSTALL].splitlines()[number], variables_in(tmp_path)))
    with serving(tmp_path / folder / "barnabas", tmp_path / "data") as broker:
        round_trip(client, broker)
