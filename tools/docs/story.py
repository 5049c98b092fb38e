"""Tell a page's story: its steps come as JSON on standard input and are run one after another.

A process of its own, in the folder where the page's files go. Python steps share their names;
console steps are run by a shell in between. The first that fails ends it.
"""

import json
import subprocess
import sys
import traceback
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Run all steps; exit 1 at one that fails, saying where it stands."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for step in json.load(sys.stdin):
        page, line, code = step["page"], step["line"], step["code"]
        try:
            if step["language"] == "python":
                # Empty lines first: an error then names the line of the page.
                exec(compile("\n" * line + code, page, "exec"), names)
            else:
                sys.stdout.flush()
                subprocess.run(["bash", "-euo", "pipefail", "-c", code], check=True)
        except (Exception, SystemExit):
            traceback.print_exc()
            sys.exit(f"{page}:{line} failed")


if __name__ == "__main__":
    main()
