"""The command tessera: found, called, and its folders kept as bytes."""

import os
import pathlib
import shutil
import subprocess


class TesseraError(RuntimeError):
    """The command tessera failed; the text is what it said."""


def command():
    """The path of the command: the variable TESSERA, or what the PATH has."""
    path = os.environ.get("TESSERA") or shutil.which("tessera")
    if not path:
        raise TesseraError("the command tessera is not on the PATH: install it with `go install ./apps/tessera`, or name it in the variable TESSERA")
    return path


def call(folder, *arguments):
    """Call the command in a folder."""
    done = subprocess.run([command(), *map(str, arguments)], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise TesseraError(f"tessera {arguments[0]}: exit code {done.returncode}\n{done.stderr.strip()}")


def packed(folder):
    """The files of a folder: {name: bytes}."""
    folder = pathlib.Path(folder)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def unpack(files, folder):
    """Write the files of packed into a folder."""
    for name, content in files.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
