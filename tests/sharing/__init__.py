"""Tests of what is masked when sessions are shared."""
