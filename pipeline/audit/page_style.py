"""The report's style sheet: the system's own fonts, the reader's light or dark mode, printable.

Nothing is wider than the window. A table whose columns do not fit becomes one block for each row, with the
name of the column beside each value.
"""

from __future__ import annotations

from typing import Final


def _stacked(which: str) -> str:
    """Rules that show the rows of these tables as blocks."""
    return (
        f"{which},{which} tbody,{which} caption{{display:block}}"
        f"{which} thead{{display:none}}"
        f"{which} tr{{display:grid;grid-template-columns:repeat(auto-fill,minmax(8.5rem,1fr));"
        "gap:.25rem 1rem;padding:.6rem 0;border-bottom:1px solid var(--line)}"
        f"{which} td,{which} td.number{{display:block;padding:0;border:0;text-align:left}}"
        f"{which} td::before{{content:attr(data-name);display:block;color:var(--faint);font-size:.75rem}}"
    )


STYLE: Final = f"""
:root{{color-scheme:light dark;--paper:#fff;--ink:#1c1e21;--faint:#5c6370;--line:#d9dce1;--band:#f4f5f7;
--series-acknowledged:#1f7a5c;--series-available:#a86b12;--series-archiving:#8d3f8f;--series-archived:#b3362d;--series-unknown:#6b6f9c}}
@media (prefers-color-scheme:dark){{:root{{--paper:#15171a;--ink:#e8eaed;--faint:#a2a9b4;--line:#363b43;
--band:#1e2126;--series-acknowledged:#4fb88f;--series-available:#e0ab52;--series-archived:#ec7a70;
--series-archiving:#d58bd8;--series-unknown:#a3a7dc}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;
overflow-wrap:anywhere}}
main{{max-width:80rem;margin:0 auto;padding:2rem 1.25rem 4rem}}
h1{{font-size:1.75rem;line-height:1.2;margin:0 0 .5rem}}
h2{{font-size:1.25rem;margin:2.5rem 0 .75rem;padding-top:.75rem;border-top:1px solid var(--line)}}
p{{max-width:48rem}}
.verdict{{font-size:1.125rem;padding-left:.75rem;border-left:.3rem solid var(--series-acknowledged)}}
.verdict.bad{{border-color:var(--series-archived)}}
.facts{{display:grid;grid-template-columns:repeat(2,1fr);gap:1px;background:var(--line);
border:1px solid var(--line);margin:1.25rem 0}}
.facts div{{background:var(--paper);padding:.6rem .8rem}}dt{{color:var(--faint);font-size:.85rem}}
dd{{margin:0;font-size:1.15rem;line-height:1.3;font-variant-numeric:tabular-nums}}
@media (min-width:44rem){{.facts{{grid-template-columns:repeat(4,1fr)}}
dd{{font-size:1.3rem}}}}
figure{{margin:0 0 .5rem}}figcaption{{color:var(--faint);font-size:.9rem;margin-bottom:.6rem}}
.legend{{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;margin:0 0 .75rem;padding:0;
font-size:.875rem}}
.key{{display:inline-block;width:.75rem;height:.75rem;margin-right:.4rem;background:var(--series)}}
.bars{{max-width:60rem}}
.row{{display:grid;grid-template-columns:14rem 1fr;gap:.1rem .75rem;padding:.3rem 0;font-size:.875rem}}
.row>span{{text-align:right;line-height:1.25rem}}
.track{{display:flex;align-items:center;gap:.5rem;height:1.25rem}}
.track i{{flex:none;height:.9rem;width:calc((100% - 7rem)*var(--share));min-width:1px;
background:var(--series)}}
.track b{{font-weight:400;font-variant-numeric:tabular-nums;white-space:nowrap}}
@media (max-width:44rem){{.row{{grid-template-columns:1fr}}.row>span{{text-align:left}}}}
.lane{{display:grid;grid-template-columns:4.5rem 1fr;gap:0 .5rem;margin-bottom:.9rem;font-size:.875rem}}
.lane p{{grid-column:2;margin:0 0 .2rem}}.lane b{{font-variant-numeric:tabular-nums}}
.axis{{display:flex;flex-direction:column;justify-content:space-between;text-align:right;font-size:.75rem;
line-height:1;color:var(--faint);font-variant-numeric:tabular-nums}}
.plot{{display:flex;align-items:flex-end;height:4.5rem;border-bottom:1px solid var(--faint);
border-top:1px dotted var(--line);background:var(--band)}}
.plot i{{flex:1 1 0;min-width:0;max-width:3rem;height:calc(100%*var(--share));background:var(--series);
border-right:1px solid var(--band)}}
.ticks{{position:relative;height:2.4rem;margin-left:5rem;font-size:.75rem;line-height:1.1rem;
color:var(--faint);white-space:nowrap}}
.ticks span{{position:absolute;left:calc(100%*var(--at));padding-left:.2rem;
border-left:1px solid var(--faint)}}
details{{margin:0 0 1rem}}summary{{cursor:pointer;color:var(--faint);font-size:.9rem}}
table{{border-collapse:collapse;font-size:.875rem;width:100%;margin:0 0 1rem}}
caption{{text-align:left;color:var(--faint);padding:.25rem 0}}
th,td{{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid var(--line)}}
th{{background:var(--band);overflow-wrap:normal;font-weight:600;line-height:1.25}}
th.number,td.number{{text-align:right;font-variant-numeric:tabular-nums}}td.number{{white-space:nowrap}}
td.text{{overflow-wrap:normal}}td.name{{min-width:5rem}}.day{{white-space:nowrap}}
@media (max-width:36rem){{{_stacked("table")}}}
@media (max-width:64rem){{{_stacked("table.wide")}}}
@media print{{tr,.row,.lane{{break-inside:avoid}}}}
"""
