// An analogy: what a pair of images does to each other, done to a drawing.

import { h } from "./dom.js";
import { newest, toolButtons } from "./controls.js";
import { showHidden } from "./drawing.js";
import { base64, bytes, canvas, drawGrid, mark, strip } from "./pictures.js";
import { Sketch } from "./sketch.js";

export function open(opening, move) {
  const { shape } = opening.first;
  const size = shape.reduce((a, b) => a * b);
  let pair = 0;
  const [first, second] = [opening.first, opening.second].map((images) => bytes(images.pixels));
  const [from, to, output] = [canvas("the first image of the pair"), canvas("the second image of the pair"), canvas("the same done to your drawing")];
  const hidden = h("section", { class: "card" });
  const look = newest(async () => {
    const seen = await move({ pair, x: base64(sheet.values) });
    drawGrid(output, seen.output, 1);
    showHidden(hidden, seen.hidden);
    element.dataset.moves = String(Number(element.dataset.moves ?? 0) + 1);
  });
  const sheet = new Sketch(shape, () => look(), { masks: false });
  const choose = (i) => {
    pair = i;
    mark(pairs, i);
    drawGrid(from, { n: 1, shape, values: first.slice(i * size, (i + 1) * size) }, 1);
    drawGrid(to, { n: 1, shape, values: second.slice(i * size, (i + 1) * size) }, 1);
    look();
  };
  const pairs = strip(opening.first, "pair", choose);
  const inputs = strip(opening.first, "image", (i, values) => sheet.set(values));
  const element = h("div", { class: "bench" },
    h("div", {}, h("div", { class: "card" }, h("h2", {}, "Your drawing"), sheet.canvas,
      h("div", { class: "tools-row" }, toolButtons(sheet, [["ink", "Draw"], ["erase", "Erase"]]), h("button", { onclick: () => sheet.clear() }, "Clear"))),
    h("div", { class: "card" }, h("h2", {}, "Begin with an image"), inputs)),
    h("div", { class: "stack" },
      h("div", { class: "grid three" }, h("figure", { class: "card" }, h("h2", {}, "From this …"), from), h("figure", { class: "card" }, h("h2", {}, "… to this"), to),
        h("figure", { class: "card" }, h("h2", {}, "The same, done to yours"), output, h("figcaption", {}, "The mean of each pixel, given your drawing and the hidden units of the pair."))),
      h("div", { class: "card" }, h("h2", {}, "Which pair"), pairs, h("p", { class: "caption" }, "Held-out pairs; shown are their first images.")),
      hidden));
  sheet.set(first.slice(size, 2 * size), true);
  choose(0);
  return { element };
}
