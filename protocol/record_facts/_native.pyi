"""The native module has the same interface as the one in Python."""

from barnabas.protocol.record_facts._python import record_facts as record_facts
