"""The ledger against the lecture's claims: every claim is there, every figure answers to its inputs, every verdict is computed."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
import sys
from importlib.resources import files
from typing import Any

import pytest

from headway.core.errors import UnknownName
from headway.core.formula import anonymous, replay
from headway.core.trace import Call, Traced, record
from headway.economics.chip_cost import parts
from headway.evidence import claims as ledger
from headway.evidence.claims.claim import claims
from headway.evidence.claims.public import PRICED
from headway.evidence.claims.rows import beside, computable, recompute, width
from headway.hardware.system import system
from headway.models.config import catalogue_index
from headway.models.describe import releases

COUNTS = {"RB": 27, "FM": 6, "TS": 13, "SP": 10, "MOE": 12, "RK": 8, "PP": 19, "FS": 10, "OT": 19, "AP": 20, "KT": 13, "CW": 9, "CR": 8,
          "EX": 9}  # fmt: skip
COMPUTED = {
    *(f"RB-{n:02d}" for n in range(1, 28)),
    *(f"TS-{n:02d}" for n in range(1, 14)),
    *(f"SP-{n:02d}" for n in range(1, 11)),
    *(f"OT-{n:02d}" for n in range(1, 20)),
    *("EX-07", "CW-01", "CW-02", "CW-03", "CW-07", "CW-08", "CW-09", "EX-01", "EX-02", "EX-03", "EX-04", "EX-05", "EX-06"),
    *(f"FM-{n:02d}" for n in range(1, 7)),
    *(f"MOE-{n:02d}" for n in range(1, 13)),
    *(f"RK-{n:02d}" for n in range(1, 9)),
    *(f"PP-{n:02d}" for n in range(1, 19)),
    *(f"FS-{n:02d}" for n in range(1, 11)),
    *(f"AP-{n:02d}" for n in range(1, 21)),
    *(f"KT-{n:02d}" for n in range(1, 14)),
    *("CW-04", "CW-05", "CW-06", "EX-08", "EX-09"),
    *(f"CR-{n:02d}" for n in range(1, 8)),
}
# What no equation of the lecture decides: the kind of its answer.
KIND = {
    **dict.fromkeys(("AP-03", "AP-07", "AP-18", "CW-01", "KT-13", "RK-04", "RK-08"), "count"),
    "EX-02": "prediction", "CW-09": "measurement",
    **dict.fromkeys(("CW-08", "FS-08", "FS-09", "OT-13", "RK-02"), "bound"),
    **dict.fromkeys(("PP-19", "CR-08"), "not arithmetic"),
}  # fmt: skip
OPEN = {"PP-19": "not arithmetic", "CR-08": "not arithmetic"}
# What an independent reading of the lecture found. DERIVED: not said, but forced by its equations. "" where it gave none.
FOUND = {
    **{f"RB-{n:02d}": "OK" for n in (1, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16, 17, 18, 20, 21)},
    **dict.fromkeys(("RB-02", "RB-03", "RB-19", "SP-01"), "AMBIG"), **dict.fromkeys(("RB-09", "RB-22", "TS-02", "TS-03", "TS-07"), "OK~"),
    "RB-11": "WRONG-IN", "CW-02": "WRONG",
    **dict.fromkeys(("RB-12", "RB-23", "RB-24", "RB-25", "RB-26", "RB-27", "TS-05", "TS-10", "TS-11", "TS-12", "CW-07"), "DERIVED"),
    **dict.fromkeys(("TS-04", "TS-06", "TS-08", "TS-09", "SP-07", "SP-08", "FS-01", "FS-02", "FS-03", "CW-03"), "OK"),
    **dict.fromkeys(("TS-01", "TS-13", "EX-01", "EX-03", "EX-04", "EX-05", "EX-06"), ""),
    **dict.fromkeys(("FM-01", "FM-04", "FM-05", "RK-05", "RK-07", "FS-04"), "OK"), **dict.fromkeys(("FM-06", "FS-07", "FS-10"), ""),
    **{f"MOE-{n:02d}": "OK" for n in (1, 2, 3, 4, 5, 6, 8, 10)},
    **{f"PP-{n:02d}": "OK" for n in (1, 2, 5, 6, 8, 9, 10, 11, 13, 16, 17, 18)},
    **dict.fromkeys(("MOE-07", "RK-01", "RK-06", "FS-05"), "OK~"), **dict.fromkeys(("MOE-09", "PP-14"), "AMBIG"),
    **dict.fromkeys(("RK-03", "PP-12", "PP-15"), "WRONG-IN"),
    **{f"AP-{n:02d}": "OK" for n in (2, 4, 9, 10, 11, 12, 15, 16, 20)}, **{f"KT-{n:02d}": "OK" for n in (1, 2, 3, 4, 5, 6, 7)},
    **dict.fromkeys(("AP-05", "AP-13", "AP-14", "AP-17", "AP-19", "KT-11", "KT-12", "CW-04"), "DERIVED"), "AP-06": "OK~",
    **dict.fromkeys(("AP-01", "KT-08", "KT-09"), "WRONG-IN"), **dict.fromkeys(("AP-08", "KT-10"), "AMBIG"),
    **dict.fromkeys(("CW-05", "CW-06"), "OK"), **dict.fromkeys(("EX-07", "EX-08", "EX-09"), ""),
    **{f"OT-{n:02d}": "OK" for n in (1, 3, 4, 5, 7, 8, 9, 10, 11, 14, 16, 17, 19)}, **dict.fromkeys(("OT-12", "OT-15", "SP-03"), "OK~"),
    **dict.fromkeys(("OT-02", "OT-18", "SP-05"), "DERIVED"), **dict.fromkeys(("OT-06", "SP-04"), "WRONG"), "SP-10": "AMBIG",
    **dict.fromkeys(("SP-02", "SP-06", "SP-09"), "OK"),
    **{f"CR-{n:02d}": "OK" for n in range(1, 7)}, "CR-07": "",
    **dict.fromkeys(("FM-02", "FM-03", "MOE-11", "MOE-12", "PP-03", "PP-04", "PP-07", "FS-06"), "DERIVED"),
    **dict.fromkeys(KIND.keys() - OPEN.keys(), ""),
}  # fmt: skip
FOLLOWS = {"OK": {"agrees"}, "OK~": {"rounding"}, "AMBIG": {"differs"}, "WRONG-IN": {"differs"}, "WRONG": {"differs"},
           "DERIVED": {"agrees"}, "": {"agrees", "rounding"}}  # fmt: skip
# Where the computed verdict is not the one that reading suggests, and why both stand.
EXPLAINED = {
    "RB-09": ("agrees", "a ratio within a factor of 2 is what was called reasonably stable; the later chips are outside the claim"),
    "FM-05": ("differs", "right above the balanced batch without KV; at half of it, or at 8k, half is left to save, as `speed` finds"),
    "TS-03": ("agrees", "the tolerance is the stated range of 13 to 40 ms, and all ten chips are in it"),
    "MOE-12": ("rounding", "a token's 8 experts live on 7.7 chips: k sends only where one that is reached twice is counted twice"),
    "TS-06": ("rounding", "30 ms over 14.4 ms is 2.08: two reads only after the lecture's own rounding of 14.4 to 15"),
    "KT-07": ("rounding", "Grace's own memory drains in 0.94 s: 1 s only when rounded; the two servers are in the range"),
    "OT-12": ("differs", "200 T are 23 % below the product, which is 30 % above them: a quarter counts from what was stated"),
    "OT-19": ("differs", "the equality is exact; what differs is the 200 T of OT-12, here taken from rate and time"),
    "AP-03": ("differs", "no model of the catalogue has its knee near 200 K: the highest lies at 15,232 tokens"),
    "AP-18": ("differs", "input sells at 4.2 times its computed cost, more than the factor of 3 that near is read as"),
    "CW-01": ("differs", "the median of open models doubled from 2025 to 2026; the lecture means the largest closed ones"),
    "FS-09": ("differs", "5 to 19 % by the prices of memory and of machines, against half"),
    "OT-13": ("undecided", "between the largest published count and the most of the estimate of all text lies a factor of 25"),
    "TS-10": ("differs", "derived, but it contradicts the stated 20 ms and 128,000 tokens/s, which is its point"),
}
# Inputs and law constants on a branch that another one binds: a change of 1 % does nothing, a larger one does.
OTHER_BRANCH = {
    ("RB-07", "active"), ("RB-07", "peak"), ("RB-07", "MULTIPLY_ADD"), ("RB-19", "context"), ("RB-19", "top_k"),
    ("RB-25", "above"), ("SP-07", "above"), ("EX-03", "heads"),
    ("FM-05", "speed_ratio"),  # a batch above the balanced one, however far
    ("MOE-05", "ports"), ("MOE-05", "more_chips"), ("MOE-09", "node"),  # a count of levels or domains, rounded up
    ("PP-04", "k_1"), ("PP-04", "k_2"), ("PP-04", "k_4"), ("PP-04", "k_8"),  # whole layers
    ("AP-02", "short"), ("AP-02", "half"), ("AP-11", "length"),  # where compute binds
    *(("PP-17", name) for name in ("total", "weight_byte", "node", "hopper_hbm", "rack", "blackwell_hbm", "large_total")),  # whole stages
    ("CR-02", "layers"), ("CR-07", "rounds"),  # whole layers and rounds
    ("AP-07", "most"),  # whole heads
}  # fmt: skip
WIDE = {"RB-26", "TS-09"}  # references given to 20 % and 10 %
LADDER = (0.5, 2.0, 0.1, 10.0, 1e-3, 1e3, 1e-6, 1e6)


def figures(claim_id: str, **changed: Any) -> dict[str, float]:
    parts = recompute(claims()[claim_id], changed)
    assert parts is not None
    return {name: float(value) for name, value in parts.items()}


def differ(one: dict[str, float], other: dict[str, float]) -> bool:
    return any(not math.isclose(one[name], other[name], rel_tol=1e-9) for name in one)


def laws_of(value: Any) -> dict[str, Any]:
    """Every law under a recorded value, those called inside others included."""
    found: dict[str, Any] = {}

    def visit(step: Call) -> None:
        if not step.is_operation:
            found[step.law.name] = step.law
        for inner in step.working:
            visit(inner)
        for item in step.inputs.values():
            walk(item)

    def walk(item: Any) -> None:
        if isinstance(item, Traced):
            visit(item.step)
        elif isinstance(item, tuple | list):
            for member in item:
                walk(member)

    walk(value)
    return found


def constants_of(claim_id: str) -> set[tuple[str, str]]:
    """(module, name) of every module constant that a law of this claim uses."""
    with record():
        parts = recompute(claims()[claim_id])
    assert parts is not None
    used = set()
    for law in {law.name: law for part in parts.values() for law in laws_of(part).values()}.values():
        module = sys.modules[law.run.__module__]
        for name in law.run.__code__.co_names:
            if name.isupper() and isinstance(getattr(module, name, None), int | float):
                used.add((module.__name__, name))
    return used


def test_claims__every_claim_of_the_lecture_once() -> None:
    rows = ledger.rows()
    assert [row.id for row in rows if row.group not in COUNTS] == []
    assert {row.id for row in rows} == {f"{group}-{n:02d}" for group, count in COUNTS.items() for n in range(1, count + 1)}
    assert len(rows) == 183
    assert all(row.claim and row.source for row in rows)


def test_claims__computed_and_open() -> None:
    assert set(computable()) == COMPUTED
    rest = [row for row in ledger.rows() if row.id not in COMPUTED]
    assert {row.id: row.verdict for row in rest} == OPEN
    assert all(row.recomputed is None and row.parts == () and row.note for row in rest)


def test_claims__kind_of_what_the_lecture_does_not_give() -> None:
    assert {row.id: row.basis for row in ledger.rows() if row.basis != "law"} == KIND


@pytest.mark.parametrize("claim_id", sorted(claim_id for claim_id, kind in KIND.items() if kind in ("bound", "prediction")))
def test_bound__agrees_where_its_ends_enclose_what_is_stated(claim_id: str) -> None:
    """By the words of docs/lecture.md, from the figures and the data alone."""
    (low_name, low), (high_name, high), *_ = figures(claim_id).items()
    assert low_name.endswith(", at least") and high_name == low_name.replace("least", "most") and low < high
    claim = claims()[claim_id]
    if claim.stated:
        assert set(claim.stated) == {low_name, high_name} and not claim.ranges
        encloses = low <= claim.stated[low_name] <= high
    else:
        assert set(claim.ranges) == {low_name, high_name}
        encloses = all(least <= end <= most for end, (least, most) in zip((low, high), claim.ranges.values(), strict=True))
    decides = claim.kind == "prediction" or high <= 10 * low
    assert ledger.claim(claim_id)[0].verdict == ("undecided" if not decides else "agrees" if encloses else "differs")


@pytest.mark.parametrize("claim_id", sorted(claim_id for claim_id, kind in KIND.items() if kind == "bound"))
def test_bound__ends_stay_in_order_with_any_input(claim_id: str) -> None:
    for name, value in claims()[claim_id].inputs.items():
        for factor in (0.01, 0.1, 0.5, 2.0, 10.0, 100.0):
            low, high, *_ = figures(claim_id, **{name: value * factor}).values()
            assert 0 <= low <= high, (name, factor)


def test_count__states_no_bound() -> None:
    """Ends belong to bounds and predictions: a count's figures are each one quantity of their own."""
    ended = {row.id for row in ledger.rows() if [part for part in row.parts[:2] if part.name.endswith((", at least", ", at most"))]}
    assert ended == {claim_id for claim_id, kind in KIND.items() if kind in ("bound", "prediction")}


