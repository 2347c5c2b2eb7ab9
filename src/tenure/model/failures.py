"""How a failed attempt is stored: as one text for people, which programs can parse.

    shop.errors.CardDeclined: card 4242 was declined
        try another one

    Traceback (most recent call last):
      ...

The first line names the exception and its message; further lines of the message are indented; an empty line ends them. Then comes
the traceback as Python prints it, or nothing if the exception was never raised, as for a timeout. Other texts (a reason, a
quarantine, what SQL has written) are parsed as far as possible.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_MESSAGE = 2000  # characters: the head of a text stays when its middle is cut out

_INDENT = "    "
_HEAD = re.compile(
    r"(?P<type>[^\s:]+)(?::(?: (?P<message>[^\n]*(?:\n    [^\n]*)*))?)?\n\n"
    r"(?P<traceback>(?:Traceback |  \+ Exception Group Traceback ).*|\Z)",
    re.DOTALL,
)
_GROUP = re.compile(r"^  \| (?P<type>(?:\w+\.)*\w*ExceptionGroup): (?P<message>.*)$", re.MULTILINE)
_LAST = re.compile(r"(?P<type>(?:[\w<>]+\.)*[A-Z]\w*)(?::(?: (?P<message>.*))?)?\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Failure:
    path: str | None
    """The exception's class with its module, as a traceback names it; None if no exception was raised."""
    message: str
    traceback: str = ""

    @staticmethod
    def of(error: BaseException, traceback: str) -> Failure:
        kind = type(error)
        name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
        try:
            message = str(error)[:LONGEST_MESSAGE]
        except Exception:  # noqa: BLE001 - an exception's own code may raise anything
            message = "its message could not be written"
        return Failure(name.replace(":", "_"), message, traceback)

    @property
    def type(self) -> str | None:
        """The name of the class without its module."""
        return None if self.path is None else self.path.rpartition(".")[2]

    def write(self) -> str:
        """The text that `parse` reads."""
        message = self.message.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\n" + _INDENT)
        return f"{self.path}: {message}".removesuffix(": ") + f"\n\n{self.traceback}"

    @staticmethod
    def parse(text: str) -> Failure | None:
        """What `write` has written; None for any other text."""
        head = _HEAD.match(text)
        if head is None:
            return None
        return Failure(head["type"], (head["message"] or "").replace("\n" + _INDENT, "\n"), head["traceback"])

    @staticmethod
    def read(text: str, *, is_reason: bool = False) -> Failure:
        """`is_reason`: the text was given by the handler, `Fail("no such user")`, and is the message itself."""
        if is_reason or not text:
            return Failure(None, text.strip("\n") or "no reason given")
        if (written := Failure.parse(text)) is not None:
            return written
        if group := _GROUP.search(text):
            return Failure(group["type"], group["message"], text)
        return _from_the_end(text)

    def __str__(self) -> str:
        return self.message if self.type is None else f"{self.type}: {self.message}".removesuffix(": ")


def _from_the_end(text: str) -> Failure:
    """The exception's name and message at the end of a traceback. A plain reason has no name and is the message."""
    lines = text.rstrip("\n").splitlines()
    frames = [number for number, line in enumerate(lines) if line.startswith("  File ")]
    if frames:  # after the last one, the first line that is not indented names the exception
        lines = lines[next((n for n in range(frames[-1], len(lines)) if not lines[n].startswith(" ")), -1) :]
    message = "\n".join(lines).strip("\n") or "no reason given"
    named = _LAST.match(message)
    if named is None:
        return Failure(None, message, text if frames else "")
    return Failure(named["type"], named["message"] or "", text if frames else "")
