"""HTML from values: everything that is not markup already is escaped, so escaping cannot be forgotten."""

from __future__ import annotations

import html

from tenure.client.report.words import clean


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *content: str, **attributes: str) -> Markup:
    """`tag("p", text, class_="note")`. Attribute names that are Python keywords end in `_`."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{join(*content)}</{name}>")


def join(*content: str) -> Markup:
    return Markup("".join(_escaped(item) for item in content))


def _escaped(text: str) -> str:
    return text if isinstance(text, Markup) else html.escape(clean(text))
