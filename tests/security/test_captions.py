"""A study's captions are shown in Snakemake's report as they are written: nothing in them is carried out."""

import random
import re
from html import unescape
from pathlib import Path

import docutils.core
import jinja2
import pytest

from cohort.pipeline.stages import literal_rst

TEMPLATE = Path(__file__).parents[2] / "rules/captions/item.rst"
CAPTIONS = {
    "a file, raw": "Begin\n\n.. raw:: html\n   :file: {secret}\n\nend",
    "a file, included": "Begin\n\n.. include:: {secret}\n   :literal:\n\nend",
    "a file, as a table": ".. csv-table::\n   :file: {secret}",
    "a file, at the very beginning": ".. include:: {secret}",
    "a line separator in place of lines": "Begin\u2028\u2028.. include:: {secret}\u2029\u2029end",
    "a script": ".. raw:: html\n\n   <script>alert('own')</script>",
    "the end of a script": "</script><script>alert('own')</script><!-- <script>",
    "a role": "Begin :raw-html:`x` and `y <javascript:alert(1)>`_ and :code:`z`",
    "references": "a_ b__ [1]_ |lt| |x| _`t` `anonymous`__ http://example.org me@example.org",
    "definitions": ".. |x| image:: y.png\n.. _a: http://example.org\n.. [1] note\n__ z",
    "emphasis": "*a* **b** ``c`` \\*d\\* \\\\ \\< \\u003c",
    "blocks": "Title\n=====\n\n- a\n* b\n1. c\n(i) d\n\n| line\n\n>>> e\n\n:f: g\n\n-h  i::\n\n    j",
    "bullets of Unicode": "\u2022 a",
    "a table": "==  ==\na   b\n==  ==\n\n+--+\n|a |\n+--+",
    "lines of punctuation": "----",
    "jinja": "{{ 7 * 7 }} {% include 'x' %} {{ snakemake.config }}",
    "letters": "0.5 \u2264 \u03b1 < 1 & \u00e9\u0301 \U0001f600 na\u00efve_",
}


def shown(caption: str, names: str = "tiny") -> str:
    """The text of a caption as Snakemake shows it."""
    values = {
        "params": {"caption": literal_rst(caption)},
        "wildcards": {"study": names, "scale": names, "name": names},
    }
    text = jinja2.Environment().from_string(TEMPLATE.read_text()).render(snakemake=values)
    html = docutils.core.publish_parts(text, writer="html")["body"]
    first, second = re.findall(r"<p>(.*?)</p>", html, re.DOTALL)
    assert "system-message" not in html and not re.search(r"<(?!/?p>|/?tt|/?span)", html), html
    assert f"Study {names}, scale {names}." in second
    return unescape(first)


@pytest.mark.parametrize("name", CAPTIONS)
def test_a_caption_reads_as_it_is_written(name: str):
    assert shown(CAPTIONS[name]) == " ".join(CAPTIONS[name].split())


def test_random_punctuation_reads_as_it_is_written():
    rng = random.Random(0)
    signs = [*"\\`*_|:<>[]()=-+.#&'\"{}%~^!?/$@;,  \n", "..", "::", "a", "B", "1", "lt"]
    for _ in range(300):
        caption = "".join(rng.choices(signs, k=rng.randrange(1, 40))).strip()
        if caption:
            assert shown(caption) == " ".join(caption.split()), caption
