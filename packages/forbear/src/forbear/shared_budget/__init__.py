"""`forbear.budgets.SharedBudget`: a retry budget that many processes share through Redis or Valkey."""
