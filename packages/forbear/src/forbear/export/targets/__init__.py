"""The export targets, one module for each family of systems that are alike; `forbear.export` lists them."""
