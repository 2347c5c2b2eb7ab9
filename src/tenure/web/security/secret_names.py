"""Which names are those of secrets: `password`, `dbPassword`, `X-Api-Key`, `accesstoken`; but not `max_tokens` or `keyboard`."""

from __future__ import annotations

import re
from collections.abc import Iterable

SECRET_NAMES = (
    "password", "passwords", "passwd", "passphrase", "pwd", "secret", "secrets", "token", "authorization", "auth_header",
    "basic_auth", "bearer", "jwt", "cookie", "cookies", "credential", "credentials", "dsn", "connection_string", "database_url",
    "api_key", "api_keys", "access_key", "access_keys", "private_key", "private_keys", "secret_key", "secret_keys",
    "client_secret", "access_tokens", "api_tokens", "auth_tokens", "bearer_tokens", "refresh_tokens", "session_tokens",
)  # fmt: skip

HARMLESS = frozenset({
    "budget", "changed", "count", "counts", "enabled", "expires", "expiry", "length", "limit", "limits", "policy", "required",
    "size", "total", "type", "usage", "used",
})  # fmt: skip
"""After a secret's name: something about it, such as `token_count`."""

SHORTEST_ENDING = 5
"""Letters of a name that is also found at the end of a word, such as `accesstoken`. Shorter ones end too many other words."""

LONGEST_END = 200
"""Characters at the beginning and at the end of a longer name that are looked at. Such a name is a text or an address: words in
its middle are not about its value."""

MOST_KNOWN = 10_000  # names

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W_A-Za-z0-9]+")
_SEPARATORS = re.compile(r"[\W_]+")


class SecretNames:
    """A name is secret if its words contain those of a listed one, or if one of its words ends with it."""

    def __init__(self, names: Iterable[str] = SECRET_NAMES) -> None:
        self._secret = {words for name in names if (words := tuple(_words(name)))}
        self._longest = max((len(words) for words in self._secret), default=0)
        self._joined = frozenset("".join(words) for words in self._secret)
        self._anywhere = re.compile("|".join(self._joined))
        self._endings = tuple(joined for joined in self._joined if len(joined) >= SHORTEST_ENDING)
        self._known: dict[str, bool] = {}

    def include(self, name: object) -> bool:
        text = _ends(str(name))
        known = self._known.get(text)
        if known is None:
            known = self._may_match(text) and self._matches(_words(text))
            if len(self._known) < MOST_KNOWN:
                self._known[text] = known
        return known

    def _may_match(self, text: str) -> bool:
        """Fast, because an input may have a hundred thousand names: the words of a secret's name follow each other in it."""
        return self._anywhere.search(_SEPARATORS.sub("", text).lower()) is not None

    def _matches(self, words: list[str]) -> bool:
        joined = "".join(words)
        # Alone, `tokens` are secrets; among other words they are mostly counted, as in `max_tokens`.
        if joined in self._joined or ("token" in self._joined and joined == "tokens"):
            return True
        return any(
            self._ends_at(words, end) and not HARMLESS.intersection(words[end : end + 1]) for end in range(1, len(words) + 1)
        )

    def _ends_at(self, words: list[str], end: int) -> bool:
        """Whether a secret's name ends with the word before this place."""
        return words[end - 1].endswith(self._endings) or any(
            tuple(words[end - length : end]) in self._secret for length in range(1, min(self._longest, end) + 1)
        )


def _ends(name: str) -> str:
    return name if len(name) <= 2 * LONGEST_END else f"{name[:LONGEST_END]} {name[-LONGEST_END:]}"


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]
