// The test images that one of two methods gets right and the other wrong, at the end of the stream.

const MOST_SHOWN = 24; // images of each kind
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// The domain and the class of every test image of a sheet, once.
const imagesOf = (sheet) => {
  if (!sheet.images) {
    const labels = [];
    for (let at = 0; at < sheet.labels.length; at += 2) for (let k = 0; k < sheet.labels[at + 1]; k += 1) labels.push(sheet.labels[at]);
    const images = sheet.tests.flatMap((count, domain) => Array.from({ length: count }, (_, place) => ({ domain, place })));
    images.forEach((image, i) => { image.label = labels[i]; });
    const { images: pictured = [], ids = [] } = sheet.thumbnails || {};
    pictured.forEach((position, k) => Object.assign(images[position], { picture: k, id: ids[k] }));
    sheet.images = images;
  }
  return sheet.images;
};

// Images by who is right: [neither, only B, only A, both].
function compareImages(sheet, a, b) {
  const [ours, theirs] = [bytesOf(a.right), bytesOf(b.right)];
  const bit = (bytes, i) => (bytes[i >> 3] >> (7 - (i & 7))) & 1;
  const found = [[], [], [], []];
  imagesOf(sheet).forEach((image, i) => found[2 * bit(ours, i) + bit(theirs, i)].push(image));
  return found;
}

function thumbnail(sheet, image) {
  const { file, side, columns, images } = sheet.thumbnails;
  const picture = el("span", { class: "thumbnail" });
  picture.style.backgroundImage = `url("${encodeURI(file)}")`;
  picture.style.backgroundSize = `${columns * 100}% ${Math.ceil(images.length / columns) * 100}%`;
  const share = (at, all) => (all > 1 ? (100 * at) / (all - 1) : 0);
  picture.style.backgroundPosition = `${share(image.picture % columns, columns)}% ${share(Math.floor(image.picture / columns), Math.ceil(images.length / columns))}%`;
  picture.style.width = picture.style.height = `${side}px`;
  return picture;
}

const imageName = (sheet, image) => image.id || `${sheet.domains[image.domain]}, test image ${image.place + 1}`;

// At most so many of a list, from all parts of it.
const spreadOver = (list, most) => (list.length <= most ? list : Array.from({ length: most }, (_, k) => list[Math.floor((k * list.length) / most)]));

function imageList(sheet, title, images) {
  const pictured = images.filter((image) => image.id !== undefined);
  const shown = spreadOver(pictured.length ? pictured : images, MOST_SHOWN);
  return el("section", {}, el("h4", {}, `${title} (${images.length})`),
    el("ul", { class: pictured.length ? "images pictures" : "images" }, shown.map((image) => el("li", {},
      image.id !== undefined && thumbnail(sheet, image),
      el("span", {}, el("b", {}, sheet.classes[image.label]), el("small", {}, imageName(sheet, image)))))),
    shown.length < images.length && el("p", { class: "quiet" }, `${shown.length} of ${images.length} are shown here${pictured.length ? `; ${pictured.length} have a picture` : ""}.`));
}

function countTable(heads, names, key, onlyA, onlyB, most) {
  const count = (images, i) => images.filter((image) => image[key] === i).length;
  const rows = names.map((name, i) => [name, count(onlyA, i), count(onlyB, i)]);
  const shown = most ? rows.filter(([, a, b]) => a + b).sort((x, y) => y[1] + y[2] - x[1] - x[2]).slice(0, most) : rows;
  const table = wide(`differing images by ${heads}`, plainTable([heads, "only A right", "only B right", "A minus B"],
    shown.map(([name, a, b]) => [name, [String(a), "number"], [String(b), "number"], [`${a > b ? "+" : ""}${a - b}`, "number"]]), { class: "plain" },
    most && rows.length > shown.length ? `the ${shown.length} classes with the most of them` : ""));
  if (most) table.classList.add("tall");
  return table;
}

function flipsReport(sheet, a, b, shots, seed) {
  const run = (row) => row.cells[shots].runs.find((each) => String(each.seed) === String(seed));
  const [neither, onlyB, onlyA, both] = compareImages(sheet, run(a), run(b));
  const total = testImages(sheet);
  return [
    el("p", { role: "status" }, `Of ${total} test images, ${onlyA.length} are right only with A (${a.label}) and ${onlyB.length} only with B (${b.label}); `
      + `${both.length} are right with both and ${neither.length} with neither. ${shots}-shot, seed ${seed}, after the last domain.`),
    el("div", { class: "multiples aligned" },
      countTable("domain", sheet.domains, "domain", onlyA, onlyB), countTable("class", sheet.classes, "label", onlyA, onlyB, 30)),
    el("div", { class: "multiples aligned" }, imageList(sheet, "Only A is right", onlyA), imageList(sheet, "Only B is right", onlyB)),
  ];
}

// Two of the chosen rows, image by image. `state` remembers which.
function flipsPart(sheet, chosen, shots, state) {
  const known = (row) => ((row.cells[shots] || {}).runs || []).filter((run) => run.right);
  const rows = sheet.labels ? chosen.filter((row) => known(row).length) : [];
  const title = el("h3", {}, "Images on which two of them differ");
  if (rows.length < 2) {
    return el("section", { class: "flips" }, title, el("p", { class: "quiet" }, "There are no two methods here with a prediction for every test image (or there are too many images for this page)."));
  }
  const place = el("div");
  const draw = () => {
    const find = (name, other) => rows.find((row) => row.label === state[name]) || rows.find((row) => row.label !== other);
    const a = find("a", state.b);
    const b = find("b", a.label);
    const shared = known(a).map((run) => run.seed).filter((seed) => known(b).some((run) => run.seed === seed));
    if (!shared.includes(Number(state.seed))) [state.seed] = shared;
    const pick = (name) => (value) => { state[name] = value; draw(); place.querySelector(`[data-pick="${name}"] select`).focus(); };
    const box = (name, text, options, value) => {
      const label = select(text, options, value, pick(name));
      label.dataset.pick = name;
      return label;
    };
    const names = rows.map((row) => [row.label, row.label]);
    place.replaceChildren(el("div", { class: "controls" }, box("a", "A", names, a.label), box("b", "B", names, b.label),
      shared.length > 0 && box("seed", "seed", shared.map((seed) => [seed, seed]), state.seed)),
    ...(shared.length ? flipsReport(sheet, a, b, shots, state.seed) : [el("p", {}, "They have no seed in common.")]));
  };
  draw();
  return el("section", { class: "flips" }, title, place);
}
