"""No line of the pipeline runs what a file says: no eval, no pickle but the one of arrays, no shell, no YAML but the strict one."""

from __future__ import annotations

import ast
import re

import pytest

from tests.conftest import ROOT

NAMES = {"eval", "exec", "compile", "__import__", "input"}
CALLS = {
    *(
        f"{module}.{name}"
        for module in ("pickle", "marshal", "dill", "cloudpickle", "joblib")
        for name in ("load", "loads")
    ),
    *(
        f"os.{name}"
        for name in ("system", "popen", "execv", "execve", "execvp", "spawnl", "spawnv")
    ),
    *(f"yaml.{name}" for name in ("unsafe_load", "full_load", "load_all", "unsafe_load_all")),
    *(
        "torch.load",
        "pickle.Unpickler",
        "shelve.open",
        "pd.read_pickle",
        "pandas.read_pickle",
        "subprocess.getoutput",
    ),
    *("tarfile.extractall", "shutil.unpack_archive", "tempfile.mktemp"),
}
METHODS = {"extractall", "extract", "read_pickle", "unpack_archive"}
ALLOWED = {
    # an unpickler that knows the names an array needs and no other
    ("workflow/cohort/data/parsers/arrays.py", "pickle.Unpickler"),
    # this Python again, with a plan file that was just written, and without a shell
    ("workflow/cohort/commands/run.py", "os.execv"),
}


def dangers(source: str) -> set[str]:
    """The calls, and classes derived from, that run or unpack what a file says."""
    result = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            result |= {ast.unparse(base) for base in node.bases} & CALLS
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        if called in NAMES | CALLS or ("." in called and called.rpartition(".")[2] in METHODS):
            result.add(called)
        if (
            keywords.get("shell", "False") != "False"
            or keywords.get("allow_pickle", "False") != "False"
        ):
            result.add(called)
        if called == "yaml.load" and [ast.unparse(part) for part in node.args[1:]] != [
            "StrictLoader"
        ]:
            result.add(called)
    return result


BAD = (
    "eval(x)",
    "exec(x)",
    "pickle.load(f)",
    "torch.load(f)",
    "subprocess.run(x, shell=True)",
    "os.system(x)",
    "yaml.load(f)",
    "yaml.load(f, yaml.Loader)",
    "archive.extractall(x)",
    "np.load(f, allow_pickle=True)",
    "class A(pickle.Unpickler): pass",
)


@pytest.mark.parametrize("line", BAD)
def test_the_watchman_sees_what_he_is_to_see(line: str):
    assert dangers(line)
    assert not dangers(
        "yaml.load(file, StrictLoader); re.compile(x); model.eval(); subprocess.run([x], shell=False)"
    )


def test_no_module_runs_what_a_file_says():
    files = sorted((ROOT / "workflow").rglob("*.py"))
    assert len(files) > 100
    result = {
        (str(file.relative_to(ROOT)), danger)
        for file in files
        for danger in dangers(file.read_text())
    }
    assert result == ALLOWED


def test_no_rule_has_a_shell():
    """A name from a config reaches a rule as a wildcard; with a shell line it could be a command."""
    for file in (ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")):
        assert not re.search(
            r"^\s*(shell|run|wrapper|notebook)\s*:|\b(eval|exec|shell)\s*\(|os\.system|subprocess",
            file.read_text(),
            re.MULTILINE,
        ), file
