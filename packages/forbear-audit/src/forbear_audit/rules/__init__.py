"""The rules: what each says, where it is broken, and which findings count."""
