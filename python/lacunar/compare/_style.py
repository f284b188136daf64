"""The page of the report: one template, its style inside."""

from string import Template

PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { --ink: #1f2933; --quiet: #6b7785; --rule: #e3e7ec; --ours: #0b7a75; --paper: #fdfcfa; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.6 system-ui, -apple-system, "Segoe UI",
  "DejaVu Sans", sans-serif; font-variant-numeric: tabular-nums; }
main { max-width: 54rem; margin: 0 auto; padding: 4rem 1.5rem 5rem; }
.over { color: var(--ours); font-size: .8rem; letter-spacing: .12em; text-transform: uppercase; margin: 0; }
h1 { font: 500 2rem/1.25 Georgia, "Iowan Old Style", "DejaVu Serif", serif; margin: .3rem 0 1.2rem; overflow-wrap: anywhere; }
.summary { font: 1.25rem/1.55 Georgia, "Iowan Old Style", "DejaVu Serif", serif; margin: 0 0 1rem; }
.caveat { border-left: 3px solid #c8553d; padding-left: .8rem; color: #7a3324; margin: .4rem 0; }
dl.facts { display: flex; flex-wrap: wrap; gap: .5rem 2.6rem; margin: 1.8rem 0 2.4rem; }
dl.facts dt { color: var(--quiet); font-size: .8rem; } dl.facts dd { margin: 0; font-size: 1.35rem; }
h2 { font: 500 1.3rem/1.3 Georgia, "Iowan Old Style", "DejaVu Serif", serif; margin: 3.2rem 0 .3rem; }
section p { color: var(--quiet); margin: 0 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th { text-align: right; font-weight: 500; color: var(--quiet); font-size: .82rem; border-bottom: 1.5px solid var(--ink);
  padding: .4rem .6rem; }
td { text-align: right; padding: .5rem .6rem; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td.name { text-align: left; padding-left: 0; }
td.mark { text-align: left; color: var(--quiet); font-size: .85rem; }
tr.ours td.name { color: var(--ours); font-weight: 600; } tr.best td { font-weight: 600; }
tr.best td.mark { color: var(--ink); } tr.failed td { color: #7a3324; white-space: normal; text-align: left; }
figure { margin: 0; } figure svg { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
ul { padding-left: 1.1rem; margin: .4rem 0; } footer { margin-top: 3.5rem; padding-top: 1rem;
  border-top: 1px solid var(--rule); color: var(--quiet); font-size: .85rem; }
@media print { main { padding: 0; } section { break-inside: avoid; } }
</style>
</head>
<body>
<main>
<p class="over">lacunar compare</p>
<h1>$source</h1>
<p class="summary">$summary</p>
$caveats
<dl class="facts">$facts</dl>
<div class="scroll"><table><thead><tr>$head</tr></thead><tbody>$rows</tbody></table></div>
$pictures
<section><h2>What was read</h2><ul>$read</ul></section>
<section><h2>How it was measured</h2><p style="color:inherit">$measured</p><ul>$learners</ul></section>
<footer>$versions</footer>
</main>
</body>
</html>
""")
