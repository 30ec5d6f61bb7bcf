"""The pause of Python's garbage collector while modules are loaded."""

from __future__ import annotations

import gc

import pytest

from barnabas.runtime.collector import without_collections


def test_no_collections_are_made_inside_and_they_are_made_afterwards() -> None:
    with without_collections():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0, "the objects of the modules are kept out"


def test_collections_are_made_again_after_a_module_that_cannot_be_loaded() -> None:
    with pytest.raises(ModuleNotFoundError), without_collections():
        import barnabas.no_such_module  # type: ignore[import-not-found]  # noqa: F401
    assert gc.isenabled()
