# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The manifests for Kubernetes: a container is made with what they say (capabilities, filter, mounts, the
pod's namespaces), and gpuprof records with that and no more.
"""

import os

import pytest
import yaml

import harness
import less_rights
import sandbox
from less_rights import Case

EXAMPLES = os.path.join(harness.ROOT, "userspace", "share", "examples")
TMPFS = "mkdir -p {path}; mount -t tmpfs none {path}"


def documents(name):
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def capabilities(context):
    """What a runtime gives: its default, less what is dropped, and what is added."""
    change = context.get("capabilities", {})
    dropped = change.get("drop", [])
    kept = [] if "ALL" in dropped else [one for one in sandbox.DOCKER if one not in dropped]
    assert set(change.get("add", [])) <= set(sandbox.CAPABILITIES), change
    return sorted({*kept, *change.get("add", [])})


def rights(context):
    assert context["runAsUser"] == 0
    kept = capabilities(context)
    unconfined = context.get("seccompProfile", {}).get("type", "Unconfined") == "Unconfined"
    return sandbox.inside(kept, () if unconfined else sandbox.docker_refuses(kept))


def mounts(container, volumes):
    """Shell that mounts what the pod's volumes are; secrets have nothing to do with rights."""
    lines = []
    by_name = {one["name"]: one for one in volumes}
    for one in container.get("volumeMounts", []):
        volume = by_name[one["name"]]
        if "emptyDir" in volume:
            lines.append(TMPFS.format(path=one["mountPath"]))
        elif "hostPath" in volume:
            lines.append("mount --bind %s %s" % (volume["hostPath"]["path"], one["mountPath"]))
        else:
            assert "secret" in volume, volume
    if container["securityContext"].get("readOnlyRootFilesystem"):
        lines.append("mount -o remount,bind,ro /")
    return "\n".join(lines)


def watch(inner, own, case):
    """A target in a container as a runtime makes them by default, gpuprof in another one."""
    with sandbox.Container() as pod, \
            harness.Target("mlp", prefix=pod.enter(*less_rights.docker())) as target, \
            inner(pod) as debugger:
        pid = less_rights.member(target, os.path.realpath(harness.PYTHON))
        if debugger.shares:
            pid = target.facts["pid"]
        return less_rights.watch(case, debugger.enter(*own), target, pid, debugger.out,
                                 os.path.join(sandbox.OUT, "r.gpuprof"))


@pytest.mark.parametrize("options,says", [((), ""), (("--no-inject",), ""), (("--mode", "sample"), ""),
                                          (("--memory", "--stack", "both"), "")], ids=" ".join)
def test_daemon_set(options, says):
    _, workload = documents("kubernetes.yaml")
    spec = workload["spec"]["template"]["spec"]
    container, = spec["containers"]
    assert workload["kind"] == "DaemonSet" and spec["hostPID"] is True
    case = Case("DaemonSet", ("attach", *options), 0, says, may_say=True)

    def make(_):
        made = sandbox.Container(pids=0, last=mounts(container, spec["volumes"]))
        made.shares = False
        return made

    less_rights.check(case, watch(make, rights(container["securityContext"]), case))


@pytest.mark.parametrize("options", [(), ("--shapes", "--stack", "python", "--memory")], ids=" ".join)
def test_ephemeral_container(options):
    partial, = documents("kubernetes-debug.yaml")
    case = Case("ephemeral container", ("attach", *options), 0, less_rights.BARE)

    def make(pod):
        made = sandbox.Container(pids=pod.pid)
        made.shares = True
        return made

    less_rights.check(case, watch(make, rights(partial["securityContext"]), case))