def test_cw_08__bandwidth_that_does_not_grow_never_gets_there() -> None:
    years, last = "years until bandwidth has grown enough, at most", "years at that gain"
    for rubin in (8e12, 7e12, 1e12):
        assert figures("CW-08", rubin_bw=rubin)[years] == math.inf
    of_80_gb = figures("CW-08", a100_bw=2.039e12)
    assert of_80_gb[last] == math.inf and of_80_gb[years] == pytest.approx(2 * math.log(500) / math.log(3.35 / 2.039))
    assert of_80_gb["bandwidth's gain on arithmetic, A100 to Rubin"] == pytest.approx(0.84, abs=0.005)


def test_ap_03__lowest_and_highest_knee_by_published_shapes() -> None:
    """Qwen3-0.6B: 28 layers of 8 KV heads of 128, 0.6 B parameters; Nemotron-H-47B: 5 such layers of attention, 46.8 B."""
    found = figures("AP-03")
    assert found["lowest knee"] == pytest.approx(0.596e9 / 300 / (28 * 2 * 8 * 128), rel=0.01)
    assert found["highest knee"] == pytest.approx(46.8e9 / 300 / (5 * 2 * 8 * 128), rel=0.01)
    assert found["lowest knee"] < found["lower quartile"] < found["upper quartile"] < found["highest knee"] < 200_000 / 3


