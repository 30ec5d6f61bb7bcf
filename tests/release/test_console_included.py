"""Each artefact contains the console, and a broker that is installed from it serves it."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.request import urlopen

import pytest

from release.artefacts import Artefacts
from release.console import build_console
from tests.clients.broker_process import TEST_SETTINGS, reserved_port
from tests.release.environments import install, serving

pytestmark = pytest.mark.release

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = "broker/http/console_files/"
FILES = ("console.css", "console.js", "icon.svg", "index.html")


def wheel_files(wheel: Path) -> Mapping[str, bytes]:
    """The files of the console by their names."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if FOLDER in name and not name.endswith("/")]
        return {name.partition(FOLDER)[2]: archive.read(name) for name in names}


def sdist_files(sdist: Path) -> Mapping[str, bytes]:
    """The files of the console by their names."""
    found: dict[str, bytes] = {}
    with tarfile.open(sdist) as archive:
        for member in archive:
            content = archive.extractfile(member) if FOLDER in member.name else None
            if content is not None:
                found[member.name.partition(FOLDER)[2]] = content.read()
    return found


@pytest.mark.parametrize(
    ("kind", "files_of"),
    [("sdist", sdist_files), ("native_wheel", wheel_files), ("pure_wheel", wheel_files)],
)
def test_an_artefact_contains_the_built_console(
    artefacts: Artefacts, kind: str, files_of: Callable[[Path], Mapping[str, bytes]]
) -> None:
    files = files_of(getattr(artefacts, kind))
    assert sorted(files) == sorted([*FILES, *(f"{name}.gz" for name in FILES)])
    assert all(gzip.decompress(files[f"{name}.gz"]) == files[name] for name in FILES)
    for library in (b"Jason Miller", b"Leon Sorokin"):
        assert library in files["console.js"], "its licence must be in each copy"


def test_the_console_is_built_with_node_in_production(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(PROJECT / "console", tmp_path / "console", ignore=shutil.ignore_patterns("node_modules"))
    monkeypatch.setenv("NODE_ENV", "production")
    build_console(tmp_path)
    assert {one.name for one in (tmp_path / FOLDER).iterdir()} >= set(FILES)


@pytest.mark.parametrize("kind", ["sdist", "native_wheel"])
def test_an_installed_broker_serves_the_console(artefacts: Artefacts, tmp_path: Path, kind: str) -> None:
    """The source distribution is installed with a search path that has no Node, and no compiler."""
    path = str(tmp_path) if kind == "sdist" else None
    environment = install(getattr(artefacts, kind), tmp_path / "environment", extra="http", path=path)
    port = reserved_port()
    settings = {**TEST_SETTINGS, "http.listener": str(port)}
    with serving(environment.barnabas, tmp_path / "data", settings):
        with urlopen(f"http://127.0.0.1:{port}/console") as page:
            document = page.read().decode()
        with urlopen(f"http://127.0.0.1:{port}/console/console.js") as script:
            assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"
            assert script.read() == wheel_files(artefacts.pure_wheel)["console.js"]
    assert '<div id="console">' in document
    assert "is not built" not in document
