"""The lines of what writes: sync, recording, fork. Each is measured in a module of its own."""

from __future__ import annotations

from tests.bench import (
    corpora,
    first_run_bench,
    fork_bench,
    growth_bench,
    kinds_bench,
    record_bench,
    sync_bench,
)
from tests.bench.report import Limits, Line


def sync(quick: bool) -> list[Line]:
    """Sync a tree of each large agent, then look for what is new in Claude Code's."""
    found = sync_bench.measure(quick)
    what = f"{found['files']:,} files, {found['messages']:,} messages"
    others = [
        ("Codex", sync_bench.measure(quick, corpora.CODEX)),
        ("opencode", sync_bench.measure(quick, corpora.OPENCODE)),
    ]
    return [
        Line("sync", f"sync of {what}", found["sync_s"], "s", found["floor_s"],
             Limits(ratio=1.4), found, found["ratio"]),
        *(
            Line("sync", f"sync of {other['files']:,} sessions of {name}, the same messages",
                 other["sync_s"], "s", other["floor_s"], Limits(ratio=1.6), other, other["ratio"])
            for name, other in others
        ),
        Line("sync", "second sync, nothing new, per 1,000 files",
             found["again_ms_per_1000_files"], "ms", limits=Limits(value=100),
             details={"whole_process_s": found["again_s"]}),
    ]  # fmt: skip


def first_run(quick: bool) -> list[Line]:
    """Sync a Claude Code tree into a new store, to its first sessions and to all of them."""
    found = first_run_bench.measure(quick)
    what = f"{found['files']:,} files, {found['bytes'] / 1_000_000:,.0f} MB"
    return [
        Line("first", f"first run over {what}: first rows", found["first_s"], "s",
             limits=Limits(value=0.4), details=found),
        Line("first", f"first run over {what}: whole list", found["listed_s"], "s",
             limits=Limits(value=2)),
    ]  # fmt: skip


def kinds(quick: bool) -> list[Line]:
    """Look for every kind of session, and sync a home of many kinds with nothing new."""
    found = kinds_bench.measure(quick)
    what = f"{found['found']} of {found['kinds']} kinds"
    return [
        Line("kinds", f"looking for sessions in a home of {what}", found["look_ms"], "ms",
             limits=Limits(value=20), details=found),
        Line("kinds", f"second sync, nothing new, {what}, per 1,000 files",
             found["again_ms_per_1000_files"], "ms", limits=Limits(value=100)),
    ]  # fmt: skip


def grow(quick: bool) -> list[Line]:
    """Append a line to a long Claude Code session, after its first sync."""
    found = growth_bench.measure(quick)
    size = f"a {found['bytes'] / 1_000_000:,.0f} MB file"
    return [
        Line("grow", f"one line appended to {size}", found["append_ms"], "ms",
             found["floor_ms"], Limits(value=50), found),
        Line("grow", f"first sync of {size}", found["first_s"], "s", found["first_floor_s"],
             Limits(ratio=2)),
        Line("grow", f"most memory of the first sync of {size}", found["first_mb"], "MB",
             limits=Limits(value=300)),
        Line("grow", "most memory of the sync of one line more", found["append_mb"], "MB",
             found["idle_mb"], Limits(over=10)),
    ]  # fmt: skip


def record(quick: bool) -> list[Line]:
    """Record 1,000 chunks a second with the command's recorder and with a host's."""
    found = record_bench.measure(quick)
    per_second = 1_000 / found["seconds"]
    return [
        Line("record", f"CPU of recording a second of 1,000 chunks, {who}",
             found[f"{way}_cpu_s"] * per_second, "ms", found[f"{floor}_cpu_s"] * per_second,
             Limits(ratio=1.5), found)
        for who, way, floor in (
            ("backscroll record", "record", "floor"), ("store.Recorder", "host", "host_floor"),
        )
    ]  # fmt: skip


def fork(quick: bool) -> list[Line]:
    """Fork at the end of a long session."""
    found = fork_bench.measure(quick)
    return [
        Line("fork", f"fork at the end of {found['parts']:,} parts", found["fork_s"], "s",
             found["floor_s"], Limits(ratio=1.5), found, found["ratio"])
    ]  # fmt: skip