def test_fs_09__every_machine_with_a_price_and_three_memories_counts() -> None:
    """By `headway price --memory-share` over all systems: those with a share of all three, a DGX or HGX box with the size of its guide."""
    claim, shares = claims()["FS-09"], {}
    for path in (files("headway") / "data" / "systems").iterdir():
        name = path.name.removesuffix(".toml").replace("_", "-")
        dram, flash = (2e12, 34.56e12) if name.startswith(("dgx", "hgx")) else (None, claim.inputs["rack_flash"])
        rows = parts(system(name), dram, flash)
        if len(rows) == 4 and rows[-1].share_of_machine_lo is not None:
            shares[name] = rows[-1].share_of_machine_lo * 0.6, rows[-1].share_of_machine_hi * 2 / 3
    assert set(shares) == set(PRICED)
    low, high, *_ = figures("FS-09").values()
    assert (low, high) == pytest.approx((min(low for low, _ in shares.values()), max(high for _, high in shares.values())))


def test_ex_02__prediction_follows_prompt_and_chip() -> None:
    claim, figure = claims()["EX-02"], "prefill MFU, expected"
    for name in ("length", "peak", "mem_bw"):
        assert figures("EX-02", **{name: claim.inputs[name] / 2})[figure] != figures("EX-02")[figure], name


