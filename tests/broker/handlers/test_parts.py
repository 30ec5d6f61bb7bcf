"""The parts of a broker that each handler gets: those that its module uses, with their types."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from barnabas.broker import handlers
from barnabas.protocol.api import APIS
from tests.conformance.harness import LabClock, open_lab

pytestmark = pytest.mark.interpreted

MODULES = {spec.name: import_module(f"barnabas.broker.handlers.{spec.name}") for spec in APIS.values()}
GETS_PARTS = ("barnabas.broker.fetch.", "barnabas.broker.handlers.common.")


@pytest.mark.parametrize("name", MODULES)
def test_each_part_is_used(name: str) -> None:
    module = MODULES[name]
    used = {part for source in sources(module) for part in re.findall(r"\b_?parts\.(\w+)", source)}
    assert set(module.Parts._fields) == used


def sources(module: ModuleType) -> list[str]:
    """The texts of the module and of those whose functions and classes get its parts."""
    homes = {getattr(value, "__module__", "") for value in vars(module).values()}
    names = {name for name in homes if name.startswith(GETS_PARTS)}
    return [inspect.getsource(import_module(name)) for name in (module.__name__, *names)]


def test_no_handler_knows_the_whole_broker() -> None:
    texts = {path.name: path.read_text() for path in Path(handlers.__file__).parent.rglob("*.py")}
    assert [name for name, text in texts.items() if "broker.node" in text] == ["lazy_handlers.py"]


@pytest.mark.parametrize("store", ["log", "topic"])
async def test_each_part_is_an_attribute_of_the_broker_and_has_its_type(store: str) -> None:
    async with open_lab(share__state__store=store) as lab:
        wrong = [
            (name, part, annotation.__forward_arg__)
            for name, module in MODULES.items()
            for part, annotation in inspect.get_annotations(module.Parts).items()
            if not fits(getattr(lab.broker, part), annotation.__forward_arg__)
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
