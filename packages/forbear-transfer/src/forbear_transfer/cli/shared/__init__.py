"""The parts that `forbear cp` and `forbear rsync` share: options, the run, and what they print."""
