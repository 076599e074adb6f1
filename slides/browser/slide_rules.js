// What is wrong with the slide that is shown, as sentences. Defines window.slideProblems().
(() => {
  const hidden = (element) => {
    const style = getComputedStyle(element);
    return style.visibility === 'hidden' || style.opacity === '0';
  };
  const visible = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && !hidden(element);
  };
  const name = (element) => {
    const words = (element.textContent || '').trim().replace(/\s+/g, ' ').slice(0, 40);
    return `<${element.tagName.toLowerCase()}> "${words}"`;
  };
  const apart = (a, b, slack) => a.right <= b.left + slack || b.right <= a.left + slack ||
                                 a.bottom <= b.top + slack || b.bottom <= a.top + slack;
  const within = (inner, outer, slack) => inner.left >= outer.left - slack && inner.right <= outer.right + slack &&
                                          inner.top >= outer.top - slack && inner.bottom <= outer.bottom + slack;
  // Boxes of the words themselves: an element may be wider than what it shows.
  const wordBoxes = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return [...range.getClientRects()];
  };

  const overflow = (slide, problems) => {
    // reveal.js' page number and arrows have the bottom; words must end above.
    const page = {left: 0, top: 0, right: innerWidth, bottom: innerHeight - 22 * innerHeight / 720};
    for (const element of slide.querySelectorAll('h1, h2, p, li, pre, td, th, dt, dd, figcaption, svg, math')) {
      if (!visible(element) || element.closest('aside')) continue;
      const boxes = element.matches('svg, pre') ? [element.getBoundingClientRect()] : wordBoxes(element);
      if (boxes.some((box) => box.width > 0 && !within(box, page, 1))) problems.push(`${name(element)} does not fit on the slide`);
    }
    for (const code of slide.querySelectorAll('pre code')) {
      if (visible(code) && code.scrollWidth > code.clientWidth + 1) problems.push(`${name(code)} is wider than its box`);
    }
  };

  const overlap = (slide, problems) => {
    const blocks = [...slide.children].filter((block) => visible(block) && !block.matches('aside, span'));
    for (let i = 0; i < blocks.length; ++i) {
      for (let j = i + 1; j < blocks.length; ++j) {
        if (!apart(blocks[i].getBoundingClientRect(), blocks[j].getBoundingClientRect(), 2)) {
          problems.push(`${name(blocks[i])} and ${name(blocks[j])} lie over each other`);
        }
      }
    }
  };

  const figures = (slide, problems) => {
    for (const svg of slide.querySelectorAll('svg')) {
      if (!visible(svg) || !visible(svg.closest('figure') || svg)) continue;
      if (!svg.getAttribute('aria-label')) problems.push('a figure without alternative text');
      const frame = svg.getBoundingClientRect();
      // A text's box has room for accents above and tails below, which may touch the next line's.
      const inked = (box) => ({left: box.left, right: box.right, top: box.top + box.height / 6, bottom: box.bottom - box.height / 6});
      const texts = [...svg.querySelectorAll('text')].map((text) => [text, inked(text.getBoundingClientRect())]);
      const boxes = [...svg.querySelectorAll('rect')].map((rect) => [rect, rect.getBoundingClientRect()]);
      texts.forEach(([text, place], index) => {
        if (!within(place, frame, 1)) problems.push(`in a figure, ${name(text)} is cut off`);
        for (const [other, otherPlace] of texts.slice(index + 1)) {
          if (!apart(place, otherPlace, 3)) problems.push(`in a figure, ${name(text)} lies over ${name(other)}`);
        }
        // Words that begin in a box end in it.
        const middle = {x: (place.left + place.right) / 2, y: (place.top + place.bottom) / 2};
        for (const [rect, box] of boxes) {
          const inside = middle.x > box.left && middle.x < box.right && middle.y > box.top && middle.y < box.bottom;
          if (inside && rect.getAttribute('fill') !== 'none' && (place.left < box.left - 1 || place.right > box.right + 1)) {
            problems.push(`in a figure, ${name(text)} is wider than its box`);
          }
        }
      });
      for (const shape of svg.querySelectorAll('rect, path, line, circle, ellipse, polygon, polyline')) {
        if (shape.closest('defs, marker, clipPath, [clip-path]') || hidden(shape)) continue;
        const box = shape.getBoundingClientRect();  // of a level line, without height
        if (box.width + box.height > 0 && !within(box, frame, 1)) problems.push(`in a figure, a ${shape.tagName} is cut off`);
      }
      const small = texts.filter(([text, place]) => parseFloat(text.getAttribute('font-size')) * frame.width / svg.viewBox.baseVal.width < 14 * innerWidth / 1280);
      if (small.length) problems.push(`in a figure, ${name(small[0][0])} is too small to read`);
    }
  };

  const images = (slide, problems) => {
    for (const image of slide.querySelectorAll('img')) {
      if (!image.complete || image.naturalWidth === 0) problems.push(`the image ${image.src} is broken`);
      if (!image.alt) problems.push(`the image ${image.src} has no alternative text`);
    }
  };

  // A character that no font has is drawn like one that does not exist at all.
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 40;
  const pen = canvas.getContext('2d', {willReadFrequently: true});
  const drawn = (character, font) => {
    pen.clearRect(0, 0, 40, 40);
    pen.font = `28px ${font}`;
    pen.fillText(character, 4, 30);
    return pen.getImageData(0, 0, 40, 40).data.join();
  };
  const known = new Map();
  const glyphs = (slide, problems) => {
    for (const element of slide.querySelectorAll('h1, h2, p, li, code, td, th, figcaption, text, math')) {
      const font = getComputedStyle(element).fontFamily;
      for (const character of new Set(element.textContent)) {
        if (character.codePointAt(0) < 0x7f || /\s|[\u2061-\u2064]/.test(character)) continue;
        const key = character + font;
        if (!known.has(key)) known.set(key, drawn(character, font) !== drawn('\u{10FFFD}', font));
        if (!known.get(key)) problems.push(`no font has "${character}" (U+${character.codePointAt(0).toString(16)})`);
      }
    }
  };

  window.slideProblems = () => {
    const slide = Reveal.getCurrentSlide(), problems = [];
    for (const rule of [overflow, overlap, figures, images, glyphs]) rule(slide, problems);
    if (!slide.querySelector('h1, aside.notes')) problems.push('no speaker notes');
    return [...new Set(problems)];
  };
})();
