"""The dead letters of share groups (KIP-1191): lists them, shows them, and writes their records again.

letter                one letter: where its record is, and why it is there
selection             the letters that the arguments select
content               the record that a letter stands for, from the source topic or from the letter's copy
redriven_offsets      the letters that were re-driven before, as records of a journal
session               the connections of a command, and reads of whole records
letter_log            the letters of a topic in their order
source_records        reads records of source topics at single offsets
journal               the topic that holds the journal
redriving             writes records and the journal, one transaction for each batch
listing               `list` and `show`
running               the three commands
throttle, stopping
"""
