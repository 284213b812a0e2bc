"""Real processes, real faults, recorded histories."""
