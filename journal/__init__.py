"""A Kafka topic that everyone folds: append a record, read back in offset order, let the fold decide.

Everything durable in Tidemark that is small (the catalog, the oracle, the views' commits) is a journal: one topic,
one partition, folded from the start by every process that needs it.  This package knows Kafka and nothing about
what the records mean.
"""
