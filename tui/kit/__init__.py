r"""What every screen is drawn with; rooms import the kit, the kit imports no room.

How to show something:

1. **Lines.** Build ``Line`` objects from runs, pairs of text and ink (``tui.kit.lines``). An
   ink names what the text means (``"muted"``, ``"error bold"``), never a colour. Text of a
   session goes through ``clean`` or ``one_line`` first (``tui.kit.text``); what breaks long
   text (``tui.kit.wrap``, ``tui.kit.markdown``, ``tui.kit.diff``, ``tui.kit.highlight``) does
   that itself.
2. **Blocks.** A ``Block`` has a height at a width and gives any of its lines on demand
   (``tui.kit.blocks``): ``Fixed`` for a few lines, ``Text`` for text of any size, ``Columns``
   for two sides; ``Tree`` for a JSON value, ``prose`` for Markdown, ``changes`` for a diff.
   Where none fits, subclass ``Block``: ``height`` and ``line`` are enough.
3. **A view.** ``LineView`` (``tui.kit.line_view``) shows blocks and has the cursor, folding,
   finding, mouse selection and copying; ``LineBar`` shows one line, ``Tabs`` a title with tabs.
   A widget of its own makes its strips by ``row_of`` (``tui.kit.paint``) and its selection by
   ``tui.kit.selection``.

What a line is about goes with it: ``value`` is copied, opened or saved, ``link`` is where enter
leads, ``fold`` names what folds. The view hands these over; the room acts on them.

Example::

    class Example(App[None]):
        def compose(self) -> ComposeResult:
            yield LineView()

        def on_mount(self) -> None:
            def top(width: int) -> list[Line]:
                state = pair("state", [("✔ done", "ok bold")], width)
                return [heading("Output", ["2 lines"], width), state]

            output = "make: done\n3 warnings"
            body = Text(output, value=Value("output", lambda: output))
            self.query_one(LineView).show([Fixed(top), body])
"""
