"""The bound on open segments, and the choice of the segment to close."""

from barnabas.storage.files.open_files import OpenFiles


class Opened:
    def __init__(self, files: OpenFiles, *, used: bool = False, pinned: bool = False) -> None:
        self.used, self.pinned, self.evicted = used, pinned, False
        files.add(self)

    def evict(self) -> None:
        self.evicted = True


def test_the_one_longest_open_is_closed_first() -> None:
    files = OpenFiles(2)
    opened = [Opened(files) for _ in range(4)]
    assert [one.evicted for one in opened] == [True, True, False, False]
    assert len(files) == 2


def test_a_segment_used_since_the_last_check_is_spared_once() -> None:
    files = OpenFiles(2)
    used, unused = Opened(files, used=True), Opened(files)
    Opened(files)
    assert (used.evicted, unused.evicted) == (False, True)
    Opened(files)
    assert used.evicted


def test_pinned_ones_stay_beyond_the_bound() -> None:
    files = OpenFiles(2)
    pinned = [Opened(files, pinned=True) for _ in range(3)]
    assert len(files) == 3
    assert not any(one.evicted for one in pinned)
    pinned[1].pinned = False
    Opened(files)
    assert [one.evicted for one in pinned] == [False, True, False]


def test_if_all_are_used_the_oldest_is_closed() -> None:
    files = OpenFiles(3)
    opened = [Opened(files, used=True) for _ in range(3)]
    Opened(files)
    assert [one.evicted for one in opened] == [True, False, False]


def test_removed_ones_are_forgotten() -> None:
    files = OpenFiles(1)
    first = Opened(files)
    files.remove(first)
    Opened(files)
    assert not first.evicted


def test_closing_takes_all_with_it() -> None:
    files = OpenFiles(2)
    opened = [Opened(files, pinned=True), Opened(files, used=True), Opened(files)]
    files.close()
    assert all(one.evicted for one in opened)
    assert len(files) == 0
