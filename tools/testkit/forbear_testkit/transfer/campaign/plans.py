"""Plans of faults, drawn from a seed: which transfer, and what goes wrong with it. Nothing is carried out here."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Literal, TypeAlias

Json: TypeAlias = "dict[str, object]"
Direction: TypeAlias = Literal["up", "stream", "down", "sliced", "out", "gzip", "copy"]
Way: TypeAlias = Literal["up", "down"]
How: TypeAlias = Literal["reset", "close", "silence"]

KIB = 1024
CHUNK = 256 * KIB
LARGEST = 2048 * KIB
INSERT = "storage.objects.insert"
GET = "storage.objects.get"
REWRITE = "storage.objects.rewrite"
TRANSIENT = (408, 429, 500, 502, 503, 504)

NOT_AGAIN = "a source that cannot be read again"

WRITERS = ("up", "stream", "copy")
"""The directions that make a generation."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks after so many bytes one way, counted over all connections, whatever they are part of."""

    way: Way
    at: int
    how: How


@dataclass(frozen=True, slots=True)
class Plan:
    """One transfer and what goes wrong with it: `faults` as the cloud reads them, `cuts` on the line.

    `older` is whether there is something at the target, `same` whether that has the right bytes; `attempts` is a
    patience shorter than the usual one, `generation` the condition of an upload ("any", "absent" or "older"), `pinned`
    whether the caller names the generation to download. `excuses` say why this transfer may end in a failure; without
    any it must end well.
    """

    seed: int
    direction: Direction
    size: int
    older: bool
    versioned: bool
    faults: tuple[Json, ...]
    cuts: tuple[Cut, ...] = ()
    attempts: int | None = None
    generation: Literal["any", "absent", "older"] = "any"
    pinned: bool = False
    same: bool = False
    decode: bool = True
    seekable: bool = True
    excuses: frozenset[str] = frozenset()

    @property
    def writes(self) -> bool:
        """Return whether the transfer makes a generation."""
        return self.direction in WRITERS

    @property
    def disturbed(self) -> bool:
        """Return whether somebody else is at the same object."""
        return any(fault["action"] in ("replace_object", "delete_object") for fault in self.faults)

    def __str__(self) -> str:
        shown = ", ".join(
            f"{name}={value!r}"
            for name, value in (
                ("size", self.size),
                ("older", self.older),
                ("versioned", self.versioned),
                ("attempts", self.attempts),
                ("generation", self.generation),
                ("pinned", self.pinned),
                ("same", self.same),
                ("decode", self.decode),
                ("seekable", self.seekable),
                ("excuses", sorted(self.excuses)),
            )
        )
        wrong = "\n".join(f"  - {each}" for each in (*self.faults, *self.cuts))
        return f"plan {self.seed}: {self.direction}, {shown}\n{wrong}"


def armed(fault: Json) -> Json:
    """A fault of a plan as the cloud reads it: `content` is a number of words, `data` excludes metadata."""
    given = dict(fault)
    words = given.get("content")
    if isinstance(words, int):
        given["content"] = "somebody else " * words
    if given.pop("data", False):
        given["path_regex"] = "alt=media"
    return given


def plan_of(seed: int) -> Plan:
    """The plan of a seed: the same every time."""
    dice = Random(seed)
    direction: Direction = dice.choice(("up", "up", "up", "stream", "down", "down", "sliced", "out", "gzip", "copy"))
    plan = Plan(seed, direction, _size(dice), dice.random() < 0.5, dice.random() < 0.5, ())
    plan = replace(plan, same=plan.older and dice.random() < 0.1)
    if direction == "copy":
        plan = replace(plan, size=2 * plan.size)
    if direction in WRITERS:
        plan = replace(plan, generation=_condition(dice, plan), seekable=dice.random() < 0.5)
    else:
        plan = replace(plan, pinned=dice.random() < 0.2, decode=dice.random() < 0.7)
    if dice.random() < 0.15:
        plan = replace(plan, attempts=dice.choice((1, 2, 3)), excuses=frozenset({"patience"}))
    for _ in range(dice.randint(1, 5)):
        plan = dice.choice(_kinds(plan))(dice, plan)
    return plan


def _size(dice: Random) -> int:
    kind = dice.random()
    if kind < 0.1:
        return dice.choice((0, 1, CHUNK, 2 * CHUNK, 4 * CHUNK))
    return dice.randrange(64 * KIB) if kind < 0.35 else dice.randrange(64 * KIB, LARGEST)


