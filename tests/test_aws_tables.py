"""`make tables`: what changed in the models of AWS, and what our corrections of them miss."""

from typing import Any

from tools.aws_tables import check_rows, compare, read_traits


def model(*operations: str, text: str = "", **traits: Any) -> dict[str, Any]:
    """Return the traits of operations of one service, each with this text and these traits."""
    document = {
        "metadata": {"protocol": "json", "serviceId": "Made Up", "endpointPrefix": "x"},
        "operations": {name: {"name": name, "http": {}, "documentation": text, **traits} for name in operations},
        "shapes": {},
    }
    return dict(read_traits(document, "made-up"))


def test_changes() -> None:
    """Services, operations and traits that came or went are named."""
    old = {"sqs": model("SendMessage", "Old"), "x": model("DoIt", readonly=True)}
    new = {"sqs": model("SendMessage", "New"), "x": model("DoIt"), "y": model("Any")}
    assert list(compare(old, new)) == [
        "sqs.New: a new operation, and no row for it",
        "x.DoIt: readonly was True, and is False",
        "y: a new service",
        "sqs.Old: gone",
    ]
    assert list(compare(new, new)) == []


def test_rows() -> None:
    """Rows that match nothing are named, and reads whose text names an action."""
    found = list(check_rows({"x": model("GetIt", "ListThem", text="Sends a code.")}))
    assert "sqs.SendMessage: a row that matches nothing" in found
    assert [line for line in found if line.startswith("x.")] == [
        "x.GetIt: a read, by its name or trait, whose text names an action",
        "x.ListThem: a read, by its name or trait, whose text names an action",
    ]
