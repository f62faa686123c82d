"""The look of the report."""

CSS = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --line: #d1d9e0; --paper: #ffffff; --link: #0b5cad; --warn: #fff4d6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #9aa4af; --line: #3a424b; --paper: #14181d; --link: #79b8ff; --warn: #40351a; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.3rem; margin-top: 3rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
h3 { font-size: 1.05rem; margin: 0 0 .6rem; }
a { color: var(--link); }
figure { margin: 2rem 0 2.5rem; }
figcaption p { margin: .5rem 0 0; }
img { display: block; max-width: 100%; height: auto; margin: 0 auto; background: #ffffff; padding: .5rem; border-radius: .25rem; }
.warning { background: var(--warn); padding: .7rem 1rem; border-radius: .25rem; font-weight: 600; }
.notes, .runs, .key, .count { color: var(--soft); font-size: .875rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; border: solid var(--ink); border-width: 2px 0; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; font-weight: 400; white-space: nowrap; }
thead th { border-bottom: 1px solid var(--ink); font-weight: 600; }
.prose { white-space: normal; vertical-align: top; min-width: 9rem; }
.number { text-align: right; padding: .3rem 0 .3rem 1.2rem; }
"""
