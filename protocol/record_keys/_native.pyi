"""The native module has the same interface as the one in Python."""

from barnabas.protocol.record_keys._python import kept_records as kept_records
from barnabas.protocol.record_keys._python import key_hash as key_hash
from barnabas.protocol.record_keys._python import key_hashes as key_hashes
