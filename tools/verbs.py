"""List the functions of the packages whose names begin with a participle, a preposition or another small word.

Run it as `python tools/verbs.py`. A function begins with a verb, or is called by the noun of its result (`verdict_of`);
`chosen`, `_within` and `why_not` are neither. Each finding is one line: the package and the name. tools/verbs.txt lists
those that are left. Names may go from that file, and none may come; `--shrink` takes away what is there no more.

Properties may have any name, and so may what others name: event sinks (`failed`, `on_end`) and the hooks of libraries.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).with_name("verbs.txt")

_VERBS_IN_ED = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"})
_IRREGULAR = frozenset({
    "begun", "bought", "broke", "broken", "brought", "built", "caught", "chosen", "done", "drawn", "driven", "fed",
    "forgotten", "found", "gave", "given", "gone", "grown", "had", "heard", "held", "hidden", "kept",
    "known", "led", "left", "lent", "lost", "made", "meant", "met", "overridden", "paid", "rose", "said", "seen",
    "sent", "shown", "sold", "spelt", "spent", "spoken", "stood", "stuck", "taken", "thrown", "told", "took",
    "understood", "won", "worn", "written",
})  # fmt: skip
_SMALL_WORDS = frozenset({
    "about", "above", "after", "against", "among", "around", "at", "before", "behind", "below", "beside", "between",
    "beyond", "by", "down", "during", "except", "for", "in", "inside", "into", "of", "off", "onto", "out",
    "outside", "over", "past", "per", "since", "through", "toward", "under", "up", "upon", "within", "without",
    "again", "all", "already", "also", "another", "any", "anything", "both", "each", "either", "else",
    "enough", "even", "every", "everything", "few", "here", "instead", "less", "many", "more", "most", "much",
    "neither", "never", "no", "nobody", "none", "not", "nothing", "now", "once", "one", "only", "other", "others",
    "own", "same", "some", "still", "such", "there", "together", "too", "very", "how", "what", "when", "where",
    "whether", "which", "who", "whom", "whose", "why", "and", "because", "but", "if", "nor", "or", "than", "that",
    "then", "unless", "until", "while",
})  # fmt: skip
_SINKS = frozenset({
    "broken", "cancelled", "changed", "closed", "completed", "connected", "ended", "failed", "finished", "freed",
    "lost", "progressed", "recovered", "released", "responded", "retried", "returned", "sent", "started", "stopped",
    "succeeded", "throttled", "used",
})  # fmt: skip
_NAMED_BY_OTHERS = re.compile(r"__\w+__|on_\w+|pytest_\w+|visit_\w+|leave_\w+")
_NOT_ACTIONS = re.compile(r"property|overload|fixture|setter|deleter")


def find(root: Path = ROOT) -> set[str]:
    """Return the findings in the sources of all packages, each as "PACKAGE NAME"."""
    return {
        f"{path.relative_to(root).parts[1]} {name}"
        for path in (root / "packages").glob("*/src/**/*.py")
        for name in misnamed(path.read_text(encoding="utf-8"))
    }


def misnamed(source: str) -> Iterator[str]:
    """Yield the names of functions in a Python file that begin with neither a verb nor a noun."""
    if not any(map(is_misnamed, re.findall(r"\bdef (\w+)", source))):
        return  # most files: it takes a twentieth of the time to see that
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and is_misnamed(node.name)
            and not any(_NOT_ACTIONS.search(ast.unparse(decorator)) for decorator in node.decorator_list)
        ):
            yield node.name


def is_misnamed(name: str) -> bool:
    """Return whether a function's name begins with a participle or a small word."""
    plain = name.strip("_")
    first = plain.partition("_")[0].lower()
    if plain in _SINKS or _NAMED_BY_OTHERS.fullmatch(name):
        return False
    return first in _IRREGULAR | _SMALL_WORDS or (first.endswith("ed") and first not in _VERBS_IN_ED)


def listed() -> list[str]:
    """Return the lines of the list."""
    return LIST.read_text(encoding="utf-8").splitlines()


def main(arguments: list[str]) -> int:
    """Print the findings; with `--shrink` take from the list what is there no more. Return 1 if one is not listed."""
    found = find()
    sys.stdout.write("".join(f"{line}\n" for line in sorted(found)))
    if "--shrink" in arguments:
        LIST.write_text("".join(f"{line}\n" for line in listed() if line in found), encoding="utf-8")
    return 1 if found - set(listed()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
