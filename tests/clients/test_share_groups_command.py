"""kafka-share-groups, every action and option, as a person runs it (KIP-932, KIP-1226)."""

from collections.abc import Iterator

import pytest

from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.java_polling import poll_values
from tests.clients.share_probe import JavaShareConsumer, ShareProbe, ToolResult
from tests.clients.tools import SHARE_GROUPS


class Scene:
    """A topic of ten records, all accepted by a group; its one consumer is still a member."""

    def __init__(self, cluster: Cluster, probe: ShareProbe) -> None:
        self.probe = probe
        self.topic, self.group = cluster.topic(), cluster.group()
        cluster.produce(self.topic, numbered(10))
        self.client_id = unique("client")
        self.consumer: JavaShareConsumer = probe.consumer(self.client_id, self.group, [self.topic])
        poll_values(self.consumer, 10)
        self.consumer.commit_sync()

    def run(self, *arguments: str) -> ToolResult:
        """Run the command for this group."""
        return self.probe.tool(SHARE_GROUPS, *arguments, "--group", self.group)

    def table(self, *arguments: str) -> list[dict[str, str]]:
        """Run the command for this group; the printed table."""
        return table(self.run(*arguments))

    def reset(self, *arguments: str) -> list[dict[str, str]]:
        """Reset the offsets of the topic as the arguments say; the table of new offsets."""
        return self.table("--reset-offsets", "--topic", self.topic, *arguments)

    def offsets(self) -> tuple[int, int | None]:
        """Start offset and lag of the only partition."""
        (offset,) = self.probe.group_offsets(self.group)
        return offset.start_offset, offset.lag


def table(result: ToolResult) -> list[dict[str, str]]:
    """The printed rows by the first row's column names."""
    header, *rows = result.rows()
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.fixture(scope="module")
def stable(cluster: Cluster, probe: ShareProbe) -> Iterator[Scene]:
    """A group with a member; tests only look at it."""
    scene = Scene(cluster, probe)
    yield scene
    scene.consumer.close()


@pytest.fixture
def empty(cluster: Cluster, probe: ShareProbe) -> Scene:
    """A group whose member has left, to be changed."""
    scene = Scene(cluster, probe)
    scene.consumer.close()
    return scene


def test_list_names_the_group(stable: Scene) -> None:
    assert [stable.group] in stable.probe.tool(SHARE_GROUPS, "--list").rows()


@pytest.mark.parametrize("states", [(), ("Stable",), ("stable,empty",)])
def test_list_state_prints_the_state(stable: Scene, states: tuple[str, ...]) -> None:
    listed = stable.probe.tool(SHARE_GROUPS, "--list", "--state", *states)
    assert {"GROUP": stable.group, "STATE": "Stable"} in table(listed)


def test_list_state_leaves_out_other_states(stable: Scene, empty: Scene) -> None:
    listed = [row["GROUP"] for row in table(stable.probe.tool(SHARE_GROUPS, "--list", "--state", "Empty"))]
    assert empty.group in listed
    assert stable.group not in listed


@pytest.mark.parametrize("option", [(), ("--offsets",)])
def test_describe_prints_offsets_and_lag(stable: Scene, option: tuple[str, ...]) -> None:
    (row,) = stable.table("--describe", *option)
    start_offset = row.pop("START-OFFSET")
    assert 0 <= int(start_offset) <= 10
    assert row == {"GROUP": stable.group, "TOPIC": stable.topic, "PARTITION": "0", "LAG": "0"}


def test_describe_offsets_verbose_adds_the_leader_epoch(stable: Scene) -> None:
    (row,) = stable.table("--describe", "--offsets", "--verbose")
    assert int(row["LEADER-EPOCH"]) >= 0
    assert row["LAG"] == "0"


def test_describe_members_prints_client_and_assignment(stable: Scene) -> None:
    (row,) = stable.table("--describe", "--members")
    assert len(row.pop("CONSUMER-ID")) == 22
    assert row == {
        "GROUP": stable.group,
        "HOST": "/127.0.0.1",
        "CLIENT-ID": stable.client_id,
        "#PARTITIONS": "1",
        "ASSIGNMENT": f"{stable.topic}:0",
    }


def test_describe_members_verbose_adds_the_member_epoch(stable: Scene) -> None:
    (row,) = stable.table("--describe", "--members", "--verbose")
    assert int(row["MEMBER-EPOCH"]) >= 2


