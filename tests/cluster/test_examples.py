"""Test that the example files in `docs/guides/cluster.md` are valid for Ray and KubeRay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from page import blocks_of

jsonschema = pytest.importorskip("jsonschema")
ray = pytest.importorskip("ray")

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "cluster.md"
FILES = {block.title: yaml.safe_load(block.text) for block in blocks_of(PAGE.read_text("utf-8")) if block.title}


def test_ray_up_takes_the_file():
    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text("utf-8"))
    jsonschema.validate(FILES["cluster.yaml"], schema)
    with pytest.raises(jsonschema.ValidationError, match="setup_comands"):
        jsonschema.validate(FILES["cluster.yaml"] | {"setup_comands": []}, schema)


def test_kuberay_takes_the_job():
    """The example fits the schema that `crd.py` extracted from KubeRay's CRD; examples with mistakes do not."""
    schema = json.loads(Path(__file__).with_name("rayjob.json").read_text("utf-8"))
    job = FILES["rayjob.yaml"]
    jsonschema.validate(job, schema)
    for wrong in (
        {"entrypoints": "ninetka"},
        {"backoffLimit": "three"},
        {"rayClusterSpec": {"workerGroupSpecs": [{}]}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(job | {"spec": job["spec"] | wrong}, schema)
