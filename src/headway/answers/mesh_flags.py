"""Flags that `matmul` and `collective` share: the mesh, its links by machine or by numbers, sizes of dimensions as axes."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from typing import Any

from headway.answers import arguments
from headway.core import schema
from headway.core.errors import BadValue, UnknownName
from headway.core.law_values import assignments
from headway.core.quantity import user_input
from headway.core.schema import Field
from headway.performance.assumptions import Assumptions
from headway.performance.collectives import NEAREST, NO_WRAP, WRAP, torus_sides
from headway.performance.mesh import NETWORKS, by_numbers, of_system

MOST_POINTS = 10_000
AXIS_NAMES = "XYZ"
RATE = Field("byte/s", "")
TIME = Field("s", "", open_low=False)


def machine(args: Any) -> Any:
    """The machine of --on, with edits; None without."""
    if args.on is None:
        return None
    machines = arguments.systems(args)
    if len(machines) > 1:
        raise BadValue("--on", args.on, "one machine; `headway compare` sets several side by side")
    return machines[0][0]


def whole_machine(system: Any) -> str:
    """The mesh of all chips of a machine: the sides of a torus, else one axis; empty without a machine of several chips."""
    if system is None or int(system.chips) < 2:
        return ""

    sides = [int(side) for side in torus_sides(system) if side > 1] if NEAREST[system.topology][0] == "torus" else []
    if math.prod(sides) != int(system.chips):
        sides = [int(system.chips)]
    return ",".join(f"{name}{side}" for name, side in zip(AXIS_NAMES, sides, strict=False))


def scalar(text: str | None, field: Field, flag: str) -> Any:
    """A number of a flag, None where the flag is absent."""
    return None if text is None else schema.scalar(text, field, flag)


def network(args: Any, system: Any, axes: tuple[Any, ...]) -> Any:
    """Links that the mesh runs on; None without a mesh."""
    if not axes:
        return None
    if args.network is not None and args.network not in NETWORKS:
        raise UnknownName("network", args.network, NETWORKS, "one of " + ", ".join(NETWORKS))
    bandwidth = scalar(args.link_bw, RATE, "--link-bw")
    if system is not None and args.network is None:
        links = of_system(system, axes, schema.defaults(Assumptions, {}))
    elif bandwidth is None:
        raise BadValue("--on", "nothing", "a machine, or --link-bw 45GB/s with --network torus, ring, line, switch or mesh")
    else:
        links = by_numbers(args.network or "ring", axes, bandwidth)
    changes: dict[str, Any] = {} if bandwidth is None else {"bandwidth": bandwidth}
    out = scalar(args.out_bw, RATE, "--out-bw")
    changes |= {} if out is None else {"out_bandwidth": out}
    hop = scalar(args.hop, TIME, "--hop")
    changes |= {} if hop is None else {"hop": hop, "out_hop": hop}
    if args.domain is not None:
        changes["domain"] = changes["wired"] = schema.scalar(args.domain, Field(integer=True, low=1, open_low=False), "--domain")
    if args.rings is not None:
        names = [axis.name for axis in axes]
        closed = names if args.rings == "all" else [] if args.rings == "none" else [name.strip() for name in args.rings.split(",")]
        for name in closed:
            if name not in names:
                raise UnknownName("mesh axis", name, names, f"--rings takes all, none, or axes of --mesh {args.mesh}")
        changes["wraps"] = {name: WRAP if name in closed else NO_WRAP for name in names}
    changes |= {"domain": user_input(math.inf, "chips below one switch")} if links.kind == "torus" and "domain" in changes else {}
    return dataclasses.replace(links, **changes)


def grid(args: Any, names: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Sizes of the named dimensions at each point of the grid, and those that vary; sizes written as numbers need no name."""
    texts = dict(assignments(list(args.values), "sizes"))
    by_letter = [name for name in names if not name[0].isdigit()]
    for name in texts:
        if name not in by_letter:
            raise UnknownName("dimension", name, by_letter, f"the arrays have {', '.join(by_letter) or 'sizes in numbers'}")
    missing = [name for name in by_letter if name not in texts]
    if missing:
        raise BadValue("sizes", f"none for {', '.join(missing)}", " ".join(f"{name}=4096" for name in missing))
    field = Field(low=1e-9, high=1e18, open_low=False)
    axes = {}
    for name, text in texts.items():
        values, _ = schema.axis(text, field, name)
        axes[name] = schema.several(values)
    if math.prod(len(axis) for axis in axes.values()) > MOST_POINTS:
        raise BadValue("sizes", "too many values", f"at most {MOST_POINTS} points")
    points = [dict(zip(axes, point, strict=True)) for point in itertools.product(*axes.values())]
    return points, [name for name, axis in axes.items() if len(axis) > 1]


def place(text: str, axes: tuple[Any, ...], flag: str) -> tuple[int, ...]:
    """A chip by its place along each axis, such as 0,3."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != len(axes) or not all(re.fullmatch(r"\d+", part) for part in parts):
        raise BadValue(flag, text, f"a place along each axis, such as {','.join('0' for _ in axes) or '0,0'}")
    numbers = tuple(int(part) for part in parts)
    for number, axis in zip(numbers, axes, strict=True):
        if number >= axis.size:
            raise BadValue(flag, text, f"places from 0 to {int(axis.size) - 1} along {axis.name}")
    return numbers
