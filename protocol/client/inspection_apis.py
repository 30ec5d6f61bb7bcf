"""The client's side of the APIs that only Barnabas has: the records of a share group (docs/protocol.md)."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.api import kio_api
from barnabas.protocol.extended.alter_share_records_v0 import (
    AlterShareRecordsRequest,
    AlterShareRecordsResponse,
)
from barnabas.protocol.extended.describe_share_record_history_v0 import (
    DescribeShareRecordHistoryRequest,
    DescribeShareRecordHistoryResponse,
)
from barnabas.protocol.extended.describe_share_records_v0 import (
    DescribeShareRecordsRequest,
    DescribeShareRecordsResponse,
)

DESCRIBE_SHARE_RECORD_HISTORY: Final = kio_api(
    ApiKey.DESCRIBE_SHARE_RECORD_HISTORY,
    range(1),
    DescribeShareRecordHistoryRequest,
    DescribeShareRecordHistoryResponse,
)
DESCRIBE_SHARE_RECORDS: Final = kio_api(
    ApiKey.DESCRIBE_SHARE_RECORDS, range(1), DescribeShareRecordsRequest, DescribeShareRecordsResponse
)
ALTER_SHARE_RECORDS: Final = kio_api(
    ApiKey.ALTER_SHARE_RECORDS, range(1), AlterShareRecordsRequest, AlterShareRecordsResponse
)
