// The energy landscape in the plane, with chains on it, while it learns too.

import { h, loop, runButton, short, toast } from "./dom.js";
import { action, temperature } from "./controls.js";
import { PlaneView } from "./plane.js";

export function open(opening, move, ends) {
  const view = new PlaneView(opening);
  const steps = h("span", { class: "soft numbers" });
  const heat = temperature();
  const data = h("input", { type: "checkbox", checked: true, onchange: () => view.draw(view.last, data.checked) });
  const step = async (n, more = {}) => {
    const seen = await move({ steps: n, n: 400, beta: heat.beta(), ...more });
    view.draw(seen, data.checked);
    steps.textContent = `step ${short(seen.steps)}`;
    element.dataset.moves = String(Number(element.dataset.moves ?? 0) + 1);
  };
  const run = loop(ends, 12, async () => { try { await step(1); } catch (error) { toast(error.message, true); return false; } });
  const element = h("div", { class: "bench wide-left" },
    h("figure", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "Energy landscape and chains"), steps), view.element,
      h("figcaption", {}, "Dark is low free energy, where the model expects data; pale lies 12 nats higher. Orange: data. White: 400 chains.")),
    h("div", { class: "card" }, h("h2", {}, "Move the chains"),
      h("div", { class: "tools-row" }, runButton(run), action("One step", () => step(1)), action("100 steps", () => step(100)), action("Start again", () => step(0, { restart: true }))),
      h("div", { class: "sliders" }, heat.element, h("label", { class: "row start" }, data, "Show the data")),
      h("p", { class: "caption" }, "The landscape follows the training: it is drawn anew with every checkpoint, and the chains go on from where they are.")));
  step(20, { landscape: true }).catch((error) => toast(error.message, true));
  return { element, pause: () => run.stop(), updated: () => step(0, { landscape: true }).catch(() => {}) };
}
