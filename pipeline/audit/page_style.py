"""The report's style sheet: the system's own fonts, light or dark as the reader has it, printable."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1c1e21;--faint:#5c6370;--line:#d9dce1;--band:#f4f5f7;
--series-acknowledged:#1f7a5c;--series-available:#b7791f;--series-archived:#b3362d;--series-unknown:#6b6f9c}
@media (prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#e8eaed;--faint:#a2a9b4;--line:#363b43;
--band:#1e2126;--series-acknowledged:#4fb88f;--series-available:#e0ab52;--series-archived:#ec7a70;
--series-unknown:#a3a7dc}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:72rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.75rem;margin:0 0 .5rem}h2{font-size:1.25rem;margin:2.5rem 0 .75rem}
.verdict{font-size:1.125rem;padding-left:.75rem;border-left:.3rem solid var(--series-acknowledged)}
.verdict.bad{border-color:var(--series-archived)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:1px;background:var(--line);
border:1px solid var(--line)}
.facts div{background:var(--paper);padding:.6rem .8rem}dt{color:var(--faint);font-size:.85rem}
dd{margin:0;font-size:1.35rem;font-variant-numeric:tabular-nums}
figure{margin:0 0 1rem}figcaption{color:var(--faint);font-size:.9rem}
svg{width:100%;max-width:60rem;height:auto}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
.grid{stroke:var(--line)}
.legend{display:flex;flex-wrap:wrap;gap:1rem;list-style:none;margin:.25rem 0;padding:0;font-size:.9rem}
.key{display:inline-block;width:.8rem;height:.8rem;margin-right:.4rem}
.table{overflow:auto;max-height:30rem;margin:0 0 1rem}
table{border-collapse:collapse;font-size:.875rem;min-width:100%}
caption{text-align:left;color:var(--faint);padding:.25rem 0}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}
th{position:sticky;top:0;background:var(--band)}
.number{text-align:right;font-variant-numeric:tabular-nums}
@media print{.table{max-height:none;overflow:visible}}
"""
