// Line charts as SVG. Lines differ in colour, dash and marker, and are labelled where they end.

const DASHES = ["", "6 3", "2 3", "8 3 2 3", "", "6 3", "2 3", "8 3 2 3"];
const colour = (i) => `var(--s${i % 8})`;

function marker(i, x, y, size = 4) {
  const shapes = [
    () => svg("circle", { cx: x, cy: y, r: size }),
    () => svg("rect", { x: x - size, y: y - size, width: 2 * size, height: 2 * size }),
    () => svg("path", { d: `M${x} ${y - size - 1}L${x + size + 1} ${y + size}H${x - size - 1}Z` }),
    () => svg("path", { d: `M${x} ${y - size - 1.5}L${x + size + 1.5} ${y}L${x} ${y + size + 1.5}L${x - size - 1.5} ${y}Z` }),
  ];
  const shape = shapes[i % shapes.length]();
  shape.setAttribute("fill", colour(i));
  return shape;
}

function niceTicks(low, high, count) {
  const step = [1, 2, 5, 10, 20, 25, 50].find((each) => (high - low) / each <= count) || 100;
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + 1e-9; tick += step) ticks.push(tick);
  return ticks;
}

// Moves labels apart that would overlap, keeping their order.
function spread(positions, gap, low, high) {
  const order = positions.map((y, i) => [y, i]).sort((a, b) => a[0] - b[0]);
  const placed = [];
  order.forEach(([y], k) => placed.push(Math.max(y, k ? placed[k - 1] + gap : low)));
  for (let k = placed.length - 1, limit = high; k >= 0; k -= 1, limit = placed[k + 1] - gap) placed[k] = Math.min(placed[k], limit);
  const result = [];
  order.forEach(([, i], k) => { result[i] = placed[k]; });
  return result;
}

const clip = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

// series: [{ name, points: [[step, accuracy], ...] }]; steps: names along x; range: [low, high]
function lineChart(series, steps, range, width, label) {
  const compact = width < 420;
  const room = Math.min(compact ? 92 : 130, 14 + 6.6 * Math.max(...series.map((line) => Math.min(line.name.length, compact ? 11 : 17))));
  const height = Math.max(190, Math.min(280, 15 * series.length + 60, width * 0.75));
  const area = { left: 30, right: width - room, top: 10, bottom: height - 36 };
  const [low, high] = range;
  const x = (step) => area.left + 6 + ((area.right - area.left - 12) * step) / Math.max(1, steps.length - 1);
  const y = (value) => area.bottom - ((area.bottom - area.top) * (value - low)) / (high - low);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  for (const tick of niceTicks(low, high, 6)) {
    chart.append(svg("line", { class: "grid", x1: area.left, x2: area.right, y1: y(tick), y2: y(tick) }),
      svg("text", { class: "tick", x: area.left - 5, y: y(tick) + 4, "text-anchor": "end" }, String(tick)));
  }
  // Where names do not all fit, every second or third stands.
  const space = (area.right - area.left) / Math.max(1, steps.length - 1);
  const letters = Math.min(12, Math.max(...steps.map((name) => name.length)));
  const every = Math.max(1, Math.ceil((6.4 * letters + 6) / space));
  steps.forEach((name, step) => {
    if (step % every === 0) {
      chart.append(svg("text", { class: "tick", x: x(step), y: area.bottom + 16, "text-anchor": "middle" }, clip(name, 12)));
    }
  });
  chart.append(svg("text", { class: "tick", x: (area.left + area.right) / 2, y: height - 3, "text-anchor": "middle" }, "after learning"));
  const ends = spread(series.map((line) => y(line.points.at(-1)[1])), 13, area.top + 4, area.bottom);
  series.forEach((line, i) => {
    const path = line.points.map(([step, value], k) => `${k ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    const end = line.points.at(-1);
    chart.append(svg("g", {}, svg("title", {}, `${line.name}: ${line.points.map(([, v]) => v.toFixed(1)).join(", ")}`),
      svg("path", { d: path, fill: "none", stroke: colour(i), "stroke-width": 2, "stroke-dasharray": DASHES[i % 8] }),
      line.points.map(([step, value]) => marker(i, x(step), y(value), 3)),
      svg("line", { x1: x(end[0]) + 5, y1: y(end[1]), x2: area.right + 6, y2: ends[i] - 4, stroke: colour(i), "stroke-width": 0.8 }),
      svg("text", { x: area.right + 9, y: ends[i] }, clip(line.name, compact ? 11 : 17))));
  });
  return chart;
}

// A range of accuracies around values that charts side by side share.
function rangeOf(values) {
  const low = Math.floor(Math.max(0, Math.min(...values) - 3) / 5) * 5;
  const high = Math.ceil(Math.min(100, Math.max(...values) + 2) / 5) * 5;
  return [low, Math.max(high, low + 10)];
}
