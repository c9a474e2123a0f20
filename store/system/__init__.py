"""What the operating system is asked for: files, folders, programs, processes, streams, time."""
