"""Handling of Ctrl-C and SIGTERM by Snakemake's main process."""

import contextlib
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    import psutil
else:  # only a driver that is stopped needs it
    psutil = lazy("psutil")

SCRIPTS = Path(".snakemake/scripts")  # where Snakemake puts the scripts of running jobs
SIGNALS: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
WAKE_SECONDS = 0.2


class Stopping:
    """Stops the driver at the first Ctrl-C or SIGTERM; later ones change nothing.

    No more jobs start, cells on this machine save their place, and the driver ends. Jobs on a
    cluster go on after SIGTERM, which a driver gets at its own time limit, and are canceled after
    Ctrl-C.
    """

    def __init__(self, workflow: Any, local: bool):
        self.workflow, self.local = workflow, local
        self.received: signal.Signals | None = None

    def install(self) -> None:
        """Handle both signals, in place of Snakemake, whose handler takes a lock that the thread
        it interrupts may hold, and would then wait forever."""
        for number in SIGNALS:
            signal.signal(number, self._handle)

    def uninstall(self) -> None:
        """Handle the signals as Python does, unless one has been received."""
        if self.received is None:
            for number, handler in SIGNALS.items():
                signal.signal(number, handler)

    def _handle(self, number: int, frame: Any) -> None:
        if self.received is None:
            self.received = signal.Signals(number)
            threading.Thread(target=self._stop, daemon=True).start()

    def _stop(self) -> None:
        """Stop the scheduler, which waits for local jobs; then pass the signal on to these."""
        scheduler = self.workflow.scheduler
        scheduler.exit_gracefully()
        if not self.local:
            scheduler.executor_error_callback(KeyboardInterrupt())  # do not wait for the cluster
        folder, signaled = SCRIPTS.resolve(), set[int]()
        while True:  # a job may just be starting
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):  # it has just ended
                    is_job = any(Path(word).parent == folder for word in process.cmdline())
                    if is_job and process.pid not in signaled:  # not a shell that waits for one
                        signaled.add(process.pid)
                        process.terminate()
            time.sleep(WAKE_SECONDS)

    def finish(self) -> None:
        """After the scheduler's end, cancel jobs on the cluster if Ctrl-C stopped it, and print
        what becomes of the rest."""
        assert self.received is not None
        outcome = "cells on this machine have saved their place"
        if not self.local:
            outcome = "jobs on the cluster go on"
            if self.received is signal.SIGINT:
                executor = self.workflow.scheduler._executor
                executor.cancel_jobs(list(executor.active_jobs))
                outcome = "jobs on the cluster are canceled"
        name = self.received.name
        print(f"stopped by {name}: {outcome}; start again to resume", file=sys.stderr)
