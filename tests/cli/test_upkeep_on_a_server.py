"""Commands about files, given a store on a server: they refuse, and name what serves there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sources.postgres_server import Server
from tests.store.engines import new_server_store
from tui.cli import main


@pytest.mark.parametrize(("command", "way_out"), [
    (["backup", "FILE"], "pg_dump"), (["vacuum"], "VACUUM"), (["checkpoint"], "CHECKPOINT"),
])
def test_a_command_about_files_names_what_serves_on_a_server(
    postgres: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str],
    way_out: str,
) -> None:
    words = [str(tmp_path / "b.db") if one == "FILE" else one for one in command]
    assert main([*words, "--store", new_server_store(postgres)]) == 1
    said = capsys.readouterr().err
    assert "is on a server" in said and way_out in said
    assert not (tmp_path / "b.db").exists()
