"""Tricks that depend on how CPython works inside: each is one file, which says of which versions it is true."""
