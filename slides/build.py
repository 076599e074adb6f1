"""Builds the slides: what `./workbook slides` runs.

    build.py             builds the site and serves it on 127.0.0.1
    build.py --help      says what else there is"""

import argparse
import functools
import http.server
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "ext"))

import decks  # noqa: E402, which lies there

DECKS = decks.names(HERE / "decks", ".md")


def sphinx(builder, source_folder, output):
    """Sphinx's own words only if something is wrong; a warning is an error."""
    command = [sys.executable, "-m", "sphinx", "-b", builder, "-W", "--keep-going", "-q", "-E", "-d",
               str(output.parent / f"doctrees-{builder}"), str(source_folder), str(output)]
    return subprocess.run(command, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}).returncode


def build(builder, output):
    if sphinx(builder, HERE, output) != 0:
        sys.exit("error: the slides do not build, as the lines above say.")
    return output / "index.html"


def serve(folder, port):
    """Until Ctrl-C, and for this machine only."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    for candidate in [port] if port else range(8000, 8020):
        try:
            server = http.server.ThreadingHTTPServer(("127.0.0.1", candidate), handler)
        except OSError:
            continue
        print(f"the slides are at http://127.0.0.1:{server.server_port}/ (Ctrl-C ends)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        return 0
    sys.exit(f"error: no free port{f', {port} is taken' if port else ' from 8000 to 8019'}. Fix: --port N")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def options():
    parser = argparse.ArgumentParser(prog="./workbook slides", usage="./workbook slides [N] [options]",
                                     description="Builds the slides of the course and serves them on 127.0.0.1. "
                                                 "With a TODO's number: says where its slide is, and opens it.")
    parser.add_argument("--build-only", action="store_true", help="build the site and do not serve it")
    parser.add_argument("--handout", action="store_true", help="the same text as one page to read")
    parser.add_argument("--pdf", action="store_true", help="one PDF for each deck, by headless Chromium")
    parser.add_argument("--check", action="store_true", help="look at every slide in headless Chromium")
    parser.add_argument("--pictures", action="store_true", help="every slide as a picture, on sheets of nine")
    parser.add_argument("--refresh", nargs="*", metavar="NAME", help="run again the commands whose output slides show")
    parser.add_argument("--port", type=int, default=0, help="where to serve (default: the first free from 8000)")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "slides", help="where to build")
    return parser.parse_args()


def main():
    chosen = options()
    output = chosen.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    if chosen.refresh is not None:
        import refresh
        return refresh.refresh(chosen.refresh)
    if chosen.handout:
        print(f"the handout: {build('singlehtml', output / 'handout')}")
        return 0
    index = build("revealjs", output / "site")
    if chosen.pdf or chosen.check or chosen.pictures:
        from browser import check, pdf, pictures
        if chosen.pdf:
            return pdf.print_decks(index.parent, output / "pdf", DECKS)
        if chosen.pictures:
            return pictures.draw_sheets(index.parent, output / "pictures", DECKS)
        return check.check_site(index.parent, DECKS, every_slide=True)
    if chosen.build_only:
        print(f"the slides: {index}")
        return 0
    return serve(index.parent, chosen.port)


if __name__ == "__main__":
    sys.exit(main())
