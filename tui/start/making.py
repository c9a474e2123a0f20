"""A store that another process fills while the app already shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from store.errors import StoreError
from store.system.children import child_environment
from store.system.programs import NOWHERE, PIPE, CommandLine, start


class Making:
    """The process that fills the store; it runs from the moment that this is made.

    Attributes:
        words: What it does, such as ``Making the demo store``.
    """

    def __init__(self, words: str, module: str, paths: Sequence[str]) -> None:
        """Start ``python -m module``.

        Args:
            words: What it does.
            module: The module.
            paths: Its arguments, absolute.
        """
        self.words = words
        command = CommandLine.python(module)
        for path in paths:
            command = command.path(path)
        self._process = start(
            command, environment=child_environment(), stdin=NOWHERE, stdout=NOWHERE, stderr=PIPE
        )

    async def done(self) -> None:
        """Wait until the store is filled.

        Raises:
            StoreError: It could not be filled; the message gives the reason.
        """
        _, errors = await asyncio.to_thread(self._process.communicate)
        if self._process.returncode:
            lines = errors.decode("utf-8", "replace").strip().splitlines()
            raise StoreError(lines[-1] if lines else f"ended with {self._process.returncode}")

    def stop(self) -> None:
        """Stop it, where it still runs."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
