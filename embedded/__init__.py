"""Everything that runs Tidemark on one machine: a Kafka broker, the other processes, and who ends them.

Promises that nothing started here outlives whoever started it, whichever way that one goes.  It knows the processes'
command lines and ready lines and none of their inner parts.
"""
