"""Generate the Python stubs: `make generate` writes them, `make verify` (--verify) compares.

Every .proto below this folder becomes *_pb2.py, *_pb2.pyi, *_pb2_grpc.py and *_pb2_grpc.pyi in
clients/python/src. The output depends on the protos and the locked tools alone, so that any
difference is a drift.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
from importlib.resources import files
from pathlib import Path

PROTOS = Path(__file__).resolve().parent
ROOT = PROTOS.parent
STUBS = ROOT / "clients" / "python" / "src"
GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi")


def generate(protos: Path, target: Path) -> None:
    """Run protoc with the Python, gRPC and mypy plugins on every proto, in a stable order."""
    sources = sorted(path.relative_to(protos).as_posix() for path in protos.rglob("*.proto"))
    if not sources:
        sys.exit(f"no .proto below {protos}")
    site_packages = sysconfig.get_path("purelib")  # google/rpc/*.proto live there
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc"),
        f"--proto_path={protos}",
        f"--proto_path={files('grpc_tools') / '_proto'}",
        f"--proto_path={site_packages}",
        f"--python_out={target}",
        f"--grpc_python_out={target}",
        f"--mypy_out=quiet:{target}",
        f"--mypy_grpc_out=quiet:{target}",
        *sources,
    ]
    # protoc finds the mypy plugins on PATH: those of this environment come first.
    path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", "")))
    result = subprocess.run(command, env={**os.environ, "PATH": path}, check=False)
    if result.returncode != 0:
        sys.exit(f"protoc ended with {result.returncode}: see its message above")


def generated_files(root: Path) -> dict[str, bytes]:
    """The generated files below a folder, by relative path."""
    found = (path for pattern in GENERATED for path in root.rglob(pattern))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def write(protos: Path, stubs: Path) -> None:
    """Replace the committed stubs, including those whose proto is gone."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(protos, Path(scratch))
        fresh = generated_files(Path(scratch))
    for name in generated_files(stubs).keys() - fresh.keys():
        (stubs / name).unlink()
    for name, content in fresh.items():
        target = stubs / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != content:
            target.write_bytes(content)
            print(f"wrote {name}")


def drift(protos: Path, stubs: Path) -> list[str]:
    """One line for each committed stub that is not what the protos generate."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(protos, Path(scratch))
        fresh = generated_files(Path(scratch))
    committed = generated_files(stubs)
    lines = [f"missing    {name}" for name in fresh.keys() - committed.keys()]
    lines += [f"left over  {name}" for name in committed.keys() - fresh.keys()]
    both = fresh.keys() & committed.keys()
    lines += [f"different  {name}" for name in both if fresh[name] != committed[name]]
    return sorted(lines)


def main() -> None:
    """Parse the command line and write or verify."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verify", action="store_true", help="compare instead of writing")
    parser.add_argument("--protos", type=Path, default=PROTOS, help="folder of the protos")
    parser.add_argument("--stubs", type=Path, default=STUBS, help="folder of the stubs")
    arguments = parser.parse_args()
    if not arguments.verify:
        write(arguments.protos, arguments.stubs)
        return
    if lines := drift(arguments.protos, arguments.stubs):
        shown = "\n".join(f"  {line}" for line in lines)
        sys.exit(f"the committed stubs have drifted from protos/:\n{shown}\nrun make generate")
    print("stubs: as generated from protos/")


if __name__ == "__main__":
    main()
