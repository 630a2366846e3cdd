"""Contrast by WCAG 2, and distance in OKLab as people with and without colour blindness see it (Machado, Oliveira and Fernandes 2009)."""

from __future__ import annotations

import numpy as np

# Severity 1.0, linear RGB: doi 10.1109/TVCG.2009.113, table of matrices.
BLINDNESS = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_LMS = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
TO_LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def linear(colour: str) -> np.ndarray:
    """Linear RGB of #rrggbb."""
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str) -> float:
    """Contrast ratio, 1 to 21."""
    high, low = sorted((float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (first, second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def oklab(rgb: np.ndarray) -> np.ndarray:
    return np.array(TO_LAB) @ np.cbrt(np.array(TO_LMS) @ np.clip(rgb, 0, 1))


def distance(first: str, second: str) -> float:
    """Least distance of two colours, OKLab x 100, over normal sight and three kinds of blindness."""
    sights = [np.eye(3), *map(np.array, BLINDNESS.values())]
    return min(float(np.linalg.norm(oklab(sight @ linear(first)) - oklab(sight @ linear(second)))) * 100 for sight in sights)