def _condition(dice: Random, plan: Plan) -> Literal["any", "absent", "older"]:
    if dice.random() < 0.6:
        return "any"
    return "older" if plan.older else "absent"


Kind: TypeAlias = Callable[[Random, Plan], Plan]


def _with(plan: Plan, fault: Json, *excuses: str) -> Plan:
    return replace(plan, faults=(*plan.faults, fault), excuses=plan.excuses | set(excuses))


def _when_hit(dice: Random, plan: Plan) -> Json:
    """Which request it is that meets a fault: any, or one of some operation, and which of them."""
    given: Json = {}
    if dice.random() < 0.6:
        given["operation"] = dice.choice(_operations(plan))
    if dice.random() < 0.8:
        given["nth"] = _which(dice)
    else:
        given |= {"skip": dice.randint(0, 1), "times": 2}
    return given


def _which(dice: Random) -> int:
    return dice.choice((1, 1, 1, 1, 2, 2, 2, 3, 3, 5))


def _operations(plan: Plan) -> tuple[str, ...]:
    if not plan.writes:
        return (GET,)
    if plan.direction == "copy":
        return (REWRITE, REWRITE, GET)
    if plan.size <= CHUNK:
        return (INSERT, INSERT, GET)
    return (f"{INSERT}.start", f"{INSERT}.send", f"{INSERT}.send", f"{INSERT}.query", GET)


def _place(dice: Random, plan: Plan) -> int:
    return dice.randrange(plan.size + 1)


def _status(dice: Random, plan: Plan) -> Plan:
    fault: Json = {"action": "status", "code": dice.choice(TRANSIENT), "when": dice.choice(("before", "after"))}
    if dice.random() < 0.3:
        fault["retry_after"] = dice.choice((0, 1, 7, 20))
    return _with(plan, fault | _when_hit(dice, plan))


def _never_again(dice: Random, plan: Plan) -> Plan:
    fault: Json = {"action": "status", "code": 503, "retry_after": 100_000}
    return _with(plan, fault | _when_hit(dice, plan), "asked to wait too long")


def _permanent(dice: Random, plan: Plan) -> Plan:
    fault: Json = {"action": "status", "code": dice.choice((400, 403, 404, 412))}
    return _with(plan, fault | _when_hit(dice, plan), "a permanent error")


def _expired(dice: Random, plan: Plan) -> Plan:
    fault: Json = {"action": "status", "code": 401, "operation": dice.choice(_operations(plan))}
    again = any(fault.get("code") == 401 for fault in plan.faults)
    return _with(plan, {**fault, "nth": dice.randint(1, 4)}, *(("credentials",) if again else ()))


def _broken(dice: Random, plan: Plan) -> Plan:
    fault: Json = {
        "action": dice.choice(("reset", "reset", "close")),
        "when": dice.choice(("before", "after", "after")),
    }
    return _with(plan, fault | _when_hit(dice, plan))


def _truncated(dice: Random, plan: Plan) -> Plan:
    fault: Json = {"action": "truncate", "reset": dice.random() < 0.5}
    if plan.writes or dice.random() < 0.3:
        fault["share"] = round(dice.random(), 3)
    else:
        fault["keep"] = _place(dice, plan)
    return _with(plan, fault | _body(dice, plan))


def _stalled(dice: Random, plan: Plan) -> Plan:
    if any(fault["action"] == "stall" for fault in plan.faults):
        return _truncated(dice, plan)  # each costs real time
    keep = dice.randrange(64) if plan.writes else _place(dice, plan)
    return _with(plan, {"action": "stall", "keep": keep} | _body(dice, plan))


def _body(dice: Random, plan: Plan) -> Json:
    """Return a request whose response has a body."""
    if not plan.writes and dice.random() < 0.8:
        return {"data": True, "nth": _which(dice)}
    operation = dice.choice([each for each in _operations(plan) if not each.endswith(".start")])
    return {"operation": operation, "nth": _which(dice)}


def _partial(dice: Random, plan: Plan) -> Plan:
    keep = dice.choice((0, CHUNK, dice.randrange(LARGEST)))
    fault: Json = {"action": "partial", "keep": keep, "nth": _which(dice)}
    status = dice.choice((None, None, 308, 308, 429, 500, 503))
    return _with(plan, fault if status is None else {**fault, "status": status})


def _rewound(dice: Random, plan: Plan) -> Plan:
    fault: Json = {"action": "rewind", "to": CHUNK * dice.choice((0, 0, 1, 2)), "nth": dice.choice((2, 2, 3))}
    if dice.random() < 0.3:
        plan = _with(_broken_chunk(dice, plan), fault | {"operation": f"{INSERT}.query", "nth": 1})
    else:
        plan = _with(plan, fault)
    return plan if plan.direction == "up" else replace(plan, excuses=plan.excuses | {NOT_AGAIN})


