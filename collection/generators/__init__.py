"""Load generators: events by their number.

Promises of each: the rows of event *n* are a function of the generator's options and *n* alone, on every machine and in
every process; so events may be made in batches of any size, from any number on, and twice.  Pure: when an event is due
is said by :mod:`collection.generators.pacing`, of a clock that somebody else looks at.
"""
