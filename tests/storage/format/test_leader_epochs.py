"""Leader epochs of a log (KIP-101): entries, look-ups, truncation, and their file."""

from itertools import product

import pytest

from barnabas.storage.format.checkpoint_file import CheckpointCorrupt
from barnabas.storage.format.leader_epochs import LeaderEpochs


def epochs_of(*entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for entry in entries:
        epochs.assign(*entry)
    epochs.changed = False
    return epochs


def test_content_is_kafkas_with_each_entry_twice() -> None:
    epochs = epochs_of((0, 0), (3, 12))
    assert epochs.encode() == b"0\n4\n0 0\n0 0\n3 12\n3 12\n"
    assert LeaderEpochs.decode(epochs.encode()).entries == epochs.entries


def test_a_file_of_kafka_has_each_entry_once() -> None:
    assert LeaderEpochs.decode(b"0\n2\n0 0\n3 12\n").entries == [(0, 0), (3, 12)]
    assert LeaderEpochs.decode(b"0\n1\n3 12\n").entries == [(3, 12)]
    assert LeaderEpochs.decode(b"").entries == []


@pytest.mark.parametrize("entries", [((0, 0),), ((0, 0), (3, 12)), ((1, 5), (2, 10), (12, 110))])
def test_no_changed_byte_gives_other_epochs(entries: tuple[tuple[int, int], ...]) -> None:
    epochs = epochs_of(*entries)
    written = epochs.encode()
    for position, other in product(range(len(written)), range(256)):
        content = bytearray(written)
        content[position] = other
        try:
            found = LeaderEpochs.decode(bytes(content))
        except CheckpointCorrupt:
            continue
        assert found.entries == epochs.entries, (position, other)


@pytest.mark.parametrize(
    "content",
    [b"0\n1\nx y\n", b"0\n1\n5\n", b"2\n0\n", b"0\n2\n3 0\n2 5\n", b"0\n2\n2 5\n3 5\n", b"0\n1\n-1 0\n"],
)
def test_other_content_is_corrupt(content: bytes) -> None:
    with pytest.raises(CheckpointCorrupt):
        LeaderEpochs.decode(content)


@pytest.mark.parametrize(
    ("entry", "entries"),
    [
        ((5, 30), [(1, 0), (3, 10), (5, 30)]),
        ((3, 20), [(1, 0), (3, 10)]),
        ((3, 5), [(1, 0), (3, 5)]),
        ((5, 10), [(1, 0), (5, 10)]),
        ((2, 30), [(1, 0), (2, 30)]),
    ],
)
def test_new_entry_replaces_entries_that_it_contradicts(
    entry: tuple[int, int], entries: list[tuple[int, int]]
) -> None:
    epochs = epochs_of((1, 0), (3, 10))
    epochs.assign(*entry)
    assert epochs.changed == (entries != [(1, 0), (3, 10)])
    assert epochs.entries == entries


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(-1, (-1, -1)), (0, (0, 5)), (1, (1, 10)), (2, (1, 10)), (3, (3, 40)), (4, (-1, -1))],
)
def test_an_epoch_ends_where_the_next_one_begins(asked: int, answer: tuple[int, int]) -> None:
    assert epochs_of((1, 5), (3, 10)).end_offset_for(asked, 40) == answer


def test_no_epoch_is_known_of_an_empty_log() -> None:
    epochs = LeaderEpochs()
    assert epochs.end_offset_for(0, 0) == (-1, -1)
    assert (epochs.latest_leader_epoch, epochs.epoch_at(0)) == (-1, -1)


@pytest.mark.parametrize(("offset", "leader_epoch"), [(4, -1), (5, 1), (9, 1), (10, 3), (99, 3)])
def test_an_offset_belongs_to_the_epoch_that_began_last(offset: int, leader_epoch: int) -> None:
    assert epochs_of((1, 5), (3, 10)).epoch_at(offset) == leader_epoch


@pytest.mark.parametrize(
    ("end_offset", "entries"), [(11, [(1, 5), (3, 10)]), (10, [(1, 5)]), (5, []), (0, [])]
)
def test_truncation_from_the_end_removes_later_epochs(
    end_offset: int, entries: list[tuple[int, int]]
) -> None:
    epochs = epochs_of((1, 5), (3, 10))
    epochs.truncate_from_end(end_offset)
    assert epochs.changed == (len(entries) < 2)
    assert epochs.entries == entries


@pytest.mark.parametrize(
    ("start_offset", "entries"),
    [
        (4, [(1, 5), (3, 10)]),
        (5, [(1, 5), (3, 10)]),
        (7, [(1, 7), (3, 10)]),
        (10, [(3, 10)]),
        (12, [(3, 12)]),
    ],
)
def test_truncation_from_the_start_removes_or_moves_earlier_epochs(
    start_offset: int, entries: list[tuple[int, int]]
) -> None:
    epochs = epochs_of((1, 5), (3, 10))
    epochs.truncate_from_start(start_offset)
    assert epochs.changed == (entries != [(1, 5), (3, 10)])
    assert epochs.entries == entries
