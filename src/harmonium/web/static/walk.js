// A walk between two samples, through the hidden layer.

import { h, loop, runButton, short } from "./dom.js";
import { newest } from "./controls.js";
import { bytes, canvas, color, imageData, mark, onScheme, strip } from "./pictures.js";

export function open(opening, move, ends) {
  const chosen = { from: 0, to: Math.min(opening.examples.n - 1, 5) };
  let seen = null, frame = 0, way = 1;
  const picture = canvas("the walk", "film");
  const hills = h("canvas", { class: "gauge hills", role: "img", "aria-label": "free energy along the walk" });
  const slider = h("input", { type: "range", min: 0, max: 24, value: 0, "aria-label": "Place on the way", oninput: () => { run.stop(); frame = Number(slider.value); draw(); } });
  const said = h("span", { class: "soft numbers" });
  const draw = () => {
    if (!seen) return;
    const { shape, pixels } = seen.images;
    const size = shape.reduce((a, b) => a * b);
    picture.width = shape[2];
    picture.height = shape[1];
    picture.getContext("2d").putImageData(imageData(bytes(pixels), shape, frame * size), 0, 0);
    slider.value = frame;
    if (seen.free_energies) { said.textContent = `F = ${short(seen.free_energies[frame])}`; drawHills(); }
  };
  const drawHills = () => {
    const values = seen.free_energies;
    const [wide, tall] = [hills.clientWidth || 300, 64];
    hills.width = 2 * wide;
    hills.height = 2 * tall;
    const c = hills.getContext("2d");
    c.scale(2, 2);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const at = (i) => [8 + (i / (values.length - 1)) * (wide - 16), tall - 8 - ((values[i] - low) / (high - low || 1)) * (tall - 20)];
    c.strokeStyle = color("accent");
    c.lineWidth = 2;
    c.beginPath();
    values.forEach((_, i) => c.lineTo(...at(i)));
    c.stroke();
    c.fillStyle = color("ink");
    c.beginPath();
    c.arc(...at(frame), 5, 0, 7);
    c.fill();
    hills.setAttribute("aria-label", `free energy along the walk: ${short(values[0])} at the start, at most ${short(high)}, ${short(values.at(-1))} at the end`);
  };
  const ask = newest(async () => { seen = await move({ ...chosen }); frame = 0; draw(); element.dataset.moves = String(Number(element.dataset.moves ?? 0) + 1); });
  const run = loop(ends, 10, () => {
    if (!seen) return;
    if (frame + way > 24 || frame + way < 0) way = -way;
    frame += way;
    draw();
  });
  const pick = (name) => {
    const found = strip(opening.examples, name === "from" ? "start" : "end", (i) => { chosen[name] = i; mark(found, i); ask(); }, opening.labels);
    mark(found, chosen[name]);
    return found;
  };
  const element = h("div", { class: "bench" },
    h("figure", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "The walk"), said, runButton(run, "Walk")), picture, slider, hills,
      h("figcaption", {}, "Hidden means move in a line from one sample to the other; shown is what they expect of the pixels. Below: the free energy on the way.")),
    h("div", { class: "stack" }, h("div", { class: "card" }, h("h2", {}, "From"), pick("from")), h("div", { class: "card" }, h("h2", {}, "To"), pick("to"))));
  onScheme(ends, draw);
  ask();
  return { element, pause: () => run.stop(), updated: () => ask(), shown: draw };
}

