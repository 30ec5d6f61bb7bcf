"""One broker per test, started with the defaults."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.broker.handlers.admin_broker import AdminBroker, admin_broker


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[AdminBroker]:
    started = await admin_broker(tmp_path)
    yield started
    await started.close()
