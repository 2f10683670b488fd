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

_getattr, _dir = lazy_exports(
    __name__,
    {
        "RULES": "rules.catalog",
        "Audit": "engine",
        "Finding": "findings",
        "AuditRule": "rules.catalog",
        "Remark": "findings",
        "AuditSettings": "settings",
        "Severity": "findings",
        "Unread": "findings",
        "audit": "engine",
    },
)


def __getattr__(name: str) -> object:
    return _getattr(name)


def __dir__() -> list[str]:
    return _dir()
