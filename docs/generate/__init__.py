"""The reference pages, made of the tables and the profiles: what they say is said there, and nowhere else."""
