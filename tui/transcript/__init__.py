"""The virtualised transcript: document, layout, rendering."""
