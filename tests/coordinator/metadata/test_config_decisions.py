"""Changing settings: the value after each operation, and refused changes, with Kafka's messages."""

import pytest

from barnabas.coordinator.metadata.config_decisions import (
    Operation,
    ResourceChange,
    SettingChange,
    decide_alter_configs,
)
from barnabas.coordinator.metadata.image import ConfigResource, MetadataChanges, MetadataImage, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.metadata_records import ConfigRecord
from tests.coordinator.metadata.metadata_fakes import PlainRules

GROUP = ConfigResource(ResourceType.GROUP, "g")


def image_with(**configs: str) -> MetadataImage:
    image = MetadataImage()
    for name, value in configs.items():
        image.replay(
            ConfigRecord(resource_type=GROUP.resource_type, resource_name="g", name=name, value=value),
            MetadataChanges(),
        )
    return image


def decide(image: MetadataImage, *changes: SettingChange, resource: ConfigResource = GROUP) -> object:
    """The (name, value) pairs to write, or the error's (code, message)."""
    records, (error,) = decide_alter_configs(image, [ResourceChange(resource, changes)], PlainRules())
    if error is not None:
        assert records == []
        return error.code, error.message
    return [(record.name, record.value) for record in records if isinstance(record, ConfigRecord)]


@pytest.mark.parametrize(
    ("stored", "operation", "value", "written"),
    [
        ({}, Operation.SET, "1", [("listed", "1")]),
        ({"listed": "1"}, Operation.SET, "1", []),
        ({"listed": "1"}, Operation.DELETE, None, [("listed", None)]),
        ({}, Operation.DELETE, None, []),
        ({}, Operation.APPEND, "b", [("listed", "a,b")]),
        ({"listed": ""}, Operation.APPEND, "b", [("listed", "b")]),
        ({"listed": "x,y"}, Operation.APPEND, "y,z", [("listed", "x,y,z")]),
        ({"listed": "x,y,z"}, Operation.SUBTRACT, "z,q,x", [("listed", "y")]),
        ({}, Operation.SUBTRACT, "a", [("listed", "")]),
    ],
)
def test_each_operation_writes_its_value(
    stored: dict[str, str], operation: Operation, value: str | None, written: list[tuple[str, str | None]]
) -> None:
    assert decide(image_with(**stored), SettingChange("listed", operation, value)) == written


@pytest.mark.parametrize("operation", [Operation.APPEND, Operation.SUBTRACT])
def test_items_go_into_lists_only(operation: Operation) -> None:
    assert decide(image_with(), SettingChange("plain", operation, "1")) == (
        ErrorCode.invalid_config,
        f"Can't {operation.name} to key plain because its type is not LIST.",
    )


def test_one_refused_change_refuses_all_of_its_resource() -> None:
    changes = (SettingChange("fine", Operation.SET, "1"), SettingChange("refused", Operation.SET, "1"))
    assert decide(image_with(), *changes) == (ErrorCode.invalid_config, "refused")


def test_a_refused_resource_does_not_hold_up_the_others() -> None:
    good = ResourceChange(GROUP, [SettingChange("fine", Operation.SET, "1")])
    bad = ResourceChange(
        ConfigResource(ResourceType.GROUP, "h"), [SettingChange("refused", Operation.SET, "1")]
    )
    records, errors = decide_alter_configs(MetadataImage(), [bad, good], PlainRules())
    assert len(records) == 1
    assert [error is None for error in errors] == [False, True]


def test_a_topic_must_exist() -> None:
    change = SettingChange("retention.ms", Operation.SET, "1")
    assert decide(image_with(), change, resource=ConfigResource(ResourceType.TOPIC, "t")) == (
        ErrorCode.unknown_topic_or_partition,
        "The topic 't' does not exist.",
    )


def test_a_value_has_a_bound() -> None:
    assert decide(image_with(), SettingChange("a", Operation.SET, "x" * 32_768)) == (
        ErrorCode.invalid_config,
        "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.",
    )
