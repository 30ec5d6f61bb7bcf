"""The work of `barnabas produce`, `consume` and `share`: records from lines to topics, and from topics to
lines.

All of it uses Kafka's APIs alone, so it works with Apache Kafka, too. `record_input` reads lines,
`record_output` prints records, and `key_presses` reads single keys from a terminal.
"""