def test_describe_state_counts_the_members(stable: Scene) -> None:
    output = stable.run("--describe", "--state").rows()
    assert [output[1][0], *output[1][-2:]] == [stable.group, "Stable", "1"]
    assert output[1][1] == stable.probe.bootstrap


def test_describe_state_verbose_adds_the_epochs(stable: Scene) -> None:
    header, row = stable.run("--describe", "--state", "--verbose").rows()
    assert header[-3:] == ["GROUP-EPOCH", "ASSIGNMENT-EPOCH", "#MEMBERS"]
    group_epoch, assignment_epoch, member_count = map(int, row[-3:])
    assert group_epoch == assignment_epoch >= 2
    assert member_count == 1


@pytest.mark.parametrize("option", ["--offsets", "--members", "--state"])
def test_describe_all_groups_has_the_group_among_them(stable: Scene, option: str) -> None:
    described = stable.probe.tool(SHARE_GROUPS, "--describe", "--all-groups", option)
    assert stable.group in [row[0] for row in described.rows()]


def test_describe_of_an_empty_group_says_that_it_has_no_members(empty: Scene) -> None:
    assert "has no active members" in empty.run("--describe", "--members").errors
    assert empty.table("--describe")[0]["LAG"] == "0"


def test_describe_of_an_unknown_group_says_that_it_is_not_found(probe: ShareProbe) -> None:
    result = probe.tool(SHARE_GROUPS, "--describe", "--group", "nobody")
    assert "GroupIdNotFoundException" in result.output


@pytest.mark.parametrize(
    "action",
    [("--reset-offsets", "--all-topics", "--to-earliest", "--execute"), ("--delete",)],
)
def test_a_group_with_members_is_not_changed(stable: Scene, action: tuple[str, ...]) -> None:
    result = stable.run(*action)
    assert "is not empty" in (result.output + result.errors).lower()
    assert stable.offsets()[1] == 0


def test_offsets_of_a_group_with_members_are_not_deleted(stable: Scene) -> None:
    result = stable.run("--delete-offsets", "--topic", stable.topic)
    assert f"{stable.topic} Error:" in result.output
    assert stable.offsets()[1] == 0


@pytest.mark.parametrize(
    ("reset", "start_offset"),
    [
        (("--to-earliest",), 0),
        (("--to-latest",), 10),
        (("--to-datetime", "2020-01-01T00:00:00.000"), 0),
    ],
)
def test_reset_offsets_moves_the_start(empty: Scene, reset: tuple[str, ...], start_offset: int) -> None:
    before = empty.offsets()
    expected = {
        "GROUP": empty.group,
        "TOPIC": empty.topic,
        "PARTITION": "0",
        "NEW-OFFSET": str(start_offset),
    }
    assert empty.reset(*reset, "--dry-run") == [expected]
    assert empty.offsets() == before, "a dry run changes nothing"
    assert empty.reset(*reset, "--execute") == [expected]
    assert empty.offsets() == (start_offset, 10 - start_offset)


def test_reset_to_a_time_after_all_records_is_the_latest_offset(empty: Scene) -> None:
    result = empty.run(
        "--reset-offsets",
        "--topic",
        f"{empty.topic}:0",
        "--to-datetime",
        "2200-01-01T00:00:00.000",
        "--execute",
    )
    assert "Falling back to latest known offset" in result.output
    assert empty.offsets() == (10, 0)


def test_reset_records_are_delivered_again(empty: Scene) -> None:
    empty.run("--reset-offsets", "--all-topics", "--to-earliest", "--execute")
    consumer = empty.probe.consumer(unique("again"), empty.group, [empty.topic])
    assert poll_values(consumer, 10) == numbered(10)
    consumer.close()


def test_delete_offsets_forgets_the_topic(empty: Scene) -> None:
    deleted = empty.table("--delete-offsets", "--topic", empty.topic)
    assert deleted == [{"TOPIC": empty.topic, "STATUS": "Successful"}]
    assert empty.probe.group_offsets(empty.group) == []
    again = empty.run("--delete-offsets", "--topic", empty.topic)
    assert "There is no offset information to delete" in again.output


def test_delete_removes_the_group(empty: Scene) -> None:
    assert "was successful" in empty.run("--delete").output
    assert [empty.group] not in empty.probe.tool(SHARE_GROUPS, "--list").rows()
    assert "is not a share group" in empty.run("--delete").output


def test_a_deleted_group_starts_afresh(empty: Scene) -> None:
    empty.run("--delete")
    consumer = empty.probe.consumer(unique("again"), empty.group, [empty.topic])
    assert poll_values(consumer, 10) == numbered(10)
    consumer.close()