def test_kt_13_and_ot_13__inputs_are_the_catalogue_s() -> None:
    """What the catalogue has by another way: the largest training count that is checked, and drives and memory as the rack's facts."""
    checked = [float(release.training_tokens) for release in releases().values() if release.status == "checked" and release.training_tokens]
    assert max(checked) == float(claims()["OT-13"].inputs["published"])
    assert ledger.claim("KT-13")[0].parts[2].today == 36 * 480e9


def configs() -> list[dict[str, Any]]:
    """Every config.json of the catalogue as it lies there, its text part if it has one."""
    folder = files("headway") / "data" / "models"
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir() if path.name.endswith(".json")]
    return [config.get("text_config", config) for config in found]


def test_ap_07__share_of_configs_by_their_own_keys() -> None:
    """By plain keys of the files, without the readers; some families name their KV heads otherwise: near, not equal."""
    heads = [config.get("num_key_value_heads", config.get("num_attention_heads")) for config in configs()]
    plain = [count for count in heads if isinstance(count, int)]
    assert len(plain) > 200
    share = sum(count <= 8 for count in plain) / len(plain)
    assert figures("AP-07")["share of models with 1 to 8 KV heads"] == pytest.approx(share, abs=0.06)


def test_cw_01__medians_of_the_published_contexts() -> None:
    """By the release dates and the config files' own lengths, the median by the standard library."""
    named = {row["name"]: row["file"] for row in catalogue_index()}
    folder = files("headway") / "data" / "models"
    lengths: dict[int, list[float]] = {}
    for name, release in releases().items():
        if name not in named:
            continue
        config = json.loads((folder / named[name]).read_text(encoding="utf-8"))
        length = config.get("text_config", config).get("max_position_embeddings")
        if length:
            lengths.setdefault(int(release.year), []).append(length)
    found = figures("CW-01")
    assert found["median of 2025"] == statistics.median(lengths[2025]) == 131_072
    assert found["median of 2026 over that of 2025"] == statistics.median(lengths[2026]) / 131_072


