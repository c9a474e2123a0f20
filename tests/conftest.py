"""Settings of all tests: how long an example takes is no property of what it tests."""

from __future__ import annotations

import resource
import signal

from hypothesis import HealthCheck, settings

# The store keeps one descriptor of each database that it opened (see store.access), which
# is a few for a user and many thousands of files for a whole run of tests.
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (_hard, _hard))

# A shell that runs the tests in the background has them, and what they start, ignore these.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)

settings.register_profile("backscroll", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("backscroll")
