#include "monitor_browser.hpp"

namespace checker::testing {

namespace {

// Looks at the page from outside, points at a span, zooms by dragging and back by double-clicking,
// and writes down what it saw.
constexpr const char* kReader = R"(
setTimeout(() => {
  const send = (target, type, x, y) => target.dispatchEvent(new view.PointerEvent(type, {clientX: x, clientY: y, bubbles: true, pointerId: 1}));
  const figure = [...page.querySelectorAll('figure.chart')].find(f => f.querySelector('.plot rect.b')) ?? page.querySelector('figure.chart');
  const outer = figure.querySelector('svg.outer'), plot = figure.querySelector('svg.plot');
  outer.setPointerCapture = () => {};
  const box = figure.querySelector('.area').getBoundingClientRect();
  const before = plot.getAttribute('viewBox');
  const span = plot.querySelector('rect.b');
  if (span) send(span, 'pointermove', box.left + 50, box.top + 5);
  const tip = span ? page.querySelector('.tip').textContent.split('\n')[0] : 'none';
  send(outer, 'pointerdown', box.left + box.width * 0.25, box.top + 5);
  send(outer, 'pointermove', box.left + box.width * 0.5, box.top + 5);
  send(outer, 'pointerup', box.left + box.width * 0.5, box.top + 5);
  const zoomed = plot.getAttribute('viewBox').split(' ').map(v => Math.round(v));
  outer.dispatchEvent(new view.MouseEvent('dblclick', {bubbles: true}));
  document.body.textContent = 'seen: ' + [
    'charts ' + page.querySelectorAll('figure.chart').length,
    'rows ' + page.querySelectorAll('.shares tbody tr, .comparison tbody tr').length,
    'tip ' + tip, 'zoomed to ' + zoomed[0] + '+' + zoomed[2],
    'back ' + (plot.getAttribute('viewBox') === before),
    'wide ' + (box.width > 200),
    'overflow ' + (page.documentElement.scrollWidth > view.innerWidth),
    'requests ' + view.performance.getEntriesByType('resource').length].join(', ') + ' end';
}, 300);
)";

}  // namespace

std::string run_seen_by_browser(const std::string& page, int width) {
  return seen_by_browser(page, width, kReader);
}

}  // namespace checker::testing
