"""What tests of retrying code need: scripted servers, and time that does not pass."""
