"""Access to the operating system: files, folders, programs, processes, streams, time."""
