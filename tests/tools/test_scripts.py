"""The repository's own scripts, in a checkout that holds nothing but what git knows."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def stand_in(folder: pathlib.Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def make(tmp_path: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
    """tools/make of a fresh checkout, with the compiler's side left out."""
    (tmp_path / "checkout/tools").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "tools/make", tmp_path / "checkout/tools/make")
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run([tmp_path / "checkout/tools/make", *arguments], env=environment, capture_output=True, text=True)


def test_make_works_where_nothing_was_built_before(tmp_path):
    stand_in(tmp_path / "bin", "cmake", 'echo configured "$@"')
    stand_in(tmp_path / "bin", "ninja", 'echo built "$@"')
    done = make(tmp_path, "release", "signalbox")
    assert (done.returncode, done.stdout, done.stderr) == (0, "built -C build/release signalbox\n", "")
    assert (tmp_path / "checkout/build/release.configure.log").read_text() == "configured --preset release -Wno-dev\n"


def test_make_shows_why_it_could_not_configure(tmp_path):
    stand_in(tmp_path / "bin", "cmake", "echo no such preset; exit 1")
    stand_in(tmp_path / "bin", "ninja", "echo built")
    done = make(tmp_path, "relase")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no such preset\n")
