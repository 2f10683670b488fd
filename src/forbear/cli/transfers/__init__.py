"""What `forbear cp` and `forbear rsync` share: options, the screen, and how a transfer is begun and ended."""
