"""The site that `make docs` builds: README, the pages of docs/ and what lies beside the code.

Sphinx reads the repository's root, so that every link between pages is one that also works where
the repository is browsed. The README is the first page; what its table of contents has is here, and
a page of docs/ that is not in it is an error.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import amqpsniff  # noqa: E402

CONTENTS = {
    "Get started": "docs/guide docs/capturing docs/concepts docs/commands",
    "Guides": "docs/live docs/tls docs/report docs/diff docs/wireshark docs/sanitize docs/python "
    "docs/recipes docs/pytest docs/otlp docs/spark docs/security",
    "Reference": "docs/findings docs/tables docs/frameworks docs/options docs/report-tables "
    "docs/summary docs/amqp10 docs/verify docs/shells docs/api CHANGELOG",
    "For developers": "ARCHITECTURE docs/limits docs/performance benchmarks/README samples/README",
}
"""Pages by the heading that they stand under."""

project = "amqpsniff"
author = project_copyright = "the amqpsniff developers"
version = release = amqpsniff.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "samples/README.md", "benchmarks/README.md"]
exclude_patterns = [".*", "build", "**/site-packages"]
myst_heading_anchors = 3

default_role = "code"
smartquotes = False  # they would make dashes of `--where`
maximum_signature_line_length = 80
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = f"amqpsniff {version}"
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"


def _contents(_: Any, name: str, source: list[str]) -> None:
    """Give the README its table of contents."""
    if name != root_doc:
        return
    for caption, names in CONTENTS.items():
        pages = "\n".join(page for page in names.split() if (ROOT / f"{page}.md").exists())
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"


def _first_page(app: Any, failure: Exception | None) -> None:
    """The README is also what a folder opens with."""
    if failure is None and app.builder.name == "html":
        shutil.copyfile(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _contents)
    app.connect("build-finished", _first_page)
