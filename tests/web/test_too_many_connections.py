"""What a page does when its connection ends with 4429: it waits, longer each time, before it asks for the same again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tenure.web
from tests.npm import TRACKER, node, run

pytestmark = pytest.mark.slow

DASHBOARD = Path(tenure.web.__file__).parent / "static" / "dashboard"

# Each connection opens, is ready, and is ended by the server as soon as it has subscribed. Timers of a second and more are noted
# and end at once, so that the delays are seen without waiting for them.
CLOSING = """
const delays = [], opened = [];
const { setTimeout: set } = globalThis;
globalThis.setTimeout = (run, delay, ...more) => {
  if (CONNECTED_AGAIN(delay)) delays.push(delay);
  return set(run, CONNECTED_AGAIN(delay) ? 0 : delay, ...more);
};
globalThis.WebSocket = class {
  static OPEN = 1;
  readyState = 1;
  constructor() {
    opened.push(this);
    if (opened.length > ATTEMPTS) return console.log(JSON.stringify({ delays })), process.exit();
    queueMicrotask(() => { this.onopen(); this.receive({ type: "ready" }); });
  }
  receive(message) { this.onmessage({ data: JSON.stringify(message) }); }
  send(text) {
    if (JSON.parse(text).type !== "subscribe") return;
    queueMicrotask(() => {
      this.readyState = 3;
      if (ERROR) this.receive(ERROR);
      this.onclose({ code: 4429 });
    });
  }
  close() {}
};
"""

FOLLOWED = {
    "dashboard": """
        globalThis.document = { baseURI: "http://localhost/" };
        const { follow, connect } = await import(DASHBOARD);
        follow("overview", () => {});
        connect();
    """,
    "tracker": """
        const { createTenure } = await import(TRACKER);
        const tenure = createTenure({ url: "http://localhost", token: "t", events: false });
        tenure.track("018f0000-0000-7000-8000-000000000000").subscribe(() => {});
    """,
}


def delays(page: str, attempts: int, error: dict[str, Any] | None, noted: str) -> list[float]:
    """Until each further connection."""
    constants = {
        "ATTEMPTS": attempts,
        "ERROR": error,
        "DASHBOARD": (DASHBOARD / "lib" / "live.js").as_uri(),
        "TRACKER": (TRACKER / "tenure.js").as_uri(),
    }
    given = "".join(f"const {name} = {json.dumps(value)};" for name, value in constants.items())
    script = f"{given} const CONNECTED_AGAIN = (delay) => {noted}; Math.random = () => 0.5; {CLOSING} {FOLLOWED[page]}"
    shown = run([node(), "--no-warnings", "--input-type=module", "-e", script], TRACKER)
    found: list[float] = json.loads(shown.splitlines()[-1])["delays"]
    return found


ERROR = {
    "type": "error",
    "retry_after": 3,
    "problem": {"status": 429, "detail": "wait 3 s", "type": "urn:tenure:problem:too-many"},
}


def test_the_dashboard_waits_as_long_as_it_ever_does():
    assert delays("dashboard", 3, ERROR, "delay > 100") == [15_000] * 3


@pytest.mark.parametrize(("error", "first"), [(ERROR, 3000), (None, 1000)])
def test_the_tracker_waits_as_long_as_it_is_asked_to_and_then_longer(error, first):
    """Its other timers have 10 s and 25 s."""
    found = delays("tracker", 5, error, "delay !== 10_000 && delay !== 25_000 && delay > 100")
    assert found == [max(first, 500 * 2**n) for n in range(5)]
