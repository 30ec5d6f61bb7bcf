"""Share groups as administrators see them: the answers of ShareGroupDescribe, before authorization."""

from typing import NamedTuple

from barnabas.coordinator.group.description import DescribedGroup, DescribedTopic
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.coordinator.share_group.share_group import ShareGroup, ShareGroupMember

PROTOCOL_TYPE = "share"


class DescribedMember(NamedTuple):
    """A member; topics that are gone are left out of its assignment."""

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    assignment: list[DescribedTopic]


def describe_group(
    group: ShareGroup, catalog: TopicCatalog, assignor_name: str
) -> DescribedGroup[DescribedMember]:
    return DescribedGroup(
        group.group_id,
        group.state.value,
        group.group_epoch,
        group.assignment_epoch,
        assignor_name,
        [_describe_member(member, catalog) for member in group.members.values()],
    )


def _describe_member(member: ShareGroupMember, catalog: TopicCatalog) -> DescribedMember:
    assignment = [
        DescribedTopic(topic_id, shape.name, partitions)
        for topic_id, partitions in member.assigned.items()
        if (shape := catalog.topic_by_id(topic_id)) is not None
    ]
    return DescribedMember(
        member.member_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        sorted(member.subscribed_topic_names),
        assignment,
    )
