"""The native walker has the same interface as the one in Python."""

from barnabas.protocol.record_walk._python import check_records as check_records
from barnabas.protocol.record_walk._python import record_spans as record_spans
