"""The table of the broker's handlers."""

from pathlib import Path

from barnabas.broker import handlers
from barnabas.broker.handlers.lazy_handlers import WARMED_APIS, LazyHandlers
from barnabas.protocol.api import APIS, ApiKey
from tests.conformance.harness import open_lab


async def test_a_handler_is_loaded_at_its_first_use() -> None:
    async with open_lab() as lab:
        handlers = LazyHandlers(lab.broker)
        assert not handlers
        handler = handlers[ApiKey.API_VERSIONS]
        assert handlers == {ApiKey.API_VERSIONS: handler}


async def test_every_api_that_is_served_has_a_handler() -> None:
    async with open_lab() as lab:
        handlers = LazyHandlers(lab.broker)
        for api_key in APIS:
            assert callable(handlers[api_key])


def test_the_folder_has_a_module_for_each_api_and_no_other() -> None:
    modules = {path.stem for path in Path(handlers.__file__).parent.glob("*.py")}
    assert modules - {"__init__", "lazy_handlers"} == {spec.name for spec in APIS.values()}


def test_the_apis_of_producers_and_consumers_are_warmed_and_no_others() -> None:
    assert {ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH} <= set(WARMED_APIS)
    of_administrators = {ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_QUORUM, ApiKey.SHARE_GROUP_DESCRIBE}
    of_brokers = {spec.key for spec in APIS.values() if spec.inter_broker}
    assert not set(WARMED_APIS) & (of_administrators | of_brokers)
