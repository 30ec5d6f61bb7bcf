"""The command and a log for it."""

from pathlib import Path

import pytest

from tests.cli.log_tool.written_logs import LogCommand, write


@pytest.fixture
def log_command(capsys: pytest.CaptureFixture[str]) -> LogCommand:
    return LogCommand(capsys)


@pytest.fixture
async def log_path(tmp_path: Path) -> Path:
    """The directory of a log that was closed cleanly."""
    return await write(tmp_path / "data")
