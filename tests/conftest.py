"""Settings of all tests: how long an example takes is no property of what it tests."""

from __future__ import annotations

import resource

from hypothesis import HealthCheck, settings

# The store keeps one descriptor of each database that it opened (see store.access), which
# is a few for a user and many thousands of files for a whole run of tests.
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (_hard, _hard))

settings.register_profile("backscroll", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("backscroll")
