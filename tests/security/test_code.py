"""No line of the pipeline runs what a file says: no eval, no pickle but the one of arrays, no shell,
no YAML but the strict one."""

import ast
import re

from tests.conftest import ROOT

CALLS = re.compile(
    r"(eval|exec|compile|__import__|input|torch\.load|(pd|pandas)\.read_pickle|tempfile\.mktemp"
    r"|(pickle|marshal|dill|cloudpickle|joblib)\.loads?|pickle\.Unpickler|shelve\.open"
    r"|os\.(system|popen|exec\w+|spawn\w+)|yaml\.(unsafe|full)_load|yaml\.(unsafe_)?load_all"
    r"|subprocess\.getoutput|.*\.(extractall|extract|unpack_archive))"
)
ALLOWED = {
    # an unpickler that knows the names an array needs and no other
    ("workflow/cohort/data/parsers/arrays.py", "pickle.Unpickler"),
    # this Python again, with a plan file that was just written, and without a shell
    ("workflow/cohort/commands/run.py", "os.execv"),
}


def dangers(source: str) -> set[str]:
    """The calls, and classes derived from, that run or unpack what a file says."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            names |= {ast.unparse(base) for base in node.bases}
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        is_unsafe = any(keywords.get(key, "False") != "False" for key in ("shell", "allow_pickle"))
        loader = [ast.unparse(part) for part in node.args[1:]]
        if is_unsafe or (called == "yaml.load" and loader != ["StrictLoader"]):
            return {called}
        names.add(called)
    return {name for name in names if CALLS.fullmatch(name)}


def test_no_module_runs_what_a_file_says():
    assert dangers("torch.load(f)") and dangers("subprocess.run(x, shell=True)")
    assert dangers("yaml.load(f)") and not dangers("yaml.load(f, StrictLoader); model.eval()")
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
    pattern = r"^\s*(shell|run|wrapper|notebook)\s*:|\b(eval|exec|shell)\s*\(|os\.system|subprocess"
    for file in (ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")):
        assert not re.search(pattern, file.read_text(), re.MULTILINE), file
