"""Detects file systems that do not report changes made by other machines."""

from __future__ import annotations

from pathlib import Path

from store.system.paths import resolved

MOUNTS = Path("/proc/self/mountinfo")
SILENT = frozenset((
    "9p", "afs", "ceph", "cifs", "drvfs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4",
    "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs",
))  # fmt: skip
"""Types of file systems without events for changes made by other machines."""


def is_silent(folder: Path, mounts: Path = MOUNTS) -> bool:
    """Return whether a folder is on a file system without events for all changes."""
    try:
        text = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    real, best, kind = resolved(folder), "", ""
    for line in text.splitlines():
        fields = line.split(" ")
        if len(fields) < 9 or "-" not in fields[6:]:
            continue
        place = fields[4].replace("\\040", " ")
        if len(place) >= len(best) and (real + "/").startswith(place.rstrip("/") + "/"):
            best, kind = place, fields[fields.index("-", 6) + 1]
    return kind in SILENT or kind.startswith("fuse.")
