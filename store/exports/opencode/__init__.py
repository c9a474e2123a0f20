"""``--to opencode``: a file that ``opencode import`` takes.

Source of the recipe: the opencode format page, section 2.10. New ids throughout, every
reference rewritten; what opencode wrote itself goes back to it as it was.
"""
