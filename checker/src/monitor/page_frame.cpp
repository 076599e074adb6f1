// Style and script of the page.
#include "monitor/page.hpp"
#include "support/markup.hpp"

namespace checker::monitor {

namespace {

constexpr const char* kPageStyle = R"(
:root { color-scheme: light dark; --line: #8883; --soft: #767676; --ground: #8881;
  --c0: #0b6fb8; --c1: #d97f00; --c2: #078a63; --c3: #cc4b16; --c4: #b0609a; --c5: #2f9fd0; --c6: #8d8200; --c7: #6d6d6d;
  --d: #b7791f; --f: #2b7bba; --b: #1d4e89; --o: #6b8e23; --e: #9a6fb0; --k: #777; --c: #d1495b; }
@media (prefers-color-scheme: dark) { :root { --soft: #9a9a9a;
  --c0: #5fb3f0; --c1: #f0a53a; --c2: #3fc79a; --c3: #f0845a; --c4: #d79bc8; --c5: #8fd3f5; --c6: #d3c83f; --c7: #b5b5b5;
  --d: #dba24a; --f: #5aa9e6; --b: #3f7fc4; --o: #9bbf4f; --e: #bf9bd3; --k: #aaa; --c: #ef6f80; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin: 2.4rem 0 .6rem; } small, .soft { color: var(--soft); }
.tiles { display: flex; flex-wrap: wrap; gap: .7rem; margin: 1.2rem 0; } .tiles div { border: 1px solid var(--line); border-radius: 6px; padding: .5rem .9rem; min-width: 7rem; }
.tiles b { display: block; font-size: 1.25rem; font-weight: 600; font-variant-numeric: tabular-nums; } .tiles span { color: var(--soft); font-size: .85rem; }
.says { padding: 0; list-style: none; } .says li { border-left: 3px solid var(--c3); padding: .1rem 0 .1rem .9rem; margin: .8rem 0; } .says li.calm { border-color: var(--c2); } .says b { font-weight: 600; display: block; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; } th { font-weight: 500; text-align: left; } td, th { padding: 2px 1.2rem 2px 0; border-bottom: 1px solid var(--line); } td, thead th:not(:first-child) { text-align: right; } td { white-space: nowrap; } .scroll { overflow-x: auto; } .about td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
figure { margin: 1.2rem 0; } figcaption { font-weight: 500; } svg { width: 100%; height: auto; display: block; overflow: visible; } svg.plot { overflow: hidden; }
svg text { fill: var(--soft); font-size: 11px; } .levels text { text-anchor: end; dominant-baseline: middle; } .ticks text { text-anchor: middle; } .levels line { stroke: var(--line); }
.area { fill: var(--ground); } polyline { fill: none; stroke-width: 1.4; vector-effect: non-scaling-stroke; stroke-linejoin: round; } .plot path { fill: none; stroke-width: 5; stroke-linecap: round; vector-effect: non-scaling-stroke; } .outer { cursor: crosshair; outline-offset: 4px; touch-action: pan-y; }
.plot rect { height: 13px; } .plot .calls rect { height: 9px; y: 15px; } .select { fill: #8884; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .85rem; color: var(--soft); } .legend i { display: inline-block; width: .8em; height: .8em; margin-right: .35em; border-radius: 2px; }
.s0 { stroke: var(--c0); background: var(--c0); } .s1 { stroke: var(--c1); background: var(--c1); } .s2 { stroke: var(--c2); background: var(--c2); } .s3 { stroke: var(--c3); background: var(--c3); }
.s4 { stroke: var(--c4); background: var(--c4); } .s5 { stroke: var(--c5); background: var(--c5); } .s6 { stroke: var(--c6); background: var(--c6); } .s7 { stroke: var(--c7); background: var(--c7); }
.d { fill: var(--d); background: var(--d); } .f { fill: var(--f); background: var(--f); } .b { fill: var(--b); background: var(--b); } .o { fill: var(--o); background: var(--o); } .e { fill: var(--e); background: var(--e); }
.k { fill: var(--k); background: var(--k); } .c { fill: var(--c); background: var(--c); } .q { fill: var(--c); background: var(--c); opacity: .3; } .x { fill: #f00; } .r { background: var(--line); }
.share { display: flex; height: 1rem; width: 100%; min-width: 18rem; border-radius: 3px; overflow: hidden; } .share i { display: block; height: 100%; } td.wide { width: 55%; }
.tip { position: fixed; pointer-events: none; background: Canvas; color: CanvasText; border: 1px solid var(--line); border-radius: 5px; padding: .25rem .6rem; font-size: .85rem; white-space: pre; box-shadow: 0 2px 8px #0003; z-index: 2; }
)";

constexpr const char* kPageScript = R"(
const names = {d: 'data', f: 'forward', b: 'backward', o: 'optimizer', e: 'evaluation', k: 'checkpoint', c: 'collective', q: 'collective', x: 'failed collective'};
const digits = v => { const a = Math.abs(v); return v.toFixed(a >= 100 ? 0 : a >= 10 ? 1 : 2); };
const seconds = v => { const a = Math.abs(v); return v === 0 ? '0' : a < 1e-3 ? digits(v * 1e6) + ' µs' : a < 1 ? digits(v * 1e3) + ' ms' : digits(v) + ' s'; };
const bytes = v => { let u = 0; while (v >= 1024 && u < 5) { v /= 1024; ++u; } return (u ? digits(v) : v.toFixed(0)) + [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB'][u]; };
const shown = (v, unit) => unit === 's' ? seconds(v) : unit === 'B' ? bytes(v) : unit === 'B/s' ? bytes(v) + '/s' : unit === '%' ? v.toFixed(0) + ' %'
  : unit === 'step' ? v.toFixed(0) : Number(v.toPrecision(5)) + (unit ? ' ' + unit : '');
const tip = document.body.appendChild(Object.assign(document.createElement('div'), {className: 'tip', hidden: true}));
const W = 1000;
for (const figure of document.querySelectorAll('figure.chart')) {
  const outer = figure.querySelector('svg.outer'), plot = figure.querySelector('svg.plot'), area = figure.querySelector('.area');
  const ticks = figure.querySelector('.ticks'), d = figure.dataset, H = +d.height, left = +area.getAttribute('x');
  const span = d.to - d.from; let from = 0, to = W, start = null, select = null, curves = null;
  const value = x => +d.from + span * x / W;
  const show = () => {
    plot.setAttribute('viewBox', `${from} 0 ${to - from} ${H}`);
    const low = value(from), high = value(to), rough = (high - low) / 8, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find(k => k * power >= rough) * power;
    ticks.replaceChildren(...Array.from({length: 12}, (_, i) => (Math.ceil(low / step) + i) * step).filter(v => v <= high).map(v => {
      const text = document.createElementNS('http://www.w3.org/2000/svg', 'text');
      text.setAttribute('x', left + W * (v - low) / (high - low)); text.setAttribute('y', H + 24);
      text.textContent = d.unit === 's' && step < 1 ? Number(v.toPrecision(7)) + ' s' : shown(v, d.unit); return text; }));
  };
  const at = event => { const box = area.getBoundingClientRect(); return from + (to - from) * Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)); };
  const zoom = (a, b) => { const least = W / 1e5; if (b - a < least) return; from = Math.max(0, a); to = Math.min(W, b); show(); };
  const describe = event => {
    const mark = event.target.closest('rect');
    if (mark && plot.contains(mark) && mark !== select) {
      const begin = +mark.getAttribute('x'), wide = +mark.getAttribute('width');
      return (mark.dataset.t || names[mark.getAttribute('class')]) + '\n' + seconds(span * wide / W) + ' from ' + value(begin).toFixed(4) + ' s';
    }
    curves ??= [...plot.querySelectorAll('polyline')].map(line => ({name: line.dataset.name, points: line.getAttribute('points').split(' ').map(p => p.split(',').map(Number))}));
    if (!curves.length) return '';
    const x = at(event), lines = curves.slice(0, 12).map(curve => {
      let low = 0, high = curve.points.length - 1;
      while (low < high) { const middle = (low + high) >> 1; if (curve.points[middle][0] < x) low = middle + 1; else high = middle; }
      if (low > 0 && x - curve.points[low - 1][0] < curve.points[low][0] - x) --low;
      return curve.name + ': ' + shown(+d.low + (1 - curve.points[low][1] / H) * (d.high - d.low), d.y);
    });
    return (d.unit === 's' ? 'at ' + value(x).toFixed(2) + ' s' : 'step ' + value(x).toFixed(0)) + '\n' + lines.join('\n');
  };
  outer.addEventListener('pointerdown', event => { start = at(event); outer.setPointerCapture(event.pointerId); });
  outer.addEventListener('pointermove', event => {
    if (start === null) { tip.textContent = describe(event); tip.hidden = !tip.textContent; tip.style.left = Math.min(event.clientX + 14, innerWidth - 260) + 'px'; tip.style.top = event.clientY + 16 + 'px'; return; }
    tip.hidden = true;
    if (!select) { select = document.createElementNS('http://www.w3.org/2000/svg', 'rect'); select.setAttribute('class', 'select'); select.setAttribute('style', 'height:' + H + 'px'); plot.append(select); }
    const x = at(event); select.setAttribute('x', Math.min(start, x)); select.setAttribute('width', Math.abs(x - start));
  });
  outer.addEventListener('pointerup', event => { const x = at(event); if (start !== null && Math.abs(x - start) > (to - from) / 200) zoom(Math.min(start, x), Math.max(start, x)); start = null; select?.remove(); select = null; });
  outer.addEventListener('pointerleave', () => { tip.hidden = true; });
  outer.addEventListener('dblclick', () => zoom(0, W));
  outer.addEventListener('keydown', event => {
    const wide = to - from, middle = (from + to) / 2;
    if (event.key === '+') zoom(middle - wide / 4, middle + wide / 4); else if (event.key === '-') zoom(middle - wide, middle + wide);
    else if (event.key === 'ArrowLeft') zoom(Math.max(0, from - wide / 5), Math.max(wide, to - wide / 5)); else if (event.key === 'ArrowRight') zoom(Math.min(W - wide, from + wide / 5), Math.min(W, to + wide / 5));
    else if (event.key === 'Escape') zoom(0, W); else return;
    event.preventDefault();
  });
}
)";

}  // namespace

std::string whole_page(const std::string& title, const pugi::xml_document& body) {
  return markup::to_page(title, kPageStyle, body, kPageScript);
}

}  // namespace checker::monitor
