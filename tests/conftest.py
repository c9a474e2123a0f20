"""Settings of all tests: how long an example takes is no property of what it tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("backscroll", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("backscroll")
