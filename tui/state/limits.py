"""What the browser may not do here, each with the reason.

The store cannot be changed where the browser is read only. Other programs cannot be run from a
web page, which must not become a shell; a page that is read only writes no file either.
"""

from __future__ import annotations

from store.system.records import NamedTuple

BY_OPTION = "Read only: Backscroll was started with --read-only"
BY_SETTING = "Read only: read_only is set in config.toml"
NO_PROGRAMS = "A web page cannot start other programs"


class Limits(NamedTuple):
    """What is off in this run of the browser.

    Attributes:
        read_only: Why nothing is changed: no verb, no sync, no mark, no place that is
            remembered. None where that is allowed.
        in_page: Whether the browser is shown in a web page, by ``backscroll serve``.
    """

    read_only: str | None = None
    in_page: bool = False

    @property
    def no_files(self) -> str | None:
        """Why no file may be saved, None where one may."""
        return self.read_only if self.in_page else None

    @property
    def no_programs(self) -> str | None:
        """Why no other program may be started, None where one may."""
        return NO_PROGRAMS if self.in_page else None


NO_LIMITS = Limits()


def limits_of(*, option: bool, setting: bool, in_page: bool = False) -> Limits:
    """Return the limits of a run.

    Args:
        option: Whether ``--read-only`` was given.
        setting: Whether the config has ``read_only``.
        in_page: Whether it is shown in a web page.
    """
    read_only = BY_OPTION if option else BY_SETTING if setting else None
    return Limits(read_only, in_page)
