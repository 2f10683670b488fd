"""Budgets in simulations: one class for each rule, with what the rule is in either engine and in the long run."""
