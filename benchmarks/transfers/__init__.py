"""Transfers to and from one embedded cloud: forbear, other clients of Cloud Storage, and raw sockets as the floor.

What runs in workers (`worker` and the contenders) imports the standard library and its own client only, for the workers
of other clients run in an environment of their own, in which forbear is not installed.
"""