def _session_gone(dice: Random, plan: Plan) -> Plan:
    fault: Json = {"action": "expire_session", "status": dice.choice((404, 410)), "nth": dice.choice((1, 1, 2, 3))}
    if dice.random() < 0.3:
        plan = _with(_broken_chunk(dice, plan), fault | {"operation": f"{INSERT}.query", "nth": 1})
    else:
        plan = _with(plan, fault)
    return plan if plan.direction == "up" else replace(plan, excuses=plan.excuses | {NOT_AGAIN})


def _broken_chunk(dice: Random, plan: Plan) -> Plan:
    """After which a session is asked how much it has."""
    return _with(plan, {"action": "reset", "operation": f"{INSERT}.send", "nth": dice.choice((1, 2, 3))})


def _corrupted_up(dice: Random, plan: Plan) -> Plan:
    fault: Json = {"action": "corrupt_upload", "at": dice.randrange(CHUNK), "nth": dice.choice((1, 1, 2, 3))}
    return _with(plan, fault, "wrong bytes")


def _corrupted_down(dice: Random, plan: Plan) -> Plan:
    again = any(fault["action"] == "corrupt" for fault in plan.faults)
    fault: Json = {"action": "corrupt", "at": _place(dice, plan), "data": True, "nth": dice.choice((1, 1, 2, 3))}
    # What has gone out cannot be taken back, and who gets wrong bytes twice may call them wrong.
    return _with(plan, fault, *(("wrong bytes",) if again or plan.direction == "out" else ()))


def _range(dice: Random, plan: Plan) -> Plan:
    """Return what servers do with a range; a range is requested only after a break."""
    keep, reset = _place(dice, plan), dice.random() < 0.5
    broken = _with(plan, {"action": "truncate", "keep": keep, "reset": reset, "data": True, "nth": 1})
    action = dice.choice(("ignore_range", "other_range", "refuse_range"))
    fault: Json = {"action": action, "nth": dice.choice((1, 1, 2))}
    if action == "other_range":
        fault["first"] = _place(dice, plan)
    return _with(broken, fault)


def _somebody_else(dice: Random, plan: Plan) -> Plan:
    action = dice.choice(("replace_object", "replace_object", "delete_object"))
    operation = {"up": INSERT, "stream": INSERT, "copy": REWRITE}.get(plan.direction, GET)
    fault: Json = {"action": action, "operation": operation, "nth": dice.choice((1, 2, 2, 3))}
    fault["when"] = dice.choice(("before", "after"))
    if action == "replace_object" and dice.random() < 0.5:
        fault["content"] = dice.choice((1, 1000, 40_000))
    # Readers start over with the new version, unless they are to have the old one or have let out some of it; in place
    # of gzip, somebody else may put what is none.
    if action == "delete_object" or plan.writes or plan.pinned or plan.direction in ("out", "gzip"):
        return _with(plan, fault, "somebody else")
    return _with(plan, fault)


def _cut(dice: Random, plan: Plan) -> Plan:
    way: Way = "up" if plan.direction in ("up", "stream") and dice.random() < 0.8 else "down"
    most = plan.size + 2_000 if (way == "up") == (plan.direction in ("up", "stream")) else 2_000
    silent = any(cut.how == "silence" for cut in plan.cuts)
    how: How = dice.choice(("reset", "close") if silent else ("reset", "reset", "close", "silence"))
    return replace(plan, cuts=(*plan.cuts, Cut(way, dice.randrange(most), how)))


_ANY: tuple[Kind, ...] = (_status, _status, _status, _broken, _broken, _truncated, _stalled, _cut, _expired)
_RARE: tuple[Kind, ...] = (*_ANY, *_ANY, _never_again, _permanent, _somebody_else)
_SMALL: tuple[Kind, ...] = (*_RARE, _corrupted_up)
_SESSION: tuple[Kind, ...] = (*_SMALL, *(_partial, _rewound, _session_gone) * 3)
_DOWN: tuple[Kind, ...] = (*_RARE, *(_truncated, _range, _corrupted_down) * 3, _somebody_else)


def _kinds(plan: Plan) -> tuple[Kind, ...]:
    if not plan.writes:
        return _DOWN
    if plan.direction == "copy":
        return _RARE
    return _SMALL if plan.size <= CHUNK else _SESSION
