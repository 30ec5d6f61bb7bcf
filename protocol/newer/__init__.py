"""Message versions of Apache Kafka 4.4 that kio does not have yet, in kio's own form.

A module holds one version of one API. Its classes extend kio's classes of the previous version: new fields
follow the inherited ones, and a field that is declared again keeps its position. A module is deleted when kio
has its version.
"""
