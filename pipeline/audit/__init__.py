"""Audits share groups: rebuilds and checks every delivery's outcome from a log's control records.

    from barnabas.pipeline.audit import audit, write_report

    with audit(spark, ["/var/lib/barnabas/data"], topics=["orders"]) as audited:
        audited.violations.show()
        write_report(audited, "audit.html")

docs/audit.md has the tables and checks. Importing this package does not load PySpark or PyArrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.pipeline.audit.auditing import Audit, audit
    from barnabas.pipeline.audit.report import write_report

__all__ = ["Audit", "audit", "write_report"]


def __getattr__(name: str) -> Any:
    """Loads names that need PySpark at their first use."""
    if name in ("Audit", "audit"):
        from barnabas.pipeline.audit import auditing

        return getattr(auditing, name)
    if name == "write_report":
        from barnabas.pipeline.audit.report import write_report

        return write_report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
