"""May this be repeated, and why: answers about requests, RPCs and commands, as values.

`forbear.explain` is the door; the command `forbear explain` prints what is found here. Nothing is sent, no file is
read, and no secret of a request is in an answer.
"""
