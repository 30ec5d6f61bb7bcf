"""The setting `cluster.id` decides the cluster of a new data directory."""

from tests.conformance.harness import open_lab


async def test_a_new_data_directory_belongs_to_the_cluster_of_the_setting() -> None:
    async with open_lab(**{"cluster.id": "castle"}) as lab:
        assert lab.broker.cluster_id == "castle"


async def test_without_the_setting_the_cluster_has_an_id_of_its_own() -> None:
    async with open_lab() as lab:
        assert len(lab.broker.cluster_id) == 22
