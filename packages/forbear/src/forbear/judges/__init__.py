"""`forbear.transient`: one judge of the errors of many clients. It reads their shape and imports none of them."""
