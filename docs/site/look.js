/* Run in a page: return a line of text for each thing that a reader would see is wrong. */
() => {
  const wrong = [];
  const width = document.documentElement.clientWidth;
  const content = document.querySelector("article, main") ?? document.body;
  const seen = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    element.getBoundingClientRect().width > 0;
  const name = (element) => {
    const classes = typeof element.className === "string" ? element.className.trim() : "";
    const text = element.textContent.trim().slice(0, 40);
    return `<${element.localName}${classes && ` class="${classes}"`}> ${JSON.stringify(text)}`;
  };

  if (!document.title.trim()) wrong.push("it has no title");
  if (![...document.querySelectorAll("h1, h2")].some(seen)) wrong.push("no heading is visible");

  // What is wider than the window is fine in a box that scrolls, such as a code block.
  const whole = document.documentElement.scrollWidth;
  if (whole > width) wrong.push(`it is ${whole} pixels wide in a window of ${width}`);
  const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  const outside = (element) => {
    if (element !== content && seen(element)) {
      const box = element.getBoundingClientRect();
      if (box.right > width + 1 || box.left < -1) return element;
    }
    if (scrolls(element)) return null;
    for (const child of element.children) {
      const inner = outside(child);
      if (inner) return inner;
    }
    return null;
  };
  const cut = outside(content);
  if (cut) wrong.push(`it ends beyond the edge of the window: ${name(cut)}`);

  for (const picture of content.querySelectorAll("img")) {
    if (!picture.complete || !picture.naturalWidth) wrong.push(`no picture: ${picture.getAttribute("src")}`);
    else if (!picture.alt.trim()) wrong.push(`a picture without a text: ${picture.getAttribute("src")}`);
  }

  // A canvas turns each notation of a color into numbers.
  const paint = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const numbers = (color) => {
    if (!known.has(color)) {
      paint.clearRect(0, 0, 1, 1);
      paint.fillStyle = color;
      paint.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = paint.getImageData(0, 0, 1, 1).data;
      known.set(color, [red, green, blue, alpha / 255]);
    }
    return known.get(color);
  };
  const over = ([red, green, blue, alpha], below) =>
    [red, green, blue].map((value, index) => alpha * value + (1 - alpha) * below[index]);
  const grounds = new Map();
  const ground = (element) => {
    if (!element) return [255, 255, 255];
    if (!grounds.has(element)) {
      const own = numbers(getComputedStyle(element).backgroundColor);
      grounds.set(element, own[3] === 1 ? own.slice(0, 3) : over(own, ground(element.parentElement)));
    }
    return grounds.get(element);
  };
  const light = (color) => {
    const [red, green, blue] = color.map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };

  // WCAG 2, level AA: 4.5 to 1 for text, 3 to 1 for large text.
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const parents = new Set();
  while (texts.nextNode()) if (texts.currentNode.data.trim()) parents.add(texts.currentNode.parentElement);
  const pale = new Map();
  const colors = new Set();
  for (const element of parents) {
    if (element.closest("script, style, noscript, svg, title") || !seen(element)) continue;
    const style = getComputedStyle(element);
    const below = ground(element);
    const text = over(numbers(style.color), below);
    if (element.closest(".highlight-python pre")) colors.add(text.join());
    const [high, low] = [light(text), light(below)].sort((one, other) => other - one);
    const contrast = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (contrast < (large ? 3 : 4.5)) {
      const key = `${text.map(Math.round)} on ${below.map(Math.round)}`;
      if (!pale.has(key)) pale.set(key, `contrast of ${contrast.toFixed(2)}, rgb ${key}: ${name(element)}`);
    }
  }
  wrong.push(...pale.values());

  const code = content.querySelectorAll(".highlight-python pre span").length;
  if (code > 9 && colors.size < 3) wrong.push("its code has no colors");
  return wrong;
}
