"""Text that would do harm if a page took it for markup, a script or an address."""

from __future__ import annotations

MARK = "globalThis.__hostile=1"

_SCRIPTS = [
    f"<script>{MARK}</script>",
    f"<img src=x onerror={MARK}>",
    f"<svg onload={MARK}>",
    f"<svg><script>{MARK}</script></svg>",
    f"<iframe srcdoc='<script>parent.{MARK}</script>'></iframe>",
    f"<a href=javascript:{MARK}>x</a>",
    f"<body onload={MARK}>",
    f"<details open ontoggle={MARK}>",
    f"<input autofocus onfocus={MARK}>",
    f"<video><source onerror={MARK}></video>",
    f"<math><mtext><img src=x onerror={MARK}></mtext></math>",
    f"<style>@import 'javascript:{MARK}'</style>",
    f"<object data=javascript:{MARK}></object>",
    f"<form action=javascript:{MARK}><button>x</button></form>",
    f"<meta http-equiv=refresh content='0;url=javascript:{MARK}'>",
    f"<base href=javascript:{MARK}//>",
    f"<link rel=stylesheet href=data:text/css,*{{}} onload={MARK}>",
    f"<template><script>{MARK}</script></template>",
    f"<noscript><p title='</noscript><img src=x onerror={MARK}>'>",
    f"<marquee onstart={MARK}>x</marquee>",
]
_BREAKERS = ['">', "'>", "</td>", "</script>", "-->", "]]>", "`}", "${", "{{", '\\"']
_ADDRESSES = [
    f"javascript:{MARK}",
    f"JaVaScRiPt:{MARK}",
    f"java\tscript:{MARK}",
    f"data:text/html,<script>{MARK}</script>",
    f"vbscript:{MARK}",
    f"//evil.example/{MARK}",
    f"#/jobs/%3Cscript%3E{MARK}%3C/script%3E",
]
_ODD = [
    "",
    " ",
    "\u202egnp.exe",
    "\u0000".join("ab").replace("\u0000", ""),
    "\ufeffbom",
    "null",
    "undefined",
    "NaN",
    "__proto__",
    "constructor",
    "toString",
    "prototype",
    "%00%0a%0d",
    "%s%n%x",
    "'; drop table tenure.jobs; --",
    "1e309",
    "a" * 150,
    "مرحبا",
    "🇩🇪👩‍👩‍👧‍👦",
    "line\nbreak\ttab",
    "=HYPERLINK(1)",
    "../../etc/passwd",
]

_BROKEN = [f"{breaker}{script}" for breaker in _BREAKERS for script in _SCRIPTS[:16]]
STRINGS = list(dict.fromkeys([*_SCRIPTS, *_BROKEN, *_ADDRESSES, *_ODD]))
assert len(STRINGS) >= 200


def short(text: str) -> str:
    """Fits where names may have 200 bytes, and is not empty."""
    return (text.replace("\n", " ") or "x").encode()[:150].decode(errors="ignore").strip() or "x"
