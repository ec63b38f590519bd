// Chains that move, at any temperature, of any class.

import { h, loop, runButton, short, toast } from "./dom.js";
import { action, temperature } from "./controls.js";
import { canvas, drawGrid } from "./pictures.js";

export function open(opening, move, ends) {
  const picture = canvas("25 samples of the model");
  const steps = h("span", { class: "soft numbers" });
  const heat = temperature();
  const means = h("input", { type: "checkbox", onchange: () => step(0) });
  const label = opening?.classes ? h("select", { "aria-label": "Hold the label", onchange: () => step(0) }, h("option", { value: "" }, "any class"),
    Array.from({ length: opening.classes }, (_, i) => h("option", { value: i }, `class ${i}`))) : null;
  const step = async (n, more = {}) => {
    const seen = await move(opening?.origin === undefined ? { steps: Math.max(1, n) } : { steps: n, beta: heat.beta(), means: means.checked, ...(label?.value ? { label: Number(label.value) } : {}), ...more });
    drawGrid(picture, seen.images, 5);
    steps.textContent = seen.steps === undefined ? "" : `step ${short(seen.steps)}`;
    element.dataset.moves = String(Number(element.dataset.moves ?? 0) + 1);
  };
  const run = loop(ends, 10, async () => { try { await step(1); } catch (error) { toast(error.message, true); return false; } });
  const follows = opening?.origin !== undefined;
  const element = h("div", { class: "bench" },
    h("figure", { class: "card" }, h("div", { class: "row" }, h("h2", {}, follows ? "25 chains" : "25 samples"), steps), picture,
      h("figcaption", {}, follows ? `Independent chains from ${opening.origin}. Nothing is selected.` : "Drawn from the top of the network downwards. Nothing is selected.")),
    h("div", { class: "card" }, h("h2", {}, follows ? "Move them" : "Draw others"),
      h("div", { class: "tools-row" }, follows ? runButton(run) : "", action(follows ? "One step" : "Draw anew", () => step(follows ? 1 : 100)), follows ? action("100 steps", () => step(100)) : "", follows ? action("Start again", () => step(0, { restart: true })) : "", label),
      h("div", { class: "sliders" }, opening?.tempered ? heat.element : "", opening?.means ? h("label", { class: "row start" }, means, "Show the means of the pixels, not draws") : ""),
      h("p", { class: "caption" }, !follows ? "100 steps in the machine at the top, then once down through the layers to the pixels." : `A step ${opening.tempered ? "draws every layer once given the others. T = 1 is the model; when it is hot, chains forget what they learned and move freely; cooled again, they settle somewhere else." : "moves the pixels a little downhill in energy, with noise."}`)));
  step(follows ? 50 : 100).catch((error) => toast(error.message, true));
  return { element, pause: () => run.stop() };
}
