"""Readers of other agents' stores, one module or package a source, none knows another."""
