"""Commands that begin with their libraries imported, because importing them is most of a short one.

A server of each test process imports Snakemake, PyTorch and pandas once, but nothing of Cohort,
which each project has of its own, and forks for each command.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import resource
import runpy
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def run(
    command: list[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    limit: int | None = None,
    merged: bool = False,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run `snakemake` or a module of Python with these arguments in a folder, under a limit to the
    size of files; `merged` puts what it says to stderr into the output."""
    with tempfile.TemporaryDirectory() as name:
        files = [str(Path(name, stream)) for stream in ("out", "out" if merged else "err")]
        request = {"command": command, "folder": str(folder), "environment": dict(environment)}
        server = _server()
        assert server.stdin and server.stdout
        print(json.dumps(request | {"files": files, "limit": limit}), file=server.stdin, flush=True)
        if not select.select([server.stdout], [], [], timeout)[0]:
            server.kill()
            raise TimeoutError(Path(files[0]).read_text())
        status = int(server.stdout.readline())
        output, errors = (Path(file).read_text() for file in files)
    return subprocess.CompletedProcess(command, status, output, "" if merged else errors)


@functools.cache
def _server() -> subprocess.Popen[str]:
    """The server, which ends with this process: its input is then closed."""
    environment = {key: os.environ[key] for key in os.environ if key != "PYTHONPATH"}
    command = [sys.executable, __file__]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **pipes)


def serve() -> None:
    """Fork for each line of the input; answer with the exit status."""
    import pandas  # noqa: F401
    import snakemake.cli
    import torch  # noqa: F401

    sys.path.pop(0)  # the folder of this file
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            status = 1
            try:
                status = _play(json.loads(line), snakemake.cli.main)
            finally:
                os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _play(request: dict[str, Any], snakemake: Any) -> int:
    """Become the process of a command, and return its exit status."""
    output, errors = request["files"]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for stream, file in ((0, os.devnull), (1, output), (2, errors)):
        handle = os.open(file, os.O_RDONLY if stream == 0 else flags, 0o644)
        os.dup2(handle, stream)
        os.close(handle)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    if request["limit"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"],) * 2)
    program, *sys.argv[1:] = request["command"]
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(":"))
    try:
        sys.argv[0] = program
        if program == "snakemake":
            snakemake()
        else:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        status: Any = 0
    except SystemExit as ended:
        status = ended.code
    except BaseException:
        traceback.print_exc()
        status = 1
    if status is not None and not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return int(status or 0)


if __name__ == "__main__":
    serve()
