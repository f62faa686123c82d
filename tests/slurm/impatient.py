"""Snakemake as users start it, but that it asks about its jobs every two seconds: it asks less and less often, while tests wait."""

from __future__ import annotations

import asyncio
import sys

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


async def sleep(executor: RemoteExecutor) -> None:
    await asyncio.sleep(2)


RemoteExecutor.sleep = sleep
sys.argv[0] = "snakemake"
main()
