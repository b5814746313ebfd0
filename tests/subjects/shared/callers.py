"""What a program can tell of the functions between it and a library: whom warnings name, what tracebacks show."""

import re
import sys
import traceback
import warnings
from pathlib import Path

LEVELS = 25
# Names and numbers that TensorFlow makes up for functions that it traces, and what XGBoost tells of the moment.
_PASSING = re.compile(
    r"(?<=__autograph_generated_file)\w+|(?<=__inference_train_step_)\d+|^\[[\d:]+\]|Stack trace:(?s:.*)"
)


def callers():
    """Print whom a warning names, by the number of frames it counts."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for level in range(1, LEVELS):
            warnings.warn("x", stacklevel=level)
    places = [_place(warning.filename, warning.lineno) for warning in found]
    # In a module that has hooks torch has one frame more.
    print("callers", [place for place, last in zip(places, ["", *places], strict=False) if place != last])


def failing(what, call, *args, **kwargs):
    """Call what fails, and print the traceback's places."""
    try:
        call(*args, **kwargs)
    except Exception as error:
        print(what, type(error).__name__, _PASSING.sub("", str(error)))
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name != "inner"]
        print(*(f"  {_place(frame.filename, frame.lineno)} {frame.name}" for frame in frames), sep="\n")
    else:
        print(what, "did not fail")


def _place(file, line):
    # Where torch calls a module's forward depends on whether there is a counter.
    return f"{Path(file).name}:{line}" if file == sys.argv[0] else _PASSING.sub("", Path(file).name)
