// A film that goes on: frames drawn given those before, beside the film as it truly went.

import { h, loop, runButton, toast } from "./dom.js";
import { action } from "./controls.js";
import { bytes, canvas, drawGrid, mark, strip } from "./pictures.js";

const N_SHOWN = 12;

export function open(opening, move, ends) {
  const { shape } = opening.starts;
  const size = shape.reduce((a, b) => a * b);
  let film = 0, frames = { drawn: [], truth: [] };
  const places = { drawn: ["Drawn by the model"], truth: ["As it truly went"] };
  for (const place of Object.values(places)) place.push(canvas(`${place[0]}: the last frame`, "film"), canvas(`${place[0]}: the last ${N_SHOWN} frames`, "reel"));
  const counted = h("span", { class: "soft numbers" });
  const over = h("p", { class: "soft" });
  const step = async (n, restart = false) => {
    const seen = await move({ film, frames: n, restart });
    if (restart) frames = { drawn: [], truth: [] };
    for (const [name, images] of [["drawn", seen.images], ["truth", seen.truth]]) {
      if (!images) continue;
      const pixels = bytes(images.pixels);
      for (let i = 0; i < images.n; i += 1) frames[name].push(pixels.slice(i * size, (i + 1) * size));
      frames[name].splice(0, frames[name].length - N_SHOWN);
      show(places[name], frames[name]);
    }
    counted.textContent = `frame ${seen.frame}`;
    over.textContent = seen.truth ? "" : "The held-out film is over; the model goes on by itself.";
    element.dataset.moves = String(Number(element.dataset.moves ?? 0) + 1);
  };
  const show = ([, last, row], all) => {
    drawGrid(last, { n: 1, shape, values: all.at(-1) }, 1);
    drawGrid(row, { n: all.length, shape, values: all.flatMap((one) => [...one]) }, N_SHOWN);
  };
  const run = loop(ends, 12, async () => { try { await step(1); } catch (error) { toast(error.message, true); return false; } });
  const again = () => step(0, true);
  const starts = strip(opening.starts, "film", (i) => { film = i; mark(starts, i); again().catch((error) => toast(error.message, true)); });
  mark(starts, 0);
  const element = h("div", { class: "stack" },
    h("div", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "What comes next"), counted, h("div", { class: "tools-row" }, runButton(run), action("One frame", () => step(1)), action("Start again", again))),
      h("p", { class: "caption" }, `The first ${opening.given} frames of a held-out film are given. Each frame after them is drawn given those before it, which were drawn themselves.`), over),
    h("div", { class: "two" }, Object.values(places).map(([title, last, row]) => h("figure", { class: "card" }, h("h2", {}, title), last, h("figcaption", {}, `Below, the last ${N_SHOWN} frames.`), row))),
    h("div", { class: "card" }, h("h2", {}, "Begin as another film"), starts));
  again().catch((error) => toast(error.message, true));
  return { element, pause: () => run.stop() };
}
