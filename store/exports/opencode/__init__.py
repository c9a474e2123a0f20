"""``--to opencode``: a file for ``opencode import``.

Source of the recipe: the opencode format page, section 2.10. All ids are new and all
references rewritten; opencode's own messages and parts are otherwise unchanged.
"""
