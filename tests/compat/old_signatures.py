"""Arguments of a function of smdebug's, written as one line."""

import inspect

MARKS = {"KEYWORD_ONLY": "*", "VAR_POSITIONAL": "*args:", "VAR_KEYWORD": "**"}


def parameters(function):
    """Such as ``step mode=ModeKeys.GLOBAL *regex=None``, where a star marks what is given by its name only."""
    found = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    defaults = ["" if one.default is one.empty else f"={one.default}" for one in found]
    return " ".join(MARKS.get(one.kind.name, "") + one.name + end for one, end in zip(found, defaults, strict=False))