@pytest.mark.parametrize("claim_id", sorted(COMPUTED))
def test_claim_inputs__change_exactly_the_figures_that_use_them(claim_id: str) -> None:
    claim, before = claims()[claim_id], figures(claim_id)
    assert claim.inputs, "a claim without inputs cannot be recomputed"
    bound = 0
    for name, value in claim.inputs.items():
        by_a_little = differ(before, figures(claim_id, **{name: value * 1.01}))
        if name in claim.invariant:
            for factor in (0.5, 0.99, 1.01, 2.0):
                assert not differ(before, figures(claim_id, **{name: value * factor})), f"depends on {name}"
            continue
        if (claim_id, name) in OTHER_BRANCH:
            assert not by_a_little, f"{name} binds already: not on another branch"
            assert any(differ(before, figures(claim_id, **{name: value * factor})) for factor in LADDER), f"{name} never binds"
            continue
        assert by_a_little, f"1 % more {name} changes nothing"
        bound += 1
    assert bound or set(claim.invariant) >= set(claim.inputs), "nothing changes this claim"


@pytest.mark.parametrize("claim_id", sorted(COMPUTED - {"EX-02"}))  # the whole step model, whose constants tests/laws has
def test_claim_constants__change_the_figures_that_use_them(claim_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    claim, before = claims()[claim_id], figures(claim_id)
    changed = 0

    def with_constant(module: str, name: str, factor: float) -> dict[str, float]:
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules[module], name, getattr(sys.modules[module], name) * factor)
            return figures(claim_id)

    for module, name in constants_of(claim_id):
        by_a_little = differ(before, with_constant(module, name, 1.01))
        if name in claim.invariant:
            assert not by_a_little, f"depends on {module}.{name}"
        elif (claim_id, name) in OTHER_BRANCH:
            assert not by_a_little, f"{name} binds already: not on another branch"
            assert any(differ(before, with_constant(module, name, factor)) for factor in LADDER), f"{name} never binds"
        else:
            assert by_a_little, f"1 % more {module}.{name} changes nothing"
            changed += 1
    assert changed or set(claim.inputs) - set(claim.invariant), "neither an input nor a law constant changes this claim"


def test_claim_inputs__exempt_branches_are_used() -> None:
    for claim_id, name in OTHER_BRANCH:
        assert name in claims()[claim_id].inputs or name in {constant for _, constant in constants_of(claim_id)}


def test_claim_invariants__name_inputs_or_constants() -> None:
    for claim_id in COMPUTED:
        names = {*claims()[claim_id].inputs, *(name for _, name in constants_of(claim_id))}
        assert set(claims()[claim_id].invariant) <= names, claim_id


def test_claim_figures__same_names_in_data_and_recomputation() -> None:
    for claim_id in COMPUTED:
        claim, names = claims()[claim_id], set(figures(claim_id))
        assert {*claim.stated, *claim.reference, *claim.ranges, *claim.units} <= names, claim_id
        assert {*claim.stated, *claim.reference, *claim.ranges}, f"{claim_id} is compared with nothing"


def test_claim_figures__equal_references() -> None:
    """References carry the digits they were published or worked out with: 1.1 % covers three of them, wider where the claim says so."""
    for row in ledger.rows():
        for part in row.parts:
            wide = max(0.011, width(claims()[row.id].tolerance) if row.id in WIDE else 0.0)
            if part.reference is not None:
                assert part.recomputed == pytest.approx(part.reference, rel=wide), (row.id, part.name)


def test_verdict__independent_reading_or_explained() -> None:
    assert FOUND.keys() == COMPUTED
    for row in ledger.rows():
        if row.id in EXPLAINED:
            assert row.verdict == EXPLAINED[row.id][0] and row.verdict not in FOLLOWS[FOUND[row.id]], row.id
        elif row.id in FOUND:
            assert row.verdict in FOLLOWS[FOUND[row.id]], (row.id, row.verdict)


def test_verdict__differs_has_a_cause_and_its_figure() -> None:
    for row in ledger.rows():
        if row.verdict == "differs":
            assert row.cause in ("an input off", "an ambiguous convention", "a slip"), row.id
            assert row.stated is not None and row.recomputed is not None
            assert not math.isclose(row.stated, row.recomputed, rel_tol=1e-3)


@pytest.mark.parametrize("claim_id", sorted(COMPUTED))
def test_explain__every_figure_of_a_claim(claim_id: str) -> None:
    plain = figures(claim_id)
    for name, value in ledger.explain(claim_id.lower()).items():
        assert anonymous(value) == [], name
        assert float(replay(value)) == pytest.approx(plain[name], rel=1e-12)


def test_claim_today__only_with_facts_of_the_catalogue() -> None:
    (row,) = ledger.claim("EX-06")
    assert row.today == pytest.approx(989.4e12 / 3.35e12)
    (rubin,) = ledger.claim("TS-02")
    assert rubin.today == pytest.approx(288e9 / 22e12)  # 22 TB/s announced after the lecture's 20
    assert ledger.claim("RB-13")[0].today is None  # no fact of the catalogue in it


