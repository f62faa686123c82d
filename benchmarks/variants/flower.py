"""Flower's simulation on Ray with one actor per core."""

from __future__ import annotations

import logging
import os

# Both are read on import.
os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}

import ray
from flwr.simulation import run_simulation

from benchmarks.protocol import Channel
from benchmarks.variants import flower_apps
from benchmarks.variants.inputs import arguments
from benchmarks.work import read_work


def main() -> None:
    """Serve FedAvg rounds; the result is the global weights."""
    folder = arguments().folder.resolve()
    logging.getLogger("flwr").setLevel(logging.WARNING)
    try:
        run_simulation(
            server_app=flower_apps.server(folder, Channel()),
            client_app=flower_apps.client_app,
            num_supernodes=read_work(folder).workload.clients,
            backend_config={
                "init_args": {"num_cpus": os.cpu_count(), "include_dashboard": False},
                "client_resources": {"num_cpus": 1.0, "num_gpus": 0.0},
            },
        )
    finally:
        ray.shutdown()
        os._exit(0)  # its threads would wait forever


if __name__ == "__main__":
    main()
