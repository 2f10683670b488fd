"""The tests of the shop. They know nothing of faults."""

from before import payments, stock
from partners import Partners


def test_an_order_is_charged_once(partners: Partners) -> None:
    """A customer gets a receipt, and the bank charges the order once."""
    assert payments.charge(partners.url, "order-1", 250) == "R-1"
    assert partners.charges == ["order-1"]


def test_a_piece_is_reserved(partners: Partners) -> None:
    """There is tea, and a piece is kept for the order."""
    assert stock.pieces(partners.url, "tea") == 3
    stock.reserve(partners.url, "order-1", "tea")
    assert partners.reservations == {"order-1": "tea"}
