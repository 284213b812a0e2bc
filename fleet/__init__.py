"""What a container of the fleet runs besides the processes themselves: a broker, the environment, health checks.

``compose.yaml`` puts it together; ``docs/fleet.md`` is the guide.
"""
