"""The documentation site: `make docs` builds it into site/ and fails on any warning."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

from tenure.version import __version__

project = "Tenure"
author = "The Tenure authors"
copyright = "The Tenure authors, Apache-2.0"  # noqa: A001 - the name that Sphinx reads
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "contents"
exclude_patterns = ["**/__pycache__"]

# Headings can be linked to as on GitHub: `concepts.md#glossary`.
myst_heading_anchors = 4
# Directives in colons: GitHub shows them as plain text, not as code.
myst_enable_extensions = ["colon_fence"]
# Pygments has no lexer for Svelte.
suppress_warnings = ["misc.highlighting_failure"]
# Docstrings put code in single backticks.
default_role = "code"

autodoc_default_options = {
    "members": True,
    "inherited-members": "Exception,IntEnum,StrEnum,str,int,tuple,Mapping",
    "member-order": "bysource",
}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"Tenure {__version__}"
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}
html_static_path = ["_static"]
html_css_files = ["tables.css"]


def _plain_type_variables(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    return _plain(signature), _plain(returns)


def _plain(text: str | None) -> str | None:
    """`~P`, as Python prints a type variable, is `P` in the source."""
    return text and re.sub(r"~([A-Z]\w*)(?![\w.])", r"\1", text)


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-signature", _plain_type_variables)
