"""Kubernetes manifests of launch commands: a Deployment and a Service for each pool, a LeaderWorkerSet where a replica spans hosts."""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from headway.core.errors import HeadwayError
from headway.serving.launch.launch import Launch

LONGEST_NAME = 40  # of 63 letters that a label may have: pools and pods add theirs
RAY, MPI = "--distributed-executor-backend ray", "trtllm-llmapi-launch"


class NoManifest(HeadwayError):
    """A launch that a manifest cannot express."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesFacts:
    """Images by engine and device resources by vendor."""

    images: dict[str, str]
    resources: dict[str, str]


@functools.cache
def facts() -> KubernetesFacts:
    """The images and resources of data/engines/kubernetes.toml."""
    table = tomllib.loads(files("headway").joinpath("data/engines/kubernetes.toml").read_text(encoding="utf-8"))
    read = {kind: {name: row["name"] for name, row in table[kind].items()} for kind in ("images", "resources")}
    return KubernetesFacts(images=read["images"], resources=read["resources"])


def manifests(pools: Sequence[Launch], name: str, vendor: str) -> str:
    """YAML of every pool: each launch holds the command of one replica, without counted ports, and its number of replicas."""
    documents = [entry for pool in pools for entry in pool_objects(pool, name, vendor)]
    return "".join("---\n" + "\n".join(_block(entry)) + "\n" for entry in documents)


def notes(pools: Sequence[Launch]) -> list[str]:
    """What the cluster must have, and what the manifests leave out."""
    lines = [f"images such as {facts().images[pools[0].engine]} are by pattern; HF_TOKEN is read from a Secret hf-token if there is one"]
    if any(pool.hosts > 1 for pool in pools):
        lines.append("a replica over several hosts needs the LeaderWorkerSet controller (leaderworkerset.x-k8s.io/v1) in the cluster")
    if any(pool.role for pool in pools):
        lines.append("the router in front of both pools is not among the manifests")
    return lines


def pool_objects(pool: Launch, name: str, vendor: str) -> list[dict[str, Any]]:
    """The workload and the Service of one pool."""
    if any(RAY in line or MPI in line for line in pool.lines):
        needs = "MPI" if any(MPI in line for line in pool.lines) else "a Ray cluster"
        raise NoManifest(
            f"--manifest: a replica of {pool.hosts} hosts needs {needs}, which a LeaderWorkerSet does not start; try --launch sglang"
        )
    if vendor not in facts().resources:
        raise NoManifest(
            f"--manifest: no Kubernetes resource is known for chips of {vendor or 'this vendor'}; known: {', '.join(facts().resources)}"
        )
    label = label_of(name, pool.role)
    labels = {"app": label}
    leader = labels | {"role": "leader"} if pool.hosts > 1 else labels
    head = {"metadata": {"name": label, "labels": labels}}
    setup = [line for line in pool.lines if line.startswith("printf ")]
    serving = [line for line in pool.lines if not line.startswith("printf ")]
    pods = [
        {"metadata": {"labels": tags}, "spec": _pod(pool, " && ".join([*setup, command]), vendor, index == 0)}
        for index, (tags, command) in enumerate(((leader, serving[0]), (labels, serving[-1])))
    ]
    service_spec = {"selector": leader, "ports": [{"name": "http", "port": pool.port, "targetPort": pool.port}]}
    service_head = {"metadata": {"name": f"{label}-http", "labels": labels}}  # a LeaderWorkerSet makes a service of its own name
    service = {"apiVersion": "v1", "kind": "Service"} | service_head | {"spec": service_spec}
    if pool.hosts == 1:
        spec = {"replicas": pool.replicas, "selector": {"matchLabels": labels}, "template": pods[0]}
        return [{"apiVersion": "apps/v1", "kind": "Deployment"} | head | {"spec": spec}, service]
    group = {"size": pool.hosts, "restartPolicy": "RecreateGroupOnPodRestart", "leaderTemplate": pods[0], "workerTemplate": pods[1]}
    spec = {"replicas": pool.replicas, "leaderWorkerTemplate": group}
    return [{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"} | head | {"spec": spec}, service]


def label_of(name: str, role: str) -> str:
    """A name that Kubernetes accepts: lower-case letters, digits and dashes, from a letter to a letter or digit."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LONGEST_NAME].strip("-")
    plain = plain if plain[:1].isalpha() else f"model-{plain}".strip("-")
    return f"{plain}-{role}" if role else plain


def _pod(pool: Launch, command: str, vendor: str, leads: bool) -> dict[str, Any]:
    """The pod of one host; only the leader answers HTTP."""
    chips = {facts().resources[vendor]: str(pool.host_chips)}
    token = {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}}
    environment = [
        {"name": "HF_TOKEN", "valueFrom": token},
        {"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    if pool.hosts > 1:  # variables that the controller sets in every container
        command = f"HEAD=$LWS_LEADER_ADDRESS; NODE=$LWS_WORKER_INDEX; {command}"
    container = {
        "name": pool.engine, "image": facts().images[pool.engine], "command": ["bash", "-c", command], "env": environment,
        "resources": {"limits": chips}, "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }  # fmt: skip
    if leads:
        container["ports"] = [{"name": "http", "containerPort": pool.port}]
        container["readinessProbe"] = {"httpGet": {"path": "/health", "port": pool.port}, "periodSeconds": 10}
    return {"containers": [container], "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}


PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")  # text that needs no quotes, keywords aside
KEYWORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def _block(value: Any) -> Iterator[str]:
    """Lines of YAML of a dictionary or a list: block style, text in double quotes wherever YAML could read it otherwise."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list) and inner:
                yield f"{_scalar(key)}:"
                yield from ("  " + line for line in _block(inner))
            else:
                yield f"{_scalar(key)}: {_scalar(inner)}"
        return
    for entry in value:
        lines = _block(entry) if isinstance(entry, dict | list) else [_scalar(entry)]
        for place, line in enumerate(lines):
            yield ("  " if place else "- ") + line


def _scalar(value: Any) -> str:
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in KEYWORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
