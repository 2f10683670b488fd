"""`audit`: find the retries in Python code that are unsafe, unbounded or impolite. It reads code, and never runs it.

```python
from forbear_audit import audit

for finding in audit(["examples"]).findings:
    print(finding)
```
"""

from typing import TYPE_CHECKING

from forbear.adapters import lazy_exports

if TYPE_CHECKING:
    from forbear_audit.engine import Audit, audit
    from forbear_audit.findings import Finding, Remark, Severity, Unread
    from forbear_audit.rules.catalog import RULES, AuditRule
    from forbear_audit.settings import AuditSettings

__all__ = ["RULES", "Audit", "AuditRule", "AuditSettings", "Finding", "Remark", "Severity", "Unread", "audit"]

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        dict.fromkeys(("RULES", "AuditRule"), "rules.catalog")
        | dict.fromkeys(("Audit", "audit"), "engine")
        | dict.fromkeys(("Finding", "Remark", "Severity", "Unread"), "findings")
        | {"AuditSettings": "settings"},
    )
