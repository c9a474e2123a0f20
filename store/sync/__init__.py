"""Brings what agents wrote into the store: incremental, resumable, never in the drawing process."""
