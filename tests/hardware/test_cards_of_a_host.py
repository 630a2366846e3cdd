"""Cards that have no links of their own are joined by the PCIe of their host; more than a host holds need a network."""

from __future__ import annotations

import pytest

from headway.core.catalog import default_catalog
from headway.hardware.chip import chip
from headway.hardware.system import system
from support.command import Cli

CARDS = sorted(name for name in default_catalog().files("chips") if chip(name).topology == "pcie" and chip(name).scale_up_domain == 1)


@pytest.mark.parametrize("name", CARDS)
def test_cards_in_one_box__are_one_domain_of_their_pcie(name: str) -> None:
    for count in (2, 4, 8):
        box = system(f"{count}x{name}")
        assert (int(box.scale_up_domain), float(box.scale_up_bw)) == (count, float(chip(name).host_link_bw))
    assert system(name).scale_up_domain == 1 and system(f"16x{name}").scale_up_domain == 8


@pytest.mark.parametrize("name", CARDS)
def test_serve__splits_a_model_over_the_cards_and_says_by_what(name: str, cli: Cli) -> None:
    document = cli.json(f"serve qwen2.5-0.5b --on 2x{name} --tp 2 --context 1k --batch 1")
    assert document["rows"][0]["network_s"] > 0
    assert any("joined by its PCIe" in note for note in document["notes"])


def test_more_than_a_host_holds__asks_for_the_network_with_a_link_as_example(cli: Cli) -> None:
    answer = cli("serve llama-3.1-70b --on 16xrtx4090 --tp 16 --context 4k --batch 4")
    assert answer.status == 2 and "system.scale_out_bw=50GB/s" in answer.err
    alone = cli("serve llama-3.1-8b --on 2xapple-m4 --tp 2 --context 4k --batch 4")
    assert alone.status == 2 and "scale_up_bw=50GB/s" in alone.err
