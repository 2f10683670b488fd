"""SARIF 2.1.0, the form in which code hosts read findings."""
