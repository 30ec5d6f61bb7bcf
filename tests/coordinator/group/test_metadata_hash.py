"""The hash changes with the topics that a group can read, and with nothing else."""

from barnabas.coordinator.group.metadata_hash import metadata_hash
from tests.coordinator.share_group.simulated_coordinator import SimulatedCatalog


def test_without_existing_topics_the_hash_is_zero() -> None:
    catalog = SimulatedCatalog()
    assert metadata_hash([], catalog) == 0
    assert metadata_hash(["absent"], catalog) == 0


def test_the_order_of_names_and_absent_topics_do_not_matter() -> None:
    catalog = SimulatedCatalog()
    catalog.create("a")
    catalog.create("b")
    assert metadata_hash(["a", "b"], catalog) == metadata_hash(["b", "absent", "a"], catalog) != 0


def test_growth_and_a_new_topic_id_change_it() -> None:
    catalog = SimulatedCatalog()
    catalog.create("a", 1)
    first = metadata_hash(["a"], catalog)
    catalog.grow("a", 2)
    grown = metadata_hash(["a"], catalog)
    catalog.delete("a")
    catalog.create("a", 2)
    assert len({first, grown, metadata_hash(["a"], catalog)}) == 3


def test_the_hash_fits_a_signed_64_bit_field() -> None:
    catalog = SimulatedCatalog()
    names = [f"topic-{number}" for number in range(20)]
    for name in names:
        catalog.create(name)
    assert all(-(1 << 63) <= metadata_hash([name], catalog) < 1 << 63 for name in names)