def test_claim__by_id_or_group_with_suggestions() -> None:
    assert [row.id for row in ledger.claim("rb-10")] == ["RB-10"]
    assert len(ledger.claim("ts")) == COUNTS["TS"]
    with pytest.raises(UnknownName, match="did you mean rb-2"):
        ledger.claim("RB-28")
    with pytest.raises(UnknownName, match="TS"):
        ledger.claim("ZZ")


def test_claim_row__frozen_with_contract_keys() -> None:
    keys = {field.name for field in dataclasses.fields(ledger.ClaimRow)}
    assert keys >= {"id", "group", "claim", "stated", "recomputed", "unit", "tolerance", "verdict", "cause", "note", "today"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        ledger.rows()[0].verdict = "agrees"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("value", "target", "tolerance", "wanted"),
    [
        (1.0 + 2e-9, 1.0, "exact", "differs"), (1.0 + 5e-10, 1.0, "exact", "agrees"),
        (101.0, 100.0, "tight", "agrees"), (101.1, 100.0, "tight", "differs"),
        (100.9, 100.0, "round", "agrees"), (124.9, 100.0, "round", "rounding"), (74.0, 100.0, "round", "differs"),
        (2999.0, 1000.0, "oom", "agrees"), (334.0, 1000.0, "oom", "agrees"),
        (3001.0, 1000.0, "oom", "differs"), (333.0, 1000.0, "oom", "differs"),
        (110.0, 100.0, "10 %", "agrees"), (110.2, 100.0, "10 %", "differs"),
        (0.0, 1.0, "round", "differs"), (math.inf, 1.0, "oom", "differs"),
    ],
)  # fmt: skip
def test_verdict__by_tolerance_class(value: float, target: float, tolerance: str, wanted: str) -> None:
    assert beside(value, target, tolerance) == wanted


