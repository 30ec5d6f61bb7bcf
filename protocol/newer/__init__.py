"""Versions of messages that Apache Kafka 4.4 added and that kio does not know yet, in kio's own form.

A module holds one version of one API. Its classes extend kio's classes of the version before: fields that a
version adds stand behind the inherited ones, and a field that is declared again keeps its place. When kio
has a version, its module here goes.
"""
