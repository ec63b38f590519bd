// A row of a table: fill in some cells, see the others and the score.

import { fill, h, short } from "./dom.js";
import { newest } from "./controls.js";

export function open(opening, move) {
  const cells = {};
  const guesses = new Map();
  const inputs = new Map();
  const score = h("div", {});
  const messages = h("p", { class: "warn" });
  const ask = newest(async () => {
    const seen = await move({ cells });
    for (const column of opening.columns) fill(guesses.get(column.name), guess(column, seen.filled[column.name]));
    messages.textContent = seen.messages.join(" ");
    fill(score, told(seen));
    element.dataset.moves = String(Number(element.dataset.moves ?? 0) + 1);
  });
  const set = (name, value) => { if (value === null || value === "") delete cells[name]; else cells[name] = value; ask(); };
  const input = (column) => {
    const label = { "aria-label": column.name };
    let made;
    if (column.levels.length) {
      made = h("select", { ...label, onchange: (event) => set(column.name, event.target.value === "" ? null : column.levels[Number(event.target.value)]) },
        h("option", { value: "" }, "unknown"), column.levels.map((level, i) => h("option", { value: i }, String(level))));
    } else if (column.type === "date") made = h("input", { type: "date", ...label, onchange: (event) => set(column.name, event.target.value) });
    else made = h("input", { type: "number", step: "any", placeholder: `${short(column.low)} to ${short(column.high)}`, ...label, oninput: (event) => set(column.name, event.target.value === "" ? null : Number(event.target.value)) });
    inputs.set(column.name, made);
    return made;
  };
  const put = (row) => {
    for (const column of opening.columns) {
      const value = row[column.name];
      const place = inputs.get(column.name);
      if (value === undefined) { delete cells[column.name]; place.value = ""; continue; }
      cells[column.name] = value;
      place.value = column.levels.length ? String(column.levels.indexOf(value)) : String(value).slice(0, column.type === "date" ? 10 : 99);
    }
    ask();
  };
  const table = h("table", { class: "cells filled" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "column"), h("th", { scope: "col" }, "your value"), h("th", { scope: "col" }, "what the model expects"))),
    h("tbody", {}, opening.columns.map((column) => {
      guesses.set(column.name, h("td", { class: "guess" }));
      return h("tr", {}, h("th", { scope: "row" }, column.name), h("td", {}, input(column)), guesses.get(column.name));
    })));
  const element = h("div", { class: "bench wide-left" },
    h("div", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "A row"), h("div", { class: "tools-row" }, h("button", { onclick: () => put(opening.typical) }, "A typical row"), h("button", { onclick: () => put({}) }, "Empty"))), table, messages),
    h("section", { class: "card", "aria-live": "polite" }, h("h2", {}, "Its score"), score));
  ask();
  return { element };
}

function guess(column, cell) {
  if (!cell) return "";
  if (cell.probability !== null) return [h("b", {}, String(cell.value)), ` with probability ${cell.probability.toFixed(2)}`];
  const number = (x) => (typeof x === "number" ? short(x) : String(x).slice(0, 10));
  return [h("b", {}, number(cell.value)), ` between ${number(cell.low)} and ${number(cell.high)}`];
}

function told(seen) {
  if (seen.log_likelihood === undefined) return h("p", { class: "soft" }, "Give a value to see how probable it is. What you leave unknown is filled in: a mean with the middle nine tenths, or the most probable level.");
  const odd = seen.p_value < 0.01 ? "Very odd" : seen.p_value < 0.05 ? "Odd" : "Nothing unusual";
  return [
    h("p", { class: "big" }, odd),
    h("p", {}, `As odd or odder: ${(100 * seen.p_value).toFixed(1)} % of the model's own rows with the same cells known (p = ${seen.p_value.toFixed(3)}).`),
    h("p", {}, `Log-likelihood of the known cells: ${short(seen.log_likelihood)} nats.`),
    seen.because.length ? h("div", {}, h("h2", {}, "What makes it so"), h("ul", {}, seen.because.map(([name, nats]) => h("li", {}, `${name}: ${short(nats)} nats more than usual, given the rest of the row`)))) : "",
  ];
}
