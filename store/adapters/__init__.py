"""Sessions of agent frameworks, kept in a store: one module a framework.

Each needs the framework's package: ``pip install 'backscroll[adapters]'``.
"""
