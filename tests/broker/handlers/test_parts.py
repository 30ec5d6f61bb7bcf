"""The parts of a broker that each handler gets: those that it uses, with their types."""

import inspect
import re
from importlib import import_module
from types import ModuleType

import pytest

from barnabas.protocol.api import APIS
from tests.conformance.harness import LabClock, open_lab


def handler_module(name: str) -> ModuleType:
    return import_module(f"barnabas.broker.handlers.{name}")


MODULES = [
    module for module in (handler_module(spec.name) for spec in APIS.values()) if hasattr(module, "Parts")
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_each_part_is_used(module: ModuleType) -> None:
    used = re.findall(r"\bparts\.(\w+)", inspect.getsource(module))
    assert set(module.Parts._fields) == set(used)


@pytest.mark.parametrize("store", ["log", "topic"])
async def test_each_part_is_an_attribute_of_the_broker_and_has_its_type(store: str) -> None:
    async with open_lab(share__state__store=store) as lab:
        wrong = [
            (module.__name__, name, annotation)
            for module in MODULES
            for name, annotation in inspect.get_annotations(module.Parts).items()
            if not fits(getattr(lab.broker, name), annotation.__forward_arg__)
        ]
    assert not wrong


def fits(value: object, annotation: str) -> bool:
    """Whether the value has one of the classes in the annotation. The lab's clock fits a protocol."""
    if annotation.startswith("Callable["):
        return callable(value)
    if annotation == "Clock":
        return isinstance(value, LabClock)
    names = {"None" if kind is type(None) else kind.__name__ for kind in type(value).__mro__}
    return not names.isdisjoint(annotation.split(" | "))
