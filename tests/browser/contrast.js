// The lowest contrast of any visible text with its ground, by the formula of WCAG 2, and where.
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return rgb(colour)[3] === 255 || !element.parentElement ? colour : ground(element.parentElement);
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!text || !element.checkVisibility()) continue;
    if (element.closest(".hidden-text, .skip, option, script, noscript")) continue;
    const style = getComputedStyle(element);
    const ink = element instanceof SVGElement ? style.fill : style.color;
    const [light, dark] = [ink, ground(element)].map((colour) => luminance(rgb(colour))).sort((x, y) => y - x);
    found.push([(light + 0.05) / (dark + 0.05), element.outerHTML.slice(0, 80)]);
  }
  return { texts: found.length, worst: found.sort((x, y) => x[0] - y[0])[0] };
}
