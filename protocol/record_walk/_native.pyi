"""The native walker has the interface of its twin."""

from barnabas.protocol.record_walk._python import check_records as check_records
from barnabas.protocol.record_walk._python import record_spans as record_spans
