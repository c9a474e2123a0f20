"""Show what models cost, and which line of the table a model has.

Prices are dollars per million tokens; "–" is unknown, never free. With models named, the line of
each is shown, for each tier that has one; an id may begin with its provider, as in
amazon-bedrock/us.anthropic.claude-opus-5-5. The exit code is 1 if one has none.

A line of the configuration goes before those of a file that --update took, and these before those
of the package. In config.toml, every field but one price may be left out:

    [prices."my-model"]
    input = 3
    output = 15
    cache_read = 0.3
    cache_write_5m = 3.75
    cache_write_1h = 6
    above.200000 = { input = 6, output = 22.5 }
    tiers.batch = { input = 1.5, output = 7.5 }

--update takes LiteLLM's model_prices_and_context_window.json, or a file as --json prints it. It is
checked whole: if one entry cannot be used, nothing changes.

--json prints {"prices": [line, ...], "digest"}, or with models named {"models": [{"model",
"lines": [line, ...]}, ...]}. A line is {"id", "input", "output", "cache_read", "cache_write_5m",
"cache_write_1h", "above", "tier", "providers", "source", "date", "from": "config", "file" or
"package"}; null is unknown.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from store.text import figures
from store.text.neutral import with_escapes
from tui.cli.output import Printer, as_text, file_or_stdin, note, print_json

if TYPE_CHECKING:
    from store.prices.table import Price, PriceTable

EXAMPLES = (
    ("backscroll prices", "all lines"),
    ("backscroll prices claude-opus-5-5 gpt-5.5", "the lines of two models"),
    ("backscroll prices --update model_prices_and_context_window.json", "take newer prices"),
)
LAYERS = ("config", "file", "package")
"""Where a line is from, in the order in which they are asked."""
_HEADS = ("input", "output", "read", "write 5m", "write 1h")
_CELL = 10
_WIDEST = 44
_MOST_NAMED = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("models", metavar="MODEL", nargs="*", type=as_text, help="a model's id")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument(
        "--update", metavar="FILE",
        help="take the prices of a file, then show them; - reads stdin"
    )


def run(options: argparse.Namespace) -> int:
    """Print the table, or the lines of models."""
    from store.config import load_config
    from store.prices.loading import load_prices, take_prices

    if options.update is not None:
        with file_or_stdin(options.update) as (path, place):
            taken = take_prices(path)
        models = len({line.pattern for line in taken})
        note(f"Took the prices of {figures.count_of(models, 'model')} from {place}.")
        if not options.models and not options.json:
            return 0
    config = load_config()
    for mistake in config.mistakes:
        if mistake.reason.startswith("prices"):
            note(str(mistake))
    table = load_prices(config.prices)
    if table.problem is not None:
        note(f"{table.problem}. Its prices are not used.")
    return _print_models(table, options) if options.models else _print_all(table, options)


def _print_all(table: PriceTable, options: argparse.Namespace) -> int:
    if options.json:
        lines = [_json(table, line) for layer in table.layers for line in layer]
        print_json({"prices": lines, "digest": table.digest})
        return 0
    _print_lines(table, [line for layer in table.layers for line in layer])
    return 0


def _print_models(table: PriceTable, options: argparse.Namespace) -> int:
    found = [(model, _lines_of(table, model)) for model in options.models]
    if options.json:
        print_json({"models": [
            {"model": model, "lines": [_json(table, line) for line in lines]}
            for model, lines in found
        ]})  # fmt: skip
    else:
        _print_lines(table, [line for _, lines in found for line in lines])
        for model, lines in found:
            if not lines:
                note(f"No price is known for {with_escapes(repr(model))}.{_hint(table, model)}")
    return 0 if all(lines for _, lines in found) else 1


def _hint(table: PriceTable, part: str) -> str:
    """Return which models have a text in their names, the shortest first, or ""."""
    names = sorted({
        with_escapes(line.pattern) for layer in table.layers for line in layer
        if part and part.casefold() in line.pattern.casefold()
    }, key=lambda name: (len(name), name))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f" There are {', '.join(names[:_MOST_NAMED])}{more}." if names else ""


def _lines_of(table: PriceTable, model: str) -> list[Price]:
    """Return the lines that answers of a model have, the standard tier first."""
    tiers = dict.fromkeys(line.tier for layer in table.layers for line in layer)
    found = [table.price(model, None, tier) for tier in sorted(tiers, key=_standard_first)]
    return [line for line in found if line is not None]


def _standard_first(tier: str) -> tuple[bool, str]:
    return tier != "standard", tier


def _layer_of(table: PriceTable, line: Price) -> str:
    return next(name for name, layer in zip(LAYERS, table.layers, strict=True) if line in layer)


def _json(table: PriceTable, line: Price) -> dict[str, Any]:
    from store.prices.lines import RATES

    def rates(one: Any) -> dict[str, float | None]:
        return {name: getattr(one, name) for name in RATES}

    return {
        "id": line.pattern, **rates(line), "tier": line.tier, "providers": list(line.providers),
        "above": {str(above.tokens): rates(above) for above in line.above},
        "source": line.source, "date": line.date, "from": _layer_of(table, line),
    }  # fmt: skip


def _print_lines(table: PriceTable, lines: Iterable[Price]) -> None:
    lines = list(lines)
    if not lines:
        return
    printer = Printer()
    names = [_name_of(line) for line in lines]
    width = min(max(map(len, names)), _WIDEST)
    heads = "".join(f"{head:>{_CELL}}" for head in _HEADS)
    printer.line(printer.paint(f"{'':<{width}}{heads}  date        from", "faint"))
    for name, line in zip(names, lines, strict=True):
        from_ = "" if (layer := _layer_of(table, line)) == "package" else f"{layer}: "
        printer.line(
            printer.paint(f"{name:<{width}}", "bold"), printer.paint(_cells(line)),
            printer.paint(f"  {line.date:<10}  {from_}{line.source}", "faint"),
        )  # fmt: skip
        for above in line.above:
            label = f"  above {above.tokens:,} tokens"
            printer.line(printer.paint(f"{label:<{width}}", "faint"), printer.paint(_cells(above)))


def _name_of(line: Price) -> str:
    tier = "" if line.tier == "standard" else f" {line.tier}"
    only = [name for name in line.providers if name]
    return f"{line.pattern}{tier}" + (f" ({', '.join(only)})" if only else "")


def _cells(rates: Any) -> str:
    from store.prices.lines import RATES

    values = (getattr(rates, name) for name in RATES)
    return "".join(f"{'–' if value is None else f'{value:.10g}':>{_CELL}}" for value in values)
