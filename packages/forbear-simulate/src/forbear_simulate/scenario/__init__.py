"""The scenario: its keys with their rules, the files and options that say it, the policies and budgets it names."""
