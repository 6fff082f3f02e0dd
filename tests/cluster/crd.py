"""Extract from KubeRay's CRD the part that the example in the documentation uses. The CRD is 1 MB, mostly pod schemas.

    git -C kuberay show HEAD:ray-operator/config/crd/bases/ray.io_rayjobs.yaml | python tests/cluster/crd.py COMMIT

Writes `rayjob.json` next to this file: the reduced schema of version v1. Pods, containers and volumes keep only the
properties in `KEPT`. All other objects lose the properties in `LEFT_OUT`. Unknown properties are errors.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("rayjob.json")
KEPT = {
    "PodTemplateSpec.spec": {"containers", "volumes", "nodeSelector", "restartPolicy"},
    "containers": {"name", "image", "imagePullPolicy", "command", "args", "env", "ports", "resources", "volumeMounts",
                   "workingDir"},
    "volumes": {"name", "persistentVolumeClaim", "emptyDir", "hostPath"},
}  # fmt: skip
LEFT_OUT = {"status", "submitterPodTemplate", "networkPolicy", "historyServerOptions", "autoscalerOptions"}


def cut(schema: Any, name: str = "") -> Any:
    """Return the reduced schema of the property `name`, without descriptions; unknown properties are errors."""
    if not isinstance(schema, dict):
        return schema
    found = {key: value for key, value in schema.items() if key in ("type", "required", "enum", "items", "minimum")}
    found |= {"type": ["integer", "string"]} if schema.get("x-kubernetes-int-or-string") else {}
    if "items" in found:
        found["items"] = cut(schema["items"], name)
    if isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = cut(schema["additionalProperties"])
    if "properties" in schema:
        kept = KEPT.get(name, schema["properties"].keys() - LEFT_OUT)
        found["properties"] = {
            key: cut(value, "PodTemplateSpec.spec" if (name, key) == ("template", "spec") else key)
            for key, value in sorted(schema["properties"].items())
            if key in kept
        }
        found["additionalProperties"] = False
    return found


def main(commit: str) -> None:
    """Read the CRD from standard input and write the reduced schema."""
    versions = {one["name"]: one["schema"]["openAPIV3Schema"] for one in yaml.safe_load(sys.stdin)["spec"]["versions"]}
    source = f"https://github.com/ray-project/kuberay/blob/{commit}/ray-operator/config/crd/bases/ray.io_rayjobs.yaml"
    schema = {"$comment": f"Cut by crd.py from {source} (Apache License 2.0)"} | cut(versions["v1"])
    schema["properties"]["metadata"] = {"type": "object"}
    FILE.write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
