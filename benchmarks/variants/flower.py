"""Flower's simulation: Ray with one actor a core."""

from __future__ import annotations

import logging
import os

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}  # before the import

import ray
from flwr.simulation import run_simulation

from benchmarks.protocol import Channel
from benchmarks.variants import flower_apps
from benchmarks.variants.given import arguments, given_work


def main() -> None:
    """Rounds, when told to."""
    folder = arguments().folder.resolve()
    logging.getLogger("flwr").setLevel(logging.WARNING)
    try:
        run_simulation(
            server_app=flower_apps.server(folder, Channel()),
            client_app=flower_apps.client_app,
            num_supernodes=given_work(folder).workload.clients,
            backend_config={
                "init_args": {"num_cpus": os.cpu_count(), "include_dashboard": False},
                "client_resources": {"num_cpus": 1.0, "num_gpus": 0.0},
            },
        )
    finally:
        ray.shutdown()
        os._exit(0)  # its threads wait for messages that will not come


if __name__ == "__main__":
    main()
