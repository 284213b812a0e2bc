"""Settings of this area's property tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is no failure: an example may take long.
settings.register_profile("tidemark", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tidemark")
