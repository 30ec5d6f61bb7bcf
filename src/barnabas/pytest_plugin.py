"""The pytest plugin: a broker for all tests of a process, and a topic and a group for each test.

    def test_an_order_is_billed(share_broker, share_topic, share_group):
        ...

With pytest-xdist each worker has a broker of its own. Names are unique, so tests may also share a broker.

pytest loads this module in every environment in which Barnabas is installed. So it is outside of
`barnabas.testing`, and imports that when a test needs it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker

_NAME_LENGTH_MAX = 60
"""The characters of a test's name in the names of its topics and groups."""

EARLIEST: Mapping[str, str] = {"share.auto.offset.reset": "earliest"}
"""The setting of new groups: a test may write its records before its consumer joins."""


class MakeBroker(Protocol):
    """Starts a further broker with settings of its own; it ends with the test."""

    def __call__(self, **settings: str) -> Broker: ...


class MakeTopic(Protocol):
    """Creates a topic with a unique name, which it returns. Underscores in settings stand for dots."""

    def __call__(self, *, partitions: int = 1, **settings: str) -> str: ...


class MakeGroup(Protocol):
    """Returns a unique group id, with these settings. Underscores stand for dots."""

    def __call__(self, **settings: str) -> str: ...


@pytest.fixture(scope="session")
def share_broker_settings() -> Mapping[str, str]:
    """Settings of `share_broker`. Override it in conftest.py to add some."""
    return {}


@pytest.fixture(scope="session")
def share_broker(share_broker_settings: Mapping[str, str]) -> Generator[Broker]:
    """A broker for all tests of this process."""
    from barnabas.testing.broker import Broker

    with Broker(settings=share_broker_settings) as broker:
        yield broker


@pytest.fixture
def make_share_broker() -> Generator[MakeBroker]:
    """A factory for brokers of this test alone."""
    from barnabas.testing.broker import Broker

    with ExitStack() as running:
        yield lambda **settings: running.enter_context(Broker(settings=_dotted(settings)))


@pytest.fixture
def _faults_end_with_test(share_broker: Broker) -> Generator[None]:
    """Ends the faults of the test, so that the next test meets none."""
    yield
    share_broker.faults.clear()


@pytest.fixture
def make_share_topic(
    share_broker: Broker, _faults_end_with_test: None, request: pytest.FixtureRequest
) -> MakeTopic:
    """A factory for topics of this test."""
    unique = _names_for(request)

    def make(*, partitions: int = 1, **settings: str) -> str:
        name = unique()
        share_broker.create_topic(name, partitions=partitions, settings=_dotted(settings))
        return name

    return make


@pytest.fixture
def make_share_group(
    share_broker: Broker, _faults_end_with_test: None, request: pytest.FixtureRequest
) -> MakeGroup:
    """A factory for groups of this test, which begin at the earliest record by default."""
    unique = _names_for(request)

    def make(**settings: str) -> str:
        group = unique()
        share_broker.configure_group(group, {**EARLIEST, **_dotted(settings)})
        return group

    return make


@pytest.fixture
def share_topic(make_share_topic: MakeTopic) -> str:
    """A new topic with one partition."""
    return make_share_topic()


@pytest.fixture
def share_group(make_share_group: MakeGroup) -> str:
    """The id of a new share group, which begins at the earliest record."""
    return make_share_group()


def _dotted(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as in Kafka: `retention_ms="1000"` is retention.ms."""
    return {name.replace("_", "."): value for name, value in settings.items()}


def _names_for(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Makes unique names that begin with the name of the test, in the characters of topics."""
    test = re.sub(r"[^a-zA-Z0-9.-]+", "-", str(request.node.name))[:_NAME_LENGTH_MAX].strip("-.")
    return lambda: f"{test}-{secrets.token_hex(4)}"
