// A shelf of rated items: change what a user gave, and see what is expected of the rest.

import { fill, h, short } from "./dom.js";
import { newest } from "./controls.js";

export function open(opening, move) {
  let user = 0, changes = {};
  const numbers = new Map(opening.items.map((name, i) => [name, i]));
  const [rated, best] = [h("tbody", {}), h("ol", { class: "shelf" })];
  const counted = h("span", { class: "soft" });
  const ask = newest(async () => {
    const seen = await move({ user, ratings: changes });
    counted.textContent = `${short(seen.rated.length)} rated`;
    const own = (one) => (one[0] in changes ? 0 : 1);
    seen.rated.sort((a, b) => own(a) - own(b) || b[1] - a[1]);
    fill(rated, seen.rated.map(([i, level, expected]) => h("tr", { class: i in changes ? "changed" : "" }, h("th", { scope: "row" }, opening.items[i]),
      h("td", {}, levels(`Rating of ${opening.items[i]}`, level, (value) => rate(i, value))), h("td", { class: "numbers" }, expected.toFixed(1)))));
    fill(best, seen.best.map(([i, expected, law]) => h("li", {}, h("span", {}, opening.items[i]), h("b", { class: "numbers" }, expected.toFixed(2)),
      h("meter", { class: "bar", min: opening.levels[0], max: opening.levels.at(-1), value: expected, "aria-label": `expected rating of ${opening.items[i]}` }),
      h("span", { class: "soft" }, `${opening.levels.at(-1)} with probability ${law.at(-1).toFixed(2)}`))));
    element.dataset.moves = String(Number(element.dataset.moves ?? 0) + 1);
  });
  const rate = (i, value) => { changes[i] = value; ask(); };
  const levels = (label, value, onpick) => {
    const found = h("select", { "aria-label": label, onchange: () => onpick(found.value === "" ? null : Number(found.value)) },
      h("option", { value: "" }, "none"), opening.levels.map((level) => h("option", { value: level }, String(level))));
    found.value = value === null ? "" : String(value);
    return found;
  };
  const who = h("input", { type: "number", min: 1, max: opening.users, value: 1, "aria-label": "User", onchange: () => {
    user = Math.min(opening.users, Math.max(1, Math.round(Number(who.value)) || 1)) - 1;
    who.value = user + 1;
    changes = {};
    ask();
  } });
  const known = h("datalist", { id: "items" }, opening.items.map((name) => h("option", { value: name })));
  const item = h("input", { type: "text", list: "items", placeholder: "an item …", "aria-label": "Item to rate" });
  const more = levels("Its rating", null, (value) => {
    const i = numbers.get(item.value);
    if (i === undefined || value === null) return;
    rate(i, value);
    item.value = more.value = "";
  });
  const element = h("div", { class: "bench halves" },
    h("section", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "Ratings of user"), who, counted),
      h("div", { class: "tools-row" }, item, known, more, h("button", { onclick: () => { changes = {}; ask(); } }, "Undo changes")),
      h("p", { class: "caption" }, "Rate what this user did not, or change what is there: the lists follow. The run stays as it is."),
      h("div", { class: "tall", tabindex: "0", role: "region", "aria-label": "Ratings of the user" },
        h("table", { class: "cells" }, h("thead", {}, h("tr", {}, ["item", "rating", "expected from the others"].map((text) => h("th", { scope: "col" }, text)))), rated))),
    h("section", { class: "card", "aria-live": "polite" }, h("h2", {}, "Expected to be liked best"), best, h("p", { class: "caption" }, "Among what this user has not rated, by the expected rating. Exact, given all other ratings.")));
  ask();
  return { element };
}
