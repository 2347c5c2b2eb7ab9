"""Records `tenure demo` and draws its last screen as demo.svg: `python docs/images/record_demo.py`.

The demo runs in a pseudo-terminal, as it does for a person. The picture has what was on the screen at the end, up to the hints on
what to run next. No line is added or changed.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PICTURE = Path(__file__).with_name("demo.svg")
COLUMNS = 88
LINES = 80  # more than the demo prints: nothing scrolls
HINTS = "Next steps:"

FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
COLORS = TerminalTheme(
    background=(22, 27, 34),
    foreground=(214, 220, 228),
    normal=[
        (22, 27, 34),
        (248, 113, 105),
        (87, 190, 110),
        (222, 178, 76),
        (104, 166, 247),
        (188, 140, 242),
        (86, 194, 205),
        (214, 220, 228),
    ],
)

CONTROL = re.compile(r"(\n|\r|\x1b\[\d*A|\x1b\[2K|\x1b\[\?25[lh])")


def record(command: list[str]) -> str:
    """All that a command writes to a terminal of this size."""
    ours, its = pty.openpty()
    env = {**os.environ, "COLUMNS": str(COLUMNS), "LINES": str(LINES), "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=env, start_new_session=True) as running:
        os.close(its)
        written = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    if running.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {running.returncode}:\n{written.decode()}")
    return written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the last process has closed its side
        return b""


def last_screen(written: str) -> list[str]:
    """The lines on the screen at the end, with their colors. Knows the movements that rich uses: up, and erase the line."""
    screen: defaultdict[int, str] = defaultdict(str)
    row = 0
    for part in CONTROL.split(written):
        if part == "\n":
            row += 1
        elif part.endswith("A") and part.startswith("\x1b["):
            row -= int(part[2:-1] or 1)
        elif part == "\x1b[2K":
            screen[row] = ""
        elif not CONTROL.fullmatch(part):
            screen[row] += part
    return [screen[number] for number in range(max(screen) + 1)]


def draw(lines: list[str]) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        text = Text.from_ansi(line)
        text.rstrip()
        console.print(text, highlight=False, soft_wrap=True)
    console.print()  # room below the last line
    picture = console.export_svg(title="tenure demo", theme=COLORS, unique_id="demo")
    # A picture in a page cannot load fonts from elsewhere.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    return picture.replace("Fira Code, monospace", FONTS).replace("arial", "sans-serif")


def main() -> None:
    lines = last_screen(record([sys.executable, "-m", "tenure", "demo"]))
    end = next(number for number, line in enumerate(lines) if line.startswith(HINTS))
    PICTURE.write_text(draw(lines[: end - 1]), "utf-8")  # without the empty line before it
    print(f"wrote {PICTURE}")


if __name__ == "__main__":
    main()
