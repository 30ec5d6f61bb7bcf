"""The fixtures of the pytest plugin, in a test suite of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ("pytester",)

SUITE = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_names_are_new(share_broker, share_topic, share_group, number, names):
    assert share_topic.startswith("test-names-are-new")
    assert share_broker.records(share_topic) == []
    assert not {share_topic, share_group} & names
    names.update({share_topic, share_group})

@pytest.fixture(scope="session")
def names():
    return set()

def test_factories_have_settings(share_broker, make_share_topic, make_share_group):
    topic = make_share_topic(partitions=3, retention_ms="60000")
    group = make_share_group(share_delivery_count_limit="2")
    assert share_broker.records(topic) == []
    assert group != make_share_group()

def test_a_fault_is_planned(share_broker, share_topic):
    share_broker.faults.refuse("Produce")

def test_a_fault_ends_with_its_test(share_broker, share_topic):
    with share_broker.faults.refuse("Produce") as fault:
        assert fault._id == 2

def test_a_broker_of_its_own(make_share_broker, share_broker):
    other = make_share_broker(share_state_store="log")
    assert other.bootstrap_servers != share_broker.bootstrap_servers

def test_the_process(share_broker, share_broker_settings):
    assert share_broker_settings == {"num.partitions": "2"}
    with open("pids", "a") as pids:
        print(share_broker.pid, file=pids)
"""

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def share_broker_settings():
    return {"num.partitions": "2"}
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(SUITE)
    pytester.makeconftest(CONFTEST)
    return pytester


def test_the_fixtures_work(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(passed=7)


def test_each_worker_of_xdist_has_a_broker_of_its_own(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_more="from test_each_worker_of_xdist_has_a_broker_of_its_own import test_the_process"
    )
    result = suite.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile")
    result.assert_outcomes(passed=8)
    pids = (suite.path / "pids").read_text().split()
    assert len(set(pids)) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
