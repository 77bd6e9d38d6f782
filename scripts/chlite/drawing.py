"""The drawing library, where there is one."""
import json
import os
import subprocess
import sys
import tempfile

from .common import output_of


def drawing_library(result, script, arguments):
    """pyplot; or None when Debian's interpreter, whose matplotlib it is, has done the work instead: `script --from RESULT ARGUMENTS`."""
    try:
        import matplotlib
    except Exception:    # pylint: disable=broad-except    # a half of it, or one that does not fit the interpreter, fails in its own ways
        debian = "/usr/bin/python3"
        if os.path.realpath(sys.executable) == os.path.realpath(debian) or output_of([debian, "-c", "import matplotlib; print('there is', 'one')"]).strip() != "there is one":
            raise LookupError("drawing needs matplotlib: apt-get install python3-matplotlib") from None
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as text:
            json.dump(result, text)
            text.flush()
            if subprocess.run([debian, os.path.realpath(script), "--from", text.name] + arguments, check=False).returncode != 0:
                raise LookupError("drawing failed") from None
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot
