"""The commands of transfers, and `forbear curl`; `shared` has what several of them use."""
