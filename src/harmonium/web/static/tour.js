// The guided tour: eight steps from energy to likelihood, each a thing to do and a thing to see.

import { newSession, post } from "./api.js";
import { h, fill, toast } from "./dom.js";
import { STEPS } from "./tour-steps.js";

const session = newSession();

export async function show(place, [at = "1"], ends) {
  const i = Math.min(STEPS.length, Math.max(1, Number(at) || 1)) - 1;
  const step = STEPS[i];
  document.title = `${i + 1}. ${step.title} · Tour · Harmonium`;
  const move = (values) => post("tour", { session, move: values });
  const stage = h("div", { class: "stage" });
  const links = h("nav", { class: "steps", "aria-label": "Steps of the tour" }, h("ol", {}, STEPS.map((one, k) =>
    h("li", {}, h("a", { href: `#/tour/${k + 1}`, "aria-current": k === i ? "step" : null }, h("span", { class: "nth" }, String(k + 1)), one.title)))));
  const turn = h("div", { class: "turn" },
    i > 0 ? h("a", { class: "button", href: `#/tour/${i}` }, "← ", STEPS[i - 1].title) : h("span", {}),
    i + 1 < STEPS.length ? h("a", { class: "button primary", href: `#/tour/${i + 2}` }, STEPS[i + 1].title, " →") : h("a", { class: "button primary", href: "#/" }, "To the runs →"));
  fill(place, h("div", { class: "tour" }, links, h("article", {},
    h("p", { class: "soft" }, `Step ${i + 1} of ${STEPS.length}`), h("h1", {}, step.title), step.text.map((text) => h("p", {}, text)),
    step.formula ? h("p", { class: "formula" }, step.formula) : "",
    h("p", { class: "todo" }, h("strong", {}, "To do: "), step.todo), stage, turn)));
  try { await step.open(stage, move, ends); } catch (error) { if (!ends.over) toast(error.message, true); }
  place.dataset.ready = "true";
}
