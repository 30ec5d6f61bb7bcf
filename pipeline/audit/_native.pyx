# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The native twins of `control_walk.walk` and `control_columns.fill_columns`.

They return the same results as these pure functions for any bytes; tests compare them. The pure functions
explain the fields. Every length is checked against the remaining bytes before it is used.
"""

from cpython cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

import array

from crc32c import crc32c

from barnabas.pipeline.audit.control_columns import decode_delta
from barnabas.pipeline.audit.control_walk import BadBatch, Pack

cdef enum:
    HEADER_BYTES = 61
    ENTRY_HEAD_BYTES = 17
    STATE_BYTES = 22
    CHECKPOINT = 5
    DELTA = 6
    MALFORMED = 0
    CONTROL_FLAG = 0x20
    COMPRESSION_MASK = 0x07

cdef array.array _q = array.array("q")
cdef array.array _i = array.array("i")
cdef array.array _h = array.array("h")
cdef array.array _b = array.array("b")


cdef inline uint64_t _u64(const uint8_t* at) noexcept nogil:
    return ((<uint64_t>at[0] << 56) | (<uint64_t>at[1] << 48) | (<uint64_t>at[2] << 40)
            | (<uint64_t>at[3] << 32) | (<uint64_t>at[4] << 24) | (<uint64_t>at[5] << 16)
            | (<uint64_t>at[6] << 8) | <uint64_t>at[7])


cdef inline uint32_t _u32(const uint8_t* at) noexcept nogil:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | <uint32_t>at[3]


cdef inline int16_t _i16(const uint8_t* at) noexcept nogil:
    return <int16_t>((<int>at[0] << 8) | at[1])


cdef inline int _varint(const uint8_t* data, Py_ssize_t end, Py_ssize_t* position, int bytes_max,
                        uint64_t* value) noexcept nogil:
    """Reads an unsigned varint; 0 if it is cut short or too long."""
    cdef uint64_t found = 0
    cdef int shift = 0
    cdef uint8_t byte
    cdef int count
    for count in range(bytes_max):
        if position[0] >= end:
            return 0
        byte = data[position[0]]
        position[0] += 1
        found |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            value[0] = found
            return 1
        shift += 7
    return 0


cdef inline int _zigzag(const uint8_t* data, Py_ssize_t end, Py_ssize_t* position, int64_t* value) noexcept nogil:
    cdef uint64_t folded
    if not _varint(data, end, position, 10, &folded):
        return 0
    value[0] = <int64_t>(folded >> 1) ^ -<int64_t>(folded & 1)
    return 1


cdef inline int _count(const uint8_t* data, Py_ssize_t end, Py_ssize_t* position, Py_ssize_t* count) noexcept nogil:
    """Reads a length or count, which is stored plus one; 0 for null, or for one beyond the end."""
    cdef uint64_t value
    if not _varint(data, end, position, 5, &value):
        return 0
    if value == 0 or value > <uint64_t>(end - position[0] + 1):
        return 0
    count[0] = <Py_ssize_t>value - 1
    return 1


def walk(bytes buffer, Py_ssize_t start, Py_ssize_t end, found):
    """See `control_walk.walk`."""
    cdef dict packs = found.packs
    cdef array.array runs = found.runs
    cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(buffer)
    cdef Py_ssize_t position = start
    cdef Py_ssize_t next_position
    cdef int64_t base_offset, producer_id
    cdef int32_t batch_length, last_offset_delta, record_count
    cdef int16_t attributes
    view = memoryview(buffer)
    while end - position >= HEADER_BYTES:
        base_offset = <int64_t>_u64(data + position)
        batch_length = <int32_t>_u32(data + position + 8)
        if base_offset == 0 and batch_length == 0 and data[position + 16] == 0:
            return position
        next_position = position + 12 + batch_length
        attributes = _i16(data + position + 21)
        last_offset_delta = <int32_t>_u32(data + position + 23)
        if data[position + 16] != 2 or 12 + batch_length < HEADER_BYTES or last_offset_delta < 0:
            raise BadBatch(position, base_offset, -1, "there is no batch")
        producer_id = <int64_t>_u64(data + position + 43)
        if attributes & CONTROL_FLAG and producer_id < 0:
            if next_position > end:
                return position
            if <uint32_t>crc32c(view[position + 21:next_position]) != _u32(data + position + 17):
                raise BadBatch(position, base_offset, next_position, "the checksum doesn't match the bytes")
            record_count = <int32_t>_u32(data + position + 57)
            if record_count == 0:
                _add_run(runs, base_offset, base_offset + last_offset_delta)
                found.mark_count += 1
            elif not _take_record(data, position, next_position, attributes, record_count, packs, runs):
                raise BadBatch(position, base_offset, next_position, "the control record is malformed")
        position = next_position
    return position


cdef int _take_record(const uint8_t* data, Py_ssize_t start, Py_ssize_t end, int16_t attributes,
                      int32_t record_count, dict packs, array.array runs) except -1:
    """Takes the record of one control batch; 0 if it is malformed."""
    cdef Py_ssize_t position = start + HEADER_BYTES
    cdef Py_ssize_t value_start, value_end, group_start, count
    cdef int64_t number, size
    cdef int16_t control_type
    cdef int64_t base_offset = <int64_t>_u64(data + start)
    cdef int32_t last_offset_delta = <int32_t>_u32(data + start + 23)
    if record_count != 1 or attributes & COMPRESSION_MASK:
        return 0
    if not _zigzag(data, end, &position, &number):
        return 0
    position += 1
    if not _zigzag(data, end, &position, &number) or not _zigzag(data, end, &position, &number):
        return 0
    if not _zigzag(data, end, &position, &size) or size < 0 or size > end - position:
        return 0
    if size < 4 or _i16(data + position) < 0:
        return 0
    control_type = _i16(data + position + 2)
    position += size
    if not _zigzag(data, end, &position, &size) or size < 0 or size > end - position:
        return 0
    if control_type != CHECKPOINT and control_type != DELTA:
        return 1
    value_start, value_end = position, position + size
    position += 5
    if not _count(data, value_end, &position, &count):
        return 0
    group_start = position
    group = PyBytes_FromStringAndSize(<const char*>data + group_start, count)
    pack = packs.get(group)
    if pack is None:
        try:
            group.decode()
        except UnicodeDecodeError:
            return 0
        pack = packs[group] = Pack(base_offset)
    _add_run(runs, base_offset, base_offset + last_offset_delta)
    pack.last_offset = base_offset
    pack.record_count += 1
    _append_entry(pack.payload, data + start, control_type, data + value_start, value_end - value_start)
    return 1


cdef int _append_entry(bytearray payload, const uint8_t* header, int16_t control_type, const uint8_t* value,
                       Py_ssize_t size) except -1:
    """Copies offset and leader epoch, which have the same bytes in the header and in the pack."""
    cdef uint8_t[ENTRY_HEAD_BYTES] head
    cdef int index
    memcpy(head, header, 8)
    memcpy(head + 8, header + 12, 4)
    head[12] = <uint8_t>control_type
    for index in range(4):
        head[13 + index] = <uint8_t>(size >> (24 - 8 * index))
    payload += head[:ENTRY_HEAD_BYTES]
    payload += PyBytes_FromStringAndSize(<const char*>value, size)
    return 0


cdef int _add_run(array.array runs, int64_t first_offset, int64_t last_offset) except -1:
    cdef Py_ssize_t size = len(runs)
    if size and runs.data.as_longlongs[size - 1] + 1 == first_offset:
        runs.data.as_longlongs[size - 1] = last_offset
        return 0
    array.resize_smart(runs, size + 2)
    runs.data.as_longlongs[size] = first_offset
    runs.data.as_longlongs[size + 1] = last_offset
    return 0


cdef class _Filling:
    """The columns of a pack while they are filled, with their largest possible size."""


    cdef array.array offsets, leader_epochs, kinds, value_starts, value_ends, incarnations, checkpoint_epochs
    cdef array.array decided_at_ms, back_offsets, state_ends
    cdef array.array record_indexes, first_offsets, last_offsets, states, delivery_counts, causes, members
    cdef Py_ssize_t record_count, state_count
    cdef dict member_numbers
    cdef list record_members

    def __cinit__(self, Py_ssize_t size_bytes):
        cdef Py_ssize_t records_max = size_bytes // ENTRY_HEAD_BYTES + 1
        cdef Py_ssize_t states_max = size_bytes // (STATE_BYTES + 1) + 1
        self.offsets = array.clone(_q, records_max, False)
        self.leader_epochs = array.clone(_i, records_max, False)
        self.kinds = array.clone(_b, records_max, False)
        self.value_starts = array.clone(_q, records_max, False)
        self.value_ends = array.clone(_q, records_max, False)
        self.incarnations = array.clone(_q, records_max, False)
        self.checkpoint_epochs = array.clone(_i, records_max, False)
        self.decided_at_ms = array.clone(_q, records_max, False)
        self.back_offsets = array.clone(_q, records_max, False)
        self.state_ends = array.clone(_q, records_max, False)
        self.record_indexes = array.clone(_q, states_max, False)
        self.first_offsets = array.clone(_q, states_max, False)
        self.last_offsets = array.clone(_q, states_max, False)
        self.states = array.clone(_b, states_max, False)
        self.delivery_counts = array.clone(_h, states_max, False)
        self.causes = array.clone(_b, states_max, False)
        self.members = array.clone(_i, states_max, False)
        self.record_count = self.state_count = 0
        self.member_numbers = {}
        self.record_members = []

    cdef int add_delta(self, const uint8_t* data, Py_ssize_t start, Py_ssize_t end) except -1:
        """Decodes one delta of version 1 into the next row; 0 if it is malformed, and then no range is added."""
        cdef Py_ssize_t position = start + 5
        cdef Py_ssize_t count, index
        cdef Py_ssize_t row = self.record_count
        cdef Py_ssize_t states_before = self.state_count
        if end - start < 5 or data[start] or data[start + 1] != 1 or data[start + 2] != 1:
            return 0
        if data[start + 3] or data[start + 4]:
            return 0
        if not _count(data, end, &position, &count) or end - position - count < 28:
            return 0
        try:
            PyBytes_FromStringAndSize(<const char*>data + position, count).decode()
        except UnicodeDecodeError:
            return 0
        position += count
        self.incarnations.data.as_longlongs[row] = <int64_t>_u64(data + position)
        self.checkpoint_epochs.data.as_ints[row] = <int32_t>_u32(data + position + 8)
        self.decided_at_ms.data.as_longlongs[row] = <int64_t>_u64(data + position + 12)
        self.back_offsets.data.as_longlongs[row] = <int64_t>_u64(data + position + 20)
        position += 28
        if not self.read_members(data, end, &position) or not _count(data, end, &position, &count):
            return 0
        for index in range(count):
            if not self.add_state(data, end, &position):
                self.state_count = states_before
                return 0
        if not _skip_tags(data, end, &position) or position != end:
            self.state_count = states_before
            return 0
        return 1

    cdef int add_decoded(self, delta) except -1:
        """Adds a delta of a later version: such records are rare, and the pure decoder reads their conditions."""
        cdef Py_ssize_t row = self.record_count
        cdef Py_ssize_t slot
        if delta is None:
            return 0
        self.incarnations.data.as_longlongs[row] = delta.group_incarnation
        self.checkpoint_epochs.data.as_ints[row] = delta.checkpoint_epoch
        self.decided_at_ms.data.as_longlongs[row] = delta.decided_at_ms
        self.back_offsets.data.as_longlongs[row] = delta.back_offset
        self.record_members = list({state.member: None for state in delta.states if state.member is not None})
        for state in delta.states:
            slot = self.state_count
            self.record_indexes.data.as_longlongs[slot] = row
            self.first_offsets.data.as_longlongs[slot] = state.base_offset
            self.last_offsets.data.as_longlongs[slot] = state.last_offset
            self.states.data.as_schars[slot] = state.state
            self.delivery_counts.data.as_shorts[slot] = state.delivery_count
            self.causes.data.as_schars[slot] = state.cause
            self.members.data.as_ints[slot] = (
                -1 if state.member is None else self.record_members.index(state.member)
            )
            self.state_count += 1
        return 1

    cdef int read_members(self, const uint8_t* data, Py_ssize_t end, Py_ssize_t* position) except -1:
        cdef Py_ssize_t count, size, index
        self.record_members = []
        if not _count(data, end, position, &count):
            return 0
        for index in range(count):
            if not _count(data, end, position, &size):
                return 0
            try:
                member = PyBytes_FromStringAndSize(<const char*>data + position[0], size).decode()
            except UnicodeDecodeError:
                return 0
            self.record_members.append(member)
            position[0] += size
        return 1

    cdef int add_state(self, const uint8_t* data, Py_ssize_t end, Py_ssize_t* position) except -1:
        cdef const uint8_t* at = data + position[0]
        cdef Py_ssize_t slot = self.state_count
        cdef int8_t state, cause
        cdef int16_t member
        if end - position[0] < STATE_BYTES + 1:
            return 0
        state = <int8_t>at[16]
        cause = <int8_t>at[19]
        member = _i16(at + 20)
        position[0] += STATE_BYTES
        if at[22]:
            if not _skip_tags(data, end, position):
                return 0
        else:
            position[0] += 1
        if (state != 0 and state != 2 and state != 4) or cause < 0 or cause > 10:
            return 0
        if member < -1 or member >= len(self.record_members):
            return 0
        self.record_indexes.data.as_longlongs[slot] = self.record_count
        self.first_offsets.data.as_longlongs[slot] = <int64_t>_u64(at)
        self.last_offsets.data.as_longlongs[slot] = <int64_t>_u64(at + 8)
        self.states.data.as_schars[slot] = state
        self.delivery_counts.data.as_shorts[slot] = _i16(at + 17)
        self.causes.data.as_schars[slot] = cause
        self.members.data.as_ints[slot] = member
        self.state_count += 1
        return 1

    cdef int number_members(self, Py_ssize_t from_state) except -1:
        """Gives the members of the delta just read their numbers in the pack, in the order of its ranges."""
        cdef Py_ssize_t slot
        cdef int member
        for slot in range(from_state, self.state_count):
            member = self.members.data.as_ints[slot]
            if member >= 0:
                name = self.record_members[member]
                number = self.member_numbers.get(name)
                if number is None:
                    number = self.member_numbers[name] = len(self.member_numbers)
                self.members.data.as_ints[slot] = number
        return 0


cdef int _skip_tags(const uint8_t* data, Py_ssize_t end, Py_ssize_t* position) noexcept:
    cdef uint64_t count, size
    if not _varint(data, end, position, 5, &count):
        return 0
    while count:
        if not _varint(data, end, position, 5, &size) or not _varint(data, end, position, 5, &size):
            return 0
        if size > <uint64_t>(end - position[0]):
            return 0
        position[0] += <Py_ssize_t>size
        count -= 1
    return 1


def fill_columns(columns):
    """See `control_columns.fill_columns`."""
    cdef bytes payload = columns.payload
    cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(payload)
    cdef Py_ssize_t end = len(payload)
    cdef Py_ssize_t position = 0
    cdef Py_ssize_t start, row, states_before
    cdef int8_t kind
    cdef bint is_read
    cdef _Filling filling = _Filling(end)
    while position < end:
        row = filling.record_count
        start = position + ENTRY_HEAD_BYTES
        filling.offsets.data.as_longlongs[row] = <int64_t>_u64(data + position)
        filling.leader_epochs.data.as_ints[row] = <int32_t>_u32(data + position + 8)
        kind = <int8_t>data[position + 12]
        position = start + <Py_ssize_t>_u32(data + position + 13)
        states_before = filling.state_count
        filling.value_starts.data.as_longlongs[row] = start
        filling.value_ends.data.as_longlongs[row] = position
        if kind == DELTA and position - start > 1 and not (data[start] == 0 and data[start + 1] == 1):
            is_read = filling.add_decoded(decode_delta(payload[start:position]))
        else:
            is_read = kind == DELTA and filling.add_delta(data, start, position)
        if is_read:
            filling.number_members(states_before)
        else:
            if kind == DELTA:
                kind = MALFORMED
            filling.incarnations.data.as_longlongs[row] = 0
            filling.checkpoint_epochs.data.as_ints[row] = 0
            filling.decided_at_ms.data.as_longlongs[row] = 0
            filling.back_offsets.data.as_longlongs[row] = 0
        filling.kinds.data.as_schars[row] = kind
        filling.state_ends.data.as_longlongs[row] = filling.state_count
        filling.record_count += 1
    _hand_over(columns, filling)


cdef _hand_over(columns, _Filling filling):
    for name, column in (
        ("offsets", filling.offsets),
        ("leader_epochs", filling.leader_epochs),
        ("kinds", filling.kinds),
        ("value_starts", filling.value_starts),
        ("value_ends", filling.value_ends),
        ("incarnations", filling.incarnations),
        ("checkpoint_epochs", filling.checkpoint_epochs),
        ("decided_at_ms", filling.decided_at_ms),
        ("back_offsets", filling.back_offsets),
        ("state_ends", filling.state_ends),
    ):
        array.resize(column, filling.record_count)
        setattr(columns, name, column)
    for name, column in (
        ("record_indexes", filling.record_indexes),
        ("first_offsets", filling.first_offsets),
        ("last_offsets", filling.last_offsets),
        ("states", filling.states),
        ("delivery_counts", filling.delivery_counts),
        ("causes", filling.causes),
        ("members", filling.members),
    ):
        array.resize(column, filling.state_count)
        setattr(columns, name, column)
    columns.member_names = list(filling.member_numbers)
