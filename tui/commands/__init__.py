"""One declaration per command: keys, footer, palette, help and README all come from here."""
