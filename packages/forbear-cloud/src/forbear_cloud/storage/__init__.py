"""The resources that the cloud stores, and the rules that all its APIs apply to them."""
