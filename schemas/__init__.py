"""Avro schemas of everything that is kept in a topic, frozen copies of what was released, and the codec.

Knows nothing of what records mean.
"""
