"""The part of the demo about transfers: a real kill, and a real second run."""

from examples.demo.upload import MIB, SIZE, kill_and_run_again


def test_a_killed_upload_goes_on_where_the_server_is() -> None:
    """The second run sends what the server has not, and the object is there once, with the right bytes."""
    found = kill_and_run_again(7)
    assert found.codes == (-9, 0)
    assert found.is_clean
    assert found.size == SIZE
    assert found.kept > 30 * MIB
    assert SIZE <= found.sent < SIZE + MIB
