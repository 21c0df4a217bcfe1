const read = id => JSON.parse(document.getElementById(id).textContent);
const distributions = read("data-distributions"), trainings = read("data-trainings");
const SEED_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];
function node(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function paragraph(text) {
  const made = document.createElement("p");
  made.className = "small";
  made.textContent = text;
  return made;
}
function nameSeeds(words) {
  return words.flatMap((text, place) => {
    const made = document.createElement("span");
    made.className = "key";
    made.style.color = SEED_COLOURS[place % 6];
    made.textContent = text;
    return place ? [", ", made] : [made];
  });
}
function drawValues(key) {
  const found = distributions[key];
  if (!found) return key ? [paragraph("Its values over tasks are not kept here.")] : [];
  const plot = node("svg", {class: "plot", viewBox: "0 0 480 130", role: "img", "aria-label": "values over tasks"});
  const most = Math.max(...found.counts, 1), width = 440 / found.counts.length, span = found.high - found.low || 1;
  found.counts.forEach((count, place) => plot.append(node("rect", {x: 20 + place * width, y: 100 - 88 * count / most,
    width: width - 1, height: 88 * count / most, fill: "#9db4c8"})));
  Object.values(found.seeds).forEach((mean, place) => {
    const at = 20 + 440 * (Number(mean.replace("\u2212", "-")) - found.low) / span;
    plot.append(node("line", {x1: at, x2: at, y1: 6, y2: 100, stroke: SEED_COLOURS[place % 6], "stroke-width": 2}));
  });
  plot.append(node("line", {x1: 20, x2: 460, y1: 100, y2: 100, stroke: "#5b6672"}));
  plot.append(node("text", {x: 20, y: 118}, found.low), node("text", {x: 460, y: 118, "text-anchor": "end"}, found.high));
  const tasks = found.counts.reduce((sum, count) => sum + count, 0);
  const means = paragraph(tasks + " tasks; means (lines): ");
  means.append(...nameSeeds(Object.entries(found.seeds).map(([seed, mean]) => "seed " + seed + ": " + mean)));
  const said = [plot, means];
  if (found.chance) said.push(paragraph("guessing would give " + found.chance));
  return said;
}
function ticks(low, high) {
  const rough = (high - low || 1) / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(each => each * power >= rough);
  const made = [];
  for (let place = Math.ceil(low / step); place <= Math.floor(high / step); place += 1) made.push(Number((place * step).toPrecision(6)));
  return made;
}
function drawLines(figure, title, lines) {
  const points = lines.flat(), plot = node("svg", {class: "plot", viewBox: "0 0 420 240", role: "img", "aria-label": title});
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  figure.replaceChildren(plot, caption);
  if (!points.length) { caption.textContent += ": none"; return; }
  const [xs, ys] = [0, 1].map(place => points.map(point => point[place]));
  const [left, right, low, high] = [0, Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const x = value => 50 + 355 * (value - left) / (right - left || 1), y = value => 205 - 190 * (value - low) / (high - low || 1);
  for (const up of ticks(low, high)) {
    plot.append(node("line", {x1: 50, x2: 405, y1: y(up), y2: y(up), stroke: "#d9dee4"}));
    plot.append(node("text", {x: 45, y: y(up) + 4, "text-anchor": "end"}, up));
  }
  for (const across of ticks(left, right)) plot.append(node("text", {x: x(across), y: 222, "text-anchor": "middle"}, across));
  lines.forEach((line, place) => {
    const colour = SEED_COLOURS[place % 6];
    plot.append(node("polyline", {points: line.map(point => x(point[0]) + "," + y(point[1])).join(" "), fill: "none", stroke: colour, "stroke-width": 1.5}));
    if (line.length < 30) line.forEach(point => plot.append(node("circle", {cx: x(point[0]), cy: y(point[1]), r: 2.5, fill: colour})));
  });
}
const chosenTraining = document.getElementById("training-cell");
function drawTraining() {
  const courses = trainings[chosenTraining.value], words = {val_hm: "validation HM (%)", val_prototype_accuracy: "validation accuracy of prototypes (%)"};
  document.getElementById("training-seeds").replaceChildren(...nameSeeds(courses.map(course => "seed " + course.seed)));
  drawLines(document.getElementById("training-loss"), "loss over steps", courses.map(course => course.loss));
  const measure = courses[0].measure;
  drawLines(document.getElementById("training-validation"), (words[measure] || measure) + " over steps", courses.map(course => course.validation));
}
if (chosenTraining) { chosenTraining.addEventListener("change", drawTraining); drawTraining(); }
document.querySelectorAll(".differ").forEach(box => {
  const {classes, shares} = JSON.parse(box.querySelector("script").textContent), names = Object.keys(shares);
  const [first, second] = box.querySelectorAll("select"), list = box.querySelector("ol");
  [first, second].forEach(select => select.append(...names.map(name => new Option(name))));
  first.selectedIndex = names.length - 1;
  function draw() {
    const apart = classes.map((name, place) => [shares[first.value][place] - shares[second.value][place], name, place]);
    apart.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
    list.replaceChildren(...apart.slice(0, 10).map(([difference, name, place]) => {
      const item = document.createElement("li");
      const sign = difference > 0 ? "+" : difference < 0 ? "\u2212" : "";
      item.textContent = name + ": " + sign + Math.abs(difference).toFixed(1) + " (" + shares[first.value][place].toFixed(1) + " and " + shares[second.value][place].toFixed(1) + ")";
      return item;
    }));
  }
  [first, second].forEach(select => select.addEventListener("change", draw));
  draw();
});
