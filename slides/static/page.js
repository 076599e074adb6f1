// Formulas, once the page is there. KaTeX writes MathML, so there is nothing to lay out.
document.addEventListener('DOMContentLoaded', () => {
  for (const place of document.querySelectorAll('.math')) {
    katex.render(place.textContent, place, {output: 'mathml', displayMode: place.tagName === 'DIV', throwOnError: true});
  }
});
