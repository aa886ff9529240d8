"""An API whose OpenAPI document FastAPI writes."""

import sys
from typing import Annotated

import uvicorn
from fastapi import Depends, FastAPI, Form, HTTPException, Query
from fastapi.security import APIKeyHeader
from pydantic import BaseModel, Field

app = FastAPI()


class Item(BaseModel):
    name: str = Field(min_length=2)
    tags: list[str] = []
    parent: "Item | None" = None


items: dict[int, Item] = {}


def authorized(key: Annotated[str, Depends(APIKeyHeader(name="X-Api-Key"))]) -> None:
    if key != "hunter2-hunter2":
        raise HTTPException(403, "wrong key")


@app.post("/items", status_code=201, dependencies=[Depends(authorized)], operation_id="add_item")
def add_item(item: Item) -> int:
    items[len(items) + 1] = item
    return len(items)


@app.get("/items/{item_id}", operation_id="get_item")
def get_item(item_id: int) -> Item:
    if item_id not in items:
        raise HTTPException(404, f"no item {item_id}")
    return items[item_id]


@app.get("/items", operation_id="list_items")
def list_items(tag: Annotated[list[str], Query()] = []) -> list[str]:
    return [item.name for item in items.values() if set(tag) <= set(item.tags)]


@app.post("/label", operation_id="label")
def label(text: Annotated[str, Form()], size: Annotated[int, Form()] = 1) -> str:
    return f"{text} {size}"


@app.delete("/items", operation_id="clear")
def clear() -> None:
    items.clear()


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