# By hand, from the published figures: nothing below calls the project.
BY_HAND = [
    ("RB-08", "H100 bf16", 2 * 989.4e12 / (2 * 3.35e12)),  # weight bytes x peak / (2 x bandwidth)
    ("RB-08", "B200 fp4 at 10 PF", 10e15 / 2 / 2 / 8e12),
    ("RB-09", "Rubin fp4", 50e15 * 0.5 / 2 / 20e12),
    ("RB-11", "balanced batch per expert", 300 * 256 / 8),
    ("RB-12", "whole model", 300 * 671 / 37),
    ("RB-15", "balanced batch with KV", 2 * (324e15 / 2 / 576e12) * 671 / 37),  # KV takes half the compute's time: twice the batch
    ("RB-18", "context where the slopes match", 2 * 37e9 / 324e15 * 576e12 / (61 * 576)),
    ("RB-21", "2,400 sequences", 72 * 2 / 3600 * 0.020 / 2400 * 1e6),
    ("RB-23", "batch 8", 256 * (1 - (248 / 256) ** 8)),
    ("RB-26", "sequences in flight", 18 * 14_800 / 21),
    ("TS-02", "at 20 TB/s", 288 / 20_000),
    ("TS-07", "2,400 at 64 steps/s", 2400 * 64),
    ("TS-09", "October 2025", 1.3e15 / (365.25 / 12 * 86_400)),
    ("TS-10", "step at balance", 671 / 576_000),
    ("TS-10", "tokens/s at balance", 324e15 / (2 * 37e9)),
    ("TS-11", "MFU at 2400", 2400 / (281.25 * 671 / 37 * 13_824 / 671)),
    ("SP-08", "largest sparsity", (13.824e12 - 2400 * 8192 * 35_136) / 37e9),
    ("FS-03", "left for KV beside bf16 weights", 72 * 192e9 - 2 * 5e12),
    ("CW-02", "DeepSeek-V3, absorbed", 37e9 / (61 * 128 * (576 + 512))),
    ("AP-02", "cost at the long context over at the short one", (671 / 576_000 / 50_000 + 16_000 * 35_136 / 576e12) / (74e9 / 324e15)),
    ("AP-04", "KV bytes per token", 100e9 / 300 / 200e3),
    ("AP-13", "joint KV, step at 500 K", 100e9 / 300 / 500e3 * 5 / 2),
    ("AP-19", "via PCIe", 0.1 * 200e9 / 4.5e15 * 64e9),
    ("KT-01", "retrieve", 200e9 / 4.5e15 * 2 / 3600 * 1e6),
    ("KT-02", "hold for 1 h", 1667 / 192e9 * 2 * 1e6),
    ("KT-03", "retrieve", 1667 / 440e9 * 15 * 3072 * 1.2 / (4 * 365.25 * 86_400) * 1e6),
    ("KT-04", "retrieve, disk over flash", 750 / 0.275 / (10_950 / 14)),
    ("KT-10", "disk costs less than flash from", 750 / 30_000 / (10_950 / 30_720) * 30_000 / 0.275),
    ("KT-11", "KV that 55 more minutes pay for", 3.75e-6 / 3300 / (2 / 3600 / 192e9)),
    ("KT-12", "directly", 200e9 / 4.5e15 / (1667 / 192e9)),
    ("CW-06", "sequences that fit", (13.824e12 - 671e9) / (1e8 * 35_136)),
    ("EX-09", "revenue", 342e3 * 0.14 + 266e3 * 0.55 + 168e3 * 2.19),
    ("RK-02", "racks, at most", 1.2e9 / 1.1 / 120e3),
    ("RK-02", "racks by the site's own count of chips", 400_000 / 72),
    ("RK-04", "weight over what a cabinet carries", 1360 / (3000 * 0.45359237)),
    ("RK-04", "weight over what a floor is built for", 1360 / 0.72 / (250 * 0.45359237 / 0.3048**2)),
    ("RK-04", "power over what its shelves give with spares", 120 / 132),
    ("FS-08", "parameters if it is routed, at least", (2.1e25 / 6 / 20) ** 0.5 * 46.7 / 12.88),
    ("FS-08", "parameters if it is routed, at most", (2.1e25 / 6 / 20) ** 0.5 * 1200 / 96.6),
    ("CW-08", "years until bandwidth has grown enough, at least", 2 * math.log2(500) / math.log2(22 / 8)),
    ("KT-13", "flash over HBM", 72 * 3.84 / 13.824),
    ("FS-09", "memory's share of capital spending, at most", (80 * 8 * 12 + 27 * 2000 + 34_560 * 10_950 / 30_720) / 260_000 * 2 / 3),
    ("FS-09", "memory's share of capital spending, at least", (279 * 8.3 + 240 * 8 + 3840 * 10_950 / 30_720) / 55_000 / 1.3 * 0.6),
    ("EX-02", "gathering the weights over arithmetic", 2 * 540e9 * 63 / 64 / 300e9 / (2 * 540e9 * 16_384 / 275e12)),
    ("CW-03", "8 query heads", (1978.9 / 3.35) / (2 * 8)),
    ("CW-07", "longest context", (13.824e12 - 671e9) / (2400 * 61 * 576)),
    ("EX-01", "weight floor", 540 / (64 * 1200)),
    ("EX-03", "longer context", 128 / (256 / 64)),
    ("FM-02", "slow batch over fast batch", 150 / 25 * 2.5),
    ("FM-03", "fast batch", 324e15 / 2 / 576e12 * 671 / 37 / 6),
    ("FM-05", "saved, 2,400 sequences of 8k", 1 - 2400 * 8192 * 35_136 / (671e9 + 2400 * 8192 * 35_136)),  # KV stays
    ("MOE-03", "with redundant experts", (256 + 32) / 72),
    ("MOE-04", "combine over dispatch, fp8 with scales", 2 * 7168 / (7168 + 4 * 7168 / 128)),
    ("MOE-05", "eight racks in one domain", 2 * 2),  # 576 chips on switches of 72 ports: leaves and spines
    ("MOE-06", "router over a chip's weights", 58 * 7168 * 256 * 2 / (671e9 / 72)),
    ("MOE-08", "slower over 3 racks", 8 * 2 / 3),
    ("MOE-10", "dense layer of Llama-3.1-70B", 28_672 / (989.4e12 / 450e9)),  # F / alpha
    ("MOE-11", "bytes per chip and layer", 2400 * 8 * 7168 * 3 / 64),
    ("MOE-11", "in the rack over weight time", 58 * (2400 * 8 * 7168 * 3 / 64 / 900e9) / (671 / 576_000)),
    ("MOE-12", "chips reached", 64 * (1 - math.comb(252, 8) / math.comb(256, 8))),  # none of a chip's four experts among the eight
    ("MOE-12", "chips reached by 32 experts", 64 * (1 - math.comb(252, 32) / math.comb(256, 32))),
    ("RK-03", "height", 48 * 1.75 * 0.0254),
    ("RK-05", "full mesh", math.comb(144, 2) / math.comb(72, 2)),
    ("PP-05", "with hops, over one rack", 1 + 4 * 10e-6 / (671 / 576_000)),
    ("PP-07", "8 stages, 32 micro-batches", 7 / (32 + 7)),
    ("PP-12", "one hop", 10e-6 + 2000 * 7168 * 2 / (64 * 50e9)),
    ("PP-13", "context where they are equal", 1e12 / 2 / (2400 * 1667)),
    ("PP-15", "GB200 NVL72 and its hosts", 72 * 192e9 + 36 * 480e9),
    ("FS-06", "improvement", 72 * 8 / (8 * 3.35)),
    ("FS-07", "latency floor on boxes of 8 H100", 5e12 / (8 * 3.35e12)),
    ("FS-10", "latency floor, TPU v4 pod", 671e9 / (4096 * 1.2e12)),
    ("OT-02", "A over B, x^2 and 1/x", 1 / 2),
    ("OT-04", "generated, then trained on", 2 + 6),
    ("OT-10", "over-training, the second over the first", (4 / 3) ** (1 / 0.366)),
    ("OT-12", "60 days", 50e6 * 60 * 86_400),
    ("OT-14", "Epoch", (0.366 * 2085.434 / (0.348 * 482.006)) ** (1 / 0.366) * 1e11 ** (0.348 / 0.366)),
    ("OT-18", "equal thirds, Epoch", 3 ** (1 / 0.366)),
    ("OT-18", "bill that 100 times needs, Hoffmann, unrounded", 100**0.28491),
    ("SP-04", "total over active", 1 + 63 / 3),
    ("SP-06", "by the figure", math.log(1.3 / 0.37) / math.log(64)),
    ("SP-09", "size where it ends", 10 ** (0.108 / 0.009)),
    ("CR-02", "x after the layers", 207),  # 5 + 3 = 8, 3 + 8 = 11, then sums of the last two: 19, 30, 49, 79, 128
    ("CR-03", "activations", 4e6 * 64 * 20 * 8192 * 2),
    ("CR-04", "activations", 4e6 * (2 + 20) * 8192 * 2),
    ("CR-04", "over ordinary training", 22 / (20 * 64)),
    ("CR-05", "FLOP per token", 8 * 37e9),
    ("CR-06", "making it again over reading it", (2 * 37e9 / 4.5e15) / (61 * 576 / 8e12)),
    ("EX-07", "MFU", 6 * 37e9 * 14.8e12 / (2.79e6 * 3600 * 1.513e15)),
]


