"""A picture as a page draws it: the specification without its rows, the rows by name, and a hash of what does not move."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import TYPE_CHECKING, Any

from headway.core.listing import clean
from headway.report.pictures.frame import thinned

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture

OWN_NAMES = "rows_"
LEFT_OUT = ("datasets", "description", "$schema")  # rows go apart, the page says the words, and the library warns of another's schema


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PagePicture:
    """A specification, its rows by name, its words, and the ends of its axes, which a page sends back while a slider moves."""

    name: str
    about: str
    spec: dict[str, Any]
    data: dict[str, Any]
    shape: str
    title: str
    subtitle: str
    caption: str
    alt: str
    axes: dict[str, Any]


def page_picture(name: str, picture: Picture, about: str = "", moving: bool = False) -> PagePicture:
    """A picture for a page: rows that stand inside it get names, because only named rows can move; a moving one has fewer of them."""
    data: dict[str, Any] = {}
    bare = _without_rows({key: value for key, value in picture.spec.items() if key not in LEFT_OUT}, data)
    data |= picture.spec.get("datasets", {})
    if moving:
        data = {key: thinned(rows) for key, rows in data.items()}
    shape = hashlib.blake2b(json.dumps(bare, sort_keys=True).encode(), digest_size=12).hexdigest()
    axes = {axis: list(ends) for axis, ends in picture.axes.items()}
    return PagePicture(
        name=name, about=about, spec=bare, data=data, shape=shape, title=picture.title, subtitle=picture.subtitle, caption=picture.caption,
        alt=picture.alt, axes=axes,
    )  # fmt: skip


def _without_rows(node: Any, data: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_without_rows(item, data) for item in node]
    if not isinstance(node, dict):
        return node
    bare = {}
    if node.get("type") == "log":  # Vega warns of the other on it
        node = {key: value for key, value in node.items() if key != "zero"}
    for key, value in node.items():
        if key == "data" and isinstance(value, dict) and isinstance(value.get("values"), list):
            name = value.get("name") or f"{OWN_NAMES}{len(data)}"
            data[name] = clean(value["values"])
            bare[key] = {"name": name}
        else:
            bare[key] = _without_rows(value, data)
    return bare
