"""The work of `barnabas topics`, `groups` and `config`: asks brokers as an administrator, and prints the
answers.

All of it uses Kafka's APIs alone, so it works with Apache Kafka, too.
"""
