"""Jobs in processes of their own that raise what a worker may know, or not."""

from __future__ import annotations

import os

from tenure import Retry, Tenure

app = Tenure()
AGAIN = Retry(2, initial="10ms", jitter=False)


class Declined(Exception):
    """Takes other arguments than it passes on to its parent."""

    def __init__(self, code: int, limits: object = None) -> None:
        self.code = code
        self.limits = limits or {"day": 100}
        super().__init__(f"card declined with code {code}")


@app.job(run_in="process", max_attempts=1)
def raises_value_error() -> None:
    raise ValueError("no good")


@app.job(run_in="process", max_attempts=1)
def raises_declined() -> str:
    raise Declined(51)


@app.job(run_in="process", max_attempts=1)
def raises_unknown() -> None:
    import sys
    import types

    module = types.ModuleType("only_over_there")
    sys.modules[module.__name__] = module
    exec("class Strange(Exception): pass\ndef raise_strange(): raise Strange('from afar')", module.__dict__)
    module.raise_strange()


@app.job(run_in="process", max_attempts=1)
def raises_what_cannot_be_pickled() -> None:
    raise Declined(1, limits=lambda: None)


@app.job(run_in="process", max_attempts=1)
def raises_named(name: str) -> None:
    raise {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt}[name]("by the handler")


@app.job(run_in="process", retry=Retry(3, initial="10ms", jitter=False, give_up_on=Declined))
def gives_up() -> None:
    raise Declined(51)


@app.job(run_in="process")
def fine() -> str:
    return "fine"


@app.job(run_in="process", max_attempts=2)
def dies(word: str) -> None:
    os._exit(7)