# The table of PP-10 as published: GB of weights and of KV on one of 64 chips a stage.
STAGES = {1: (15.6, 6.25), 2: (7.8, 6.25), 4: (3.9, 6.25), 8: (1.95, 6.25)}


def test_claim_pp_10__memory_per_chip_of_a_pipeline() -> None:
    found = figures("PP-10")
    for stages, published in STAGES.items():
        own = found[f"weights, P = {stages}"], found[f"KV, P = {stages}"]
        assert own == (10**12 / (64 * stages), 2400 * 100_000 * 1667 / 64)  # not approximately
        assert [round(value / 1e9, len(str(shown).split(".")[1])) for value, shown in zip(own, published, strict=True)] == list(published)


def test_claim_moe_11__all_to_all_to_the_microsecond() -> None:
    found = figures("MOE-11")
    assert [round(found[name] * 1e6, 3) for name in ("one layer in the rack", "in the rack")] == [7.168, 415.744]
    assert round(found["one layer in the rack"] * 1e6, 1) == 7.2 and round(found["in the rack"] * 1e3, 2) == 0.42
    assert [round(found[name] * 1e3, 1) for name in ("at 100 GB/s", "at 50 GB/s")] == [3.7, 7.5]


@pytest.mark.parametrize("active", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("ratio", [8.0, 9.0, 18.0])
def test_claim_pp_04__fewest_layers_that_hide_the_hop(active: int, ratio: float) -> None:
    """PP-04 against PP-01: one layer fewer, and the hop takes longer than the stage's all-to-alls."""
    layers = figures("PP-04", k_1=active, ratio=ratio)["k = 1"]
    kept_up = [figures("PP-03", k_8=active, ratio=ratio, layers=count)["k = 8"] for count in (layers, layers - 1)]
    assert kept_up[0] >= 1 > kept_up[1]


@pytest.mark.parametrize(("price", "speed"), [(6.0, 2.5), (2.0, 1.4), (3.0, 1.0), (100.0, 4.0)])
def test_claim_fm_03__batches_return_price_and_speed(price: float, speed: float) -> None:
    """FM-03 by the step model itself: whatever the two multiples, the step at its two batches returns them."""
    found = figures("FM-03", price_ratio=price, speed_ratio=speed)
    assert (found["price by the step model"], found["speed by the step model"]) == pytest.approx((price, speed), rel=1e-12)


@pytest.mark.parametrize(("claim_id", "name", "wanted"), BY_HAND)
def test_claim_figures__by_hand(claim_id: str, name: str, wanted: float) -> None:
    assert figures(claim_id)[name] == pytest.approx(wanted, rel=1e-4)
