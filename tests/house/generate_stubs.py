"""Generate the Python stubs from protos/: `python tests/house/generate_stubs.py [DIRECTORY]` (`make protos`)."""

import sys
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parents[2]
PROTOS = ROOT / "protos"


def generate(into: Path) -> None:
    """Write the stubs of every proto file under `into`, at the path that its package names."""
    code = protoc.main(
        [
            "protoc",
            f"--proto_path={PROTOS}",
            f"--proto_path={files('grpc_tools') / '_proto'}",
            *(f"--plugin={plugin}" for plugin in _plugins()),
            f"--python_out={into}",
            f"--grpc_python_out={into}",
            f"--mypy_out=quiet:{into}",
            f"--mypy_grpc_out=quiet:{into}",
            *(str(proto) for proto in sorted(PROTOS.rglob("*.proto"))),
        ],
    )
    if code != 0:
        raise SystemExit(code)


def _plugins() -> list[str]:
    """The plugins beside the running interpreter: the ones of this environment, whatever PATH says."""
    return [str(Path(sys.executable).with_name(name)) for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")]


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
