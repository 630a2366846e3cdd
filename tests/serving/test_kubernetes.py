"""Manifests of launch commands: read back, they keep to the published schemas, and their selectors match their pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import headway as hw
from headway.models.precision import Precision
from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.launch.kubernetes import NoManifest, label_of, manifests
from headway.serving.launch.launch import ENGINES, Launch, launch
from support import kubernetes

LLAMA, DEEPSEEK = hw.model("llama-3.1-70b"), hw.model("deepseek-v3")
CHAT = Load(batch=64, prompt=4096, output=1024)


def objects(*pools: Launch, name: str = "DeepSeek-V3.1") -> list[dict[str, Any]]:
    return kubernetes.parsed(manifests(pools, name, "nvidia"))


def pool(engine: str, model: Any, layout: Layout, replicas: int = 1, role: str = "") -> Launch:
    made = launch(engine, model, layout, Precision(kv="fp8"), CHAT, chips_per_host=4, role=role, exposed=True)
    return replace(made, replicas=replicas)


@pytest.mark.parametrize("engine", ENGINES)
def test_manifest__pools_on_one_host_are_deployments(engine: str) -> None:
    found = objects(pool(engine, LLAMA, Layout(tp=4), 3, "prefill"), pool(engine, LLAMA, Layout(tp=2), 2, "decode"))
    assert [entry["kind"] for entry in found] == ["Deployment", "Service"] * 2
    assert [fault for entry in found for fault in kubernetes.faults(entry)] == []
    assert [(entry["metadata"]["name"], entry["spec"]["replicas"]) for entry in found[::2]] == [
        ("deepseek-v3-1-prefill", 3),
        ("deepseek-v3-1-decode", 2),
    ]
    for workload, service in zip(found[::2], found[1::2], strict=True):
        pod = workload["spec"]["template"]
        (container,) = pod["spec"]["containers"]
        assert workload["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"] == service["spec"]["selector"]
        port = container["ports"][0]["containerPort"]
        assert service["spec"]["ports"][0]["targetPort"] == port == container["readinessProbe"]["httpGet"]["port"]
        assert f"--port {port}" in container["command"][2] and "REPLICA" not in container["command"][2]
    assert found[0]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "4"}


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_manifest__replica_over_hosts_is_a_leader_worker_set(engine: str) -> None:
    """24 chips on trays of 4 are groups of six pods, of which the leader alone answers."""
    workload, service = objects(pool(engine, DEEPSEEK, Layout(dp=24, ep=24), 2))
    assert kubernetes.faults(workload) == kubernetes.faults(service) == []
    group = workload["spec"]["leaderWorkerTemplate"]
    assert workload["kind"] == "LeaderWorkerSet" and workload["spec"]["replicas"] == 2 and group["size"] == 6
    assert service["spec"]["selector"] == group["leaderTemplate"]["metadata"]["labels"] != group["workerTemplate"]["metadata"]["labels"]
    assert service["metadata"]["name"] != workload["metadata"]["name"], "the controller makes a service of that name"
    leader, worker = (group[part]["spec"]["containers"][0] for part in ("leaderTemplate", "workerTemplate"))
    assert "readinessProbe" in leader and "readinessProbe" not in worker
    for container in (leader, worker):
        assert container["command"][2].startswith("HEAD=$LWS_LEADER_ADDRESS; NODE=$LWS_WORKER_INDEX; ")
        assert container["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    assert ("--headless" in worker["command"][2]) == (engine == "vllm") and "--headless" not in leader["command"][2]


def test_manifest__what_it_cannot_start_is_refused() -> None:
    with pytest.raises(NoManifest, match="needs MPI"):
        objects(pool("trtllm", DEEPSEEK, Layout(dp=24, ep=24)))
    with pytest.raises(NoManifest, match="Ray cluster"):
        objects(pool("vllm", DEEPSEEK, Layout(tp=8, dp=2, ep=16)))
    with pytest.raises(NoManifest, match="chips of cerebras"):
        manifests([pool("vllm", LLAMA, Layout(tp=4))], "llama", "cerebras")


def test_manifest_checker__refuses_what_the_schema_refuses() -> None:
    good = objects(pool("vllm", LLAMA, Layout(tp=4)))[0]
    assert kubernetes.faults(good | {"spec": {"replicas": 1, "template": good["spec"]["template"]}}) == [
        "Deployment.spec.selector: missing"
    ]
    assert kubernetes.faults(good | {"status": {}}) == ["Deployment.status: no such field"]
    assert kubernetes.faults(good | {"spec": good["spec"] | {"replicas": "3"}}) == ["Deployment.spec.replicas: '3' is no int"]


@pytest.mark.parametrize("name", ["DeepSeek-V3.1", "405B", "x" * 90, "---", "a/b_c:12layers"])
def test_manifest__any_name_becomes_a_label(name: str) -> None:
    assert kubernetes.NAME.fullmatch(label_of(name, "prefill") + "-http")
