"""How the documentation is built: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS)]

project = "smd_agent"
author = "smd_agent developers"
copyright = author
version = release = re.findall(r'^__version__ = "(.+)"$', (DOCS.parent / "smd_agent/__init__.py").read_text(), re.M)[0]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "smd_agent"
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]
pygments_style = "friendly"

# Headings can be linked to, such as page.md#a-heading.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]

# Docstrings. MXNet cannot be imported beside the other frameworks' NumPy: what is imported from it is stood in for.
default_role = "code"
autodoc_mock_imports = ["mxnet"]
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_default_options = {"inherited-members": "BaseException,dict,int"}
napoleon_numpy_docstring = False
napoleon_use_rtype = False

# Types of other projects, and of parts of this one that nobody calls, are not on the site.
nitpicky = True
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(abc|collections|enum|mxnet|numpy|npt|os|torch|tensorflow|tf|threading|typing|typing_extensions|xgboost|keras)\..*",
    ),
    (
        r"py:.*",
        r"Any|Self|optional|(.*\.)?(StepIndex|TensorSource|SeriesSource|Segment|CollectionManager|TensorflowHook|HookSettings|ModeClock|G)",
    ),
]
