"""The export targets, in families of systems that are alike; `forbear.export` lists them."""
