"""Each module of tests that opens a store does it on both engines, or says here why not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
OPENS = re.compile(r"\b(open_database|make_store|make_demo|Store\.open|making\.\w+)\(")
ON_BOTH = {
    "db", "fresh", "location", "of_any_form", "of_each_form", "opened", "own_talk", "postgres",
    "server_stores", "talk", "url",
}  # fmt: skip
"""Fixtures of stores on each engine, or of a server."""
IN_FILES_ALONE = {
    "the sync reads into a file; a server gets the rows by copying/ and as"
    " tests/sources/test_arrival_on_a_server.py shows": """
        test_by_turns test_continued_forks test_counting_property test_growth test_liveness
        test_sync_depending test_sync_engine test_sync_gone test_sync_helpers test_sync_live
        test_sync_outlines test_sync_process test_sync_property test_sync_writer test_two_names
        test_watch_growing test_watch_parts test_watch_process""",
    "how a file is opened, locked, migrated, copied and made smaller, and who may read it": """
        events/test_keeping test_no_store test_odd_schemas test_opening test_permissions
        test_reading_locks test_schema test_snapshots test_store upkeep/test_compacting
        upkeep/test_pruning upkeep/test_restoring""",
    "the index of a file; search/test_on_a_server.py compares a server's hits with it": """
        search/test_samples search/test_searcher search/test_searching test_search_index
        test_search_index_property""",
    "the demo is a file; test_both_engines.py reads it on a server": "test_demo",
    "locks of a file; test_recorder_begun.py and test_server_faults.py have a server's":
        "test_recorder_host",
}  # fmt: skip


def fixtures(module: Path) -> set[str]:
    """Return the names of the fixtures that a module takes from elsewhere."""
    tests, own = [], set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if any("fixture" in ast.unparse(each) for each in node.decorator_list):
                own.add(node.name)
                tests.append(node)
            elif node.name.startswith("test"):
                tests.append(node)
    return {one.arg for each in tests for one in each.args.args} - own


def is_in_files_alone(module: Path) -> bool:
    return bool(OPENS.search(module.read_text())) and not fixtures(module) & ON_BOTH


def test_stores_are_on_both_engines() -> None:
    known = {name for names in IN_FILES_ALONE.values() for name in names.split()}
    found = {str(path.relative_to(HERE).with_suffix("")) for path in HERE.rglob("test_*.py")
             if path != Path(__file__) and is_in_files_alone(path)}
    assert found - known == set(), "use a fixture of tests/store/conftest.py, or say why not"
    assert known - found == set(), "these are on both engines: take them out"
