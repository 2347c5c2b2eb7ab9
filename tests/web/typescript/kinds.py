"""Kinds of many types, for `tenure typegen`."""

from datetime import datetime
from enum import Enum
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, Field

from tenure import Context, Tenure

app = Tenure()


class Format(Enum):
    CSV = "csv"
    JSON = "json"


class Node(BaseModel):
    """A part of a tree."""

    name: str
    children: list["Node"] = []


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: tuple[str, int] | None = None


class Point(NamedTuple):
    x: int
    y: float


class Order(BaseModel):
    """An order. It ends a comment: */"""

    number: int = Field(alias="order-number", description="Counted from 1.")
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    at: datetime
    labels: dict[str, list[int]] = {}


@app.job
async def export_users(ctx: Context, format: Format, columns: list[str] | None = None) -> dict[str, int]:  # noqa: A002
    """Exports all users."""
    return {}


@app.job(name="billing.place-order")
async def place_order(order: Order) -> Node:
    return Node(name="x")


@app.job(name="2fa/send")
async def send(point: Point, tree: Node, anything: object = None) -> None: ...


@app.job(name="billing/place_order")
async def other() -> tuple[int, str]:
    return 1, ""
