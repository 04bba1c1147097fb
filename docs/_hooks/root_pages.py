"""Make README, CONTRIBUTING and CHANGELOG pages of the site (a hook of MkDocs).

They stay at the root of the repository, where readers expect them, and their links point to files of the
repository. Here each becomes a page below docs/, with the links that the site has.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages to those that MkDocs found in docs/."""
    root = Path(config["config_file_path"]).parent
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=rewrite_links((root / name).read_text())))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links of pages in docs/ to the files at the root, as links of the site."""
    for name, page in PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({page}")
    return markdown


def rewrite_links(text: str) -> str:
    """Links of the repository's root as links of docs/."""
    text = re.sub(r"(\]\(|src=\"|srcset=\")docs/", r"\1", text)
    for name, page in PAGES.items():
        text = text.replace(f"]({name}", f"]({page}")
    return text.replace("](LICENSE)", "](https://www.apache.org/licenses/LICENSE-2.0)").replace(
        "](decisions/)", "](decisions/index.md)"
    )
