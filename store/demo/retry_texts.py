"""What the tools of the demo's first session read, wrote and printed."""

from __future__ import annotations

from store.demo.cast import API

WORKER = """\
     1\timport asyncio
     2\timport logging
     3\t
     4\tfrom httpx import AsyncClient, HTTPStatusError
     5\t
     6\tfrom sync.errors import Retry
     7\tfrom sync.tokens import TokenSource
     8\t
     9\tlog = logging.getLogger(__name__)
    10\t
    11\t
    12\tclass Worker:
    13\t    \"\"\"Pulls changes from the server until it is told to stop.\"\"\"
    14\t
    15\t    def __init__(self, client: AsyncClient, tokens: TokenSource) -> None:
    16\t        self.client = client
    17\t        self.tokens = tokens
    18\t        self.delay = 0.5
    19\t
    20\t    async def run(self) -> None:
    21\t        while True:
    22\t            try:
    23\t                await self.pull()
    24\t            except Retry as reason:
    25\t                log.warning("sync failed, again in %.1f s: %s", self.delay, reason)
    26\t                await asyncio.sleep(self.delay)
    27\t
    28\t    async def pull(self) -> None:
    29\t        token = await self.tokens.current()
    30\t        answer = await self.client.get(
    31\t            "/changes", headers={"Authorization": f"Bearer {token}"}
    32\t        )
    33\t        try:
    34\t            answer.raise_for_status()
    35\t        except HTTPStatusError as error:
    36\t            raise Retry(error) from error
    37\t        await self.store(answer.json())
"""

PATCH = [
    {
        "oldStart": 4, "oldLines": 6, "newStart": 4, "newLines": 7,
        "lines": [
            " from httpx import AsyncClient, HTTPStatusError",
            " ",
            "-from sync.errors import Retry",
            "+from sync.errors import GiveUp, Retry",
            " from sync.tokens import TokenSource",
            " ",
            "+FATAL = frozenset({400, 403, 404, 410})",
            " log = logging.getLogger(__name__)",
        ],
    },
    {
        "oldStart": 33, "oldLines": 5, "newStart": 35, "newLines": 11,
        "lines": [
            "         try:",
            "             answer.raise_for_status()",
            "         except HTTPStatusError as error:",
            "-            raise Retry(error) from error",
            "+            status = error.response.status_code",
            "+            if status in FATAL:",
            "+                raise GiveUp(error) from error",
            "+            if status == 401 and not self.refreshed:",
            "+                self.refreshed = True",
            "+                await self.tokens.refresh()",
            "+            raise Retry(error) from error",
            "         await self.store(answer.json())",
        ],
    },
]

FAILURES = """\
..........................................F.                             [100%]
=================================== FAILURES ===================================
________________________________ test_gives_up _________________________________

    async def test_gives_up(server, worker):
        server.expire_tokens()
        with pytest.raises(GiveUp):
>           await asyncio.wait_for(worker.run(), 1)
E           TimeoutError

tests/sync/test_worker.py:77: TimeoutError
------------------------------ Captured log call -------------------------------
WARNING  sync.worker:worker.py:27 sync failed, again in 0.5 s: 401 Unauthorized
WARNING  sync.worker:worker.py:27 sync failed, again in 0.5 s: 401 Unauthorized
=========================== short test summary info ============================
FAILED tests/sync/test_worker.py::test_gives_up - TimeoutError
1 failed, 43 passed in 2.87s"""

TODOS = [
    {"content": "Find where a 401 is turned into a retry", "status": "completed",
     "activeForm": "Finding where a 401 is turned into a retry"},
    {"content": "Separate fatal errors from transient ones", "status": "completed",
     "activeForm": "Separating fatal errors from transient ones"},
    {"content": "Give up after one refresh that does not help", "status": "in_progress",
     "activeForm": "Giving up after one refresh that does not help"},
    {"content": "Add a test that fails without the fix", "status": "pending",
     "activeForm": "Adding a test that fails without the fix"},
]

EDIT_INPUT = {
    "file_path": f"{API}/src/sync/worker.py",
    "old_string": "            raise Retry(error) from error\n",
    "new_string": "            status = error.response.status_code\n"
    "            if status in FATAL:\n"
    "                raise GiveUp(error) from error\n"
    "            if status == 401 and not self.refreshed:\n"
    "                self.refreshed = True\n"
    "                await self.tokens.refresh()\n"
    "            raise Retry(error) from error\n",
    "replace_all": False,
}
