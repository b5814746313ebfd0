"""The word that was meant by one that is not known, such as a key, a command or an option."""

from __future__ import annotations


def misspelt(word: str, known: list[str]) -> str:
    """Return the known word that this one is nearly, else an empty string; `my_weights` is a word of its own."""
    import difflib

    found = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.75)
    return found[0] if found and word != found[0] and found[0] not in word.lower() else ""


def nearest(word: str, known: list[str]) -> str:
    """Return `; did you mean x?` for the known word that is most like this one, else an empty string."""
    import difflib

    by_lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean {by_lower[found[0]]}?" if found else ""
