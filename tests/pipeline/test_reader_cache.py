"""Readers that are kept from one read to the next: their use and their end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from barnabas.client.cluster.topics import Isolation
from barnabas.client.consume.topic_reader import ReadSettings
from barnabas.client.network.address import Address
from barnabas.client.network.security import Security
from barnabas.pipeline.reader_cache import (
    CACHED_MAX,
    CACHED_SECONDS,
    Access,
    CachedReader,
    cached_reader,
    close_cached_readers,
)
from barnabas.pipeline.servers import Servers

HERE = Access(Servers((Address("127.0.0.1", 1),)), ReadSettings())


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    close_cached_readers()
    yield
    close_cached_readers()


def used(access: Access = HERE) -> CachedReader:
    """The reader of a read that goes well."""
    with cached_reader(access) as reader:
        return reader


def test_the_next_read_of_the_same_cluster_gets_the_same_reader() -> None:
    assert used() is used()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Access(Servers((Address("127.0.0.1", 2),)), ReadSettings()), id="cluster"),
        pytest.param(
            Access(Servers(HERE.servers.addresses, Security(username="anna")), ReadSettings()), id="user"
        ),
        pytest.param(Access(Servers(HERE.servers.addresses, client_id="other"), ReadSettings()), id="name"),
        pytest.param(Access(HERE.servers, ReadSettings(isolation=Isolation.READ_COMMITTED)), id="isolation"),
    ],
)
def test_a_read_in_another_way_gets_another_reader(other: Access) -> None:
    first = used()
    assert used(other) is not first
    assert used() is first


def test_two_reads_at_once_have_a_reader_each() -> None:
    with cached_reader(HERE) as first, cached_reader(HERE) as second:
        assert first is not second


@pytest.mark.parametrize("error", [RuntimeError, GeneratorExit, KeyboardInterrupt])
def test_a_read_that_fails_or_is_broken_off_leaves_nothing(error: type[BaseException]) -> None:
    with pytest.raises(error), cached_reader(HERE) as failed:
        raise error
    assert used() is not failed


def test_the_oldest_goes_when_too_many_are_kept() -> None:
    clusters = [Servers((Address("127.0.0.1", port),)) for port in range(CACHED_MAX + 1)]
    accesses = [Access(cluster, ReadSettings()) for cluster in clusters]
    readers = [used(access) for access in accesses]
    assert used(accesses[-1]) is readers[-1]
    assert used(accesses[1]) is readers[1]
    assert used(accesses[0]) is not readers[0]


def test_a_reader_is_not_used_beyond_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    old = used()
    monkeypatch.setattr(time, "monotonic", lambda: old.made_at + CACHED_SECONDS)
    assert used() is not old


def test_a_forked_process_begins_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = used()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        assert used() is not parents
        close_cached_readers()
    parents.close()
