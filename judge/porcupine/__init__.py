"""The register's history for Porcupine, a checker of linearizability that others wrote, and a run of it."""
