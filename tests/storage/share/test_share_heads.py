"""The heads of share groups: share checkpoint offsets (SCO) and the earliest share offset (ESO)."""

from barnabas.storage.share.share_heads import ShareHeads


def heads(*noted: tuple[str, int, bool]) -> ShareHeads:
    made = ShareHeads()
    for group_id, offset, tombstone in noted:
        made.note_checkpoint(group_id, offset, tombstone)
    return made


def test_the_newest_checkpoint_is_a_groups_head() -> None:
    made = heads(("a", 3, False), ("b", 5, False), ("a", 9, False))
    assert dict(made.live()) == {"a": 9, "b": 5}


def test_the_earliest_share_offset_is_the_least_of_them() -> None:
    made = heads(("a", 3, False), ("b", 5, False))
    assert made.earliest_offset(20) == 3
    made.note_checkpoint("a", 12, False)
    assert made.earliest_offset(20) == 5


def test_without_groups_it_is_the_end_of_the_log() -> None:
    assert heads().earliest_offset(20) == 20
    assert heads(("a", 3, False), ("a", 4, True)).earliest_offset(20) == 20


def test_a_deleted_group_has_no_state_until_it_is_made_again() -> None:
    made = heads(("a", 3, False), ("a", 4, True), ("never there", 5, True))
    assert dict(made.live()) == {}
    made.note_checkpoint("a", 8, False)
    assert dict(made.live()) == {"a": 8}


def test_every_checkpoint_is_a_change() -> None:
    made = heads()
    assert not made.changed
    made.note_checkpoint("a", 3, False)
    assert made.changed
