"""Write a bill of materials (CycloneDX 1.6, JSON) of built wheels: the packages, their hashes, and what they require.

`python -m tools.sbom dist build/forbear.cdx.json` reads the wheels in dist/. Requirements are ranges, as a user's
installer reads them; those of extras name the extra. The same wheels give the same file.
"""

import hashlib
import json
import re
import sys
import uuid
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path


def metadata(wheel: Path) -> Message:
    """Return the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode("utf-8"))


def component(wheel: Path) -> dict[str, object]:
    """Return the component of a wheel: its names, its licence and its hash."""
    about = metadata(wheel)
    name, version = about["Name"], about["Version"]
    return {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "licenses": [{"expression": about["License-Expression"]}],
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
    }


def required(wheel: Path) -> list[dict[str, object]]:
    """Return the packages of others that a wheel requires, each with its range and the extra that asks for it."""
    found = list[dict[str, object]]()
    for line in metadata(wheel).get_all("Requires-Dist") or ():
        requirement, _, marker = line.partition(";")
        name = re.split(r"[^\w.-]", requirement)[0]
        if name.startswith("forbear"):
            continue
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        notes = {"range": requirement.strip()[len(name) :], "extra": extra[1] if extra else ""}
        properties = [{"name": f"forbear:{key}", "value": value} for key, value in notes.items() if value]
        found.append(
            {
                "type": "library",
                "bom-ref": f"{wheel.name.partition('-')[0]}:{notes['extra']}:{name}",
                "name": name,
                "purl": f"pkg:pypi/{name.lower()}",
                "scope": "optional" if extra else "required",
                "properties": properties,
            }
        )
    return found


def document(wheels: list[Path]) -> dict[str, object]:
    """Return the bill of materials of wheels."""
    ours = [component(wheel) for wheel in wheels]
    needs = {str(one["name"]): required(wheel) for one, wheel in zip(ours, wheels, strict=True)}
    texts = json.dumps([ours, needs], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, texts)}",
        "version": 1,
        "components": [*ours, *(need for each in needs.values() for need in each)],
        "dependencies": [
            {"ref": name, "dependsOn": [need["bom-ref"] for need in each]} for name, each in needs.items()
        ],
    }


def main() -> None:
    """Write the bill of the wheels in a folder into a file."""
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tools.sbom FOLDER FILE")
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        sys.exit(f"error: {folder} has no wheels; build them: make dist")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document(wheels), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
