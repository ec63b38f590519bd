// The table of runs, live.

import { follow } from "./api.js";
import { ago, empty, fill, h, minus } from "./dom.js";
import { failed, line } from "./main.js";

export const WORDS = {
  training: "training", stopping: "stopping", evaluating: "evaluating", finished: "finished", stopped: "stopped", broken: "cannot be read",
};

export function chip(status) {
  return h("span", { class: `chip ${status}` }, WORDS[status] ?? status);
}

export function progress(row) {
  if (!row.epochs) return "";
  const of = Math.max(1, row.epochs);
  return h("div", { class: "progress" },
    h("progress", { max: of, value: Math.min(of, row.n_epochs), "aria-label": `epochs of ${row.name}` }),
    h("span", { class: "numbers" }, `${row.n_epochs}/${row.epochs}`));
}

export const address = (name, tab = "") => `#/run/${encodeURIComponent(name)}${tab ? `/${tab}` : ""}`;

const SORTS = {
  changed: ["last changed", (a, b) => b.changed - a.changed],
  name: ["name", (a, b) => a.name.localeCompare(b.name, "en", { numeric: true })],
  status: ["status", (a, b) => Object.keys(WORDS).indexOf(a.status) - Object.keys(WORDS).indexOf(b.status) || b.changed - a.changed],
};

const chosen = new Set();

export async function show(place, _rest, ends) {
  document.title = "Runs · Harmonium";
  const rows = new Map();
  const filter = h("input", { type: "search", placeholder: "Filter …", "aria-label": "Filter the runs", oninput: () => draw() });
  const sort = h("select", { "aria-label": "Order", onchange: () => draw() },
    Object.entries(SORTS).map(([key, [text]]) => h("option", { value: key }, `by ${text}`)));
  const compare = h("a", { class: "button primary", href: "#/", hidden: true }, "Compare");
  const body = h("div", {});
  const counted = h("p", { class: "soft" }, "Looking for runs …");
  fill(place, h("div", { class: "heading" }, h("h1", {}, "Runs"), counted, h("div", { class: "tools" }, compare, filter, sort)), body);

  const cells = new Map();
  const line_of = (row) => {
    const box = h("input", { type: "checkbox", "aria-label": `Compare ${row.name}`, checked: chosen.has(row.name),
      onchange: (event) => { if (event.target.checked) chosen.add(row.name); else chosen.delete(row.name); tools(); } });
    return h("tr", { "data-run": row.name },
      h("td", { class: "pick" }, box),
      h("th", { scope: "row" }, h("a", { href: address(row.name) }, row.name)),
      h("td", { class: "what" }, row.error ? h("span", { class: "trouble" }, row.error) : `${row.data}, ${row.model}, ${row.size}`),
      h("td", { class: "done" }, row.error ? "" : progress(row)),
      h("td", { class: "score" }, row.score ? score(row.score) : h("span", { class: "soft" }, "–")),
      h("td", { class: "varies soft" }, row.varies),
      h("td", { class: "when soft" }, chip(row.status), h("span", { class: "ago" }, ago(row.changed))));
  };
  const tools = () => {
    for (const name of chosen) if (!rows.has(name)) chosen.delete(name);
    compare.hidden = chosen.size < 2;
    compare.textContent = `Compare ${chosen.size}`;
    compare.href = `#/compare/${[...chosen].map(encodeURIComponent).join("/")}`;
  };
  const table = h("table", { class: "runs listed" },
    h("thead", {}, h("tr", {}, h("td", {}), ["run", "data, model, size", "epochs", "score", "what varies", "status"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}));
  const draw = () => {
    const wanted = filter.value.trim().toLowerCase();
    const shown = [...rows.values()].filter((row) => !wanted || [row.name, row.data, row.model, row.varies, row.status].join(" ").toLowerCase().includes(wanted));
    shown.sort(SORTS[sort.value][1]);
    const n = [...rows.values()].filter((row) => row.status === "training").length;
    counted.textContent = rows.size ? `${rows.size} in this folder${n ? `, ${n} training` : ""}` : "";
    tools();
    if (!rows.size) return fill(body, nothing());
    if (!shown.length) return fill(body, empty("No run fits", `None of the ${rows.size} runs holds “${filter.value}”.`));
    fill(table.tBodies[0], shown.map((row) => cells.get(row.name)));
    if (table.parentNode !== body) fill(body, table);
  };
  const put = (row) => {
    const before = rows.get(row.name);
    rows.set(row.name, row);
    if (!before || JSON.stringify(before) !== JSON.stringify(row)) {
      const made = line_of(row);
      const old = cells.get(row.name);
      const held = old?.contains(document.activeElement) ? document.activeElement.type : null;
      if (old?.isConnected) old.replaceWith(made);
      cells.set(row.name, made);
      if (held) made.querySelector(held === "checkbox" ? "input" : "a")?.focus();
    }
  };
  ends.add(follow({}, {
    line: (state, error) => { line(state, error); if (state === "refused") failed(place, error); },
    runs: (found) => {
      rows.clear();
      cells.clear();
      found.forEach(put);
      draw();
      place.dataset.ready = "true";
    },
    changes: ({ rows: changed, gone }) => {
      changed.forEach(put);
      for (const name of gone) { rows.delete(name); cells.delete(name); }
      draw();
    },
  }));
  ends.every(10000, () => {
    for (const [name, row] of rows) { const place = cells.get(name)?.querySelector(".ago"); if (place) place.textContent = ago(row.changed); }
  });
}

function score(text) {
  return h("span", { class: /NO BETTER|WORSE/i.test(text) ? "warn" : "" }, minus(text.replace(/^log-likelihood /, "")));
}

function nothing() {
  return empty("No runs yet", "Train a first model and it appears here by itself, live while it learns.",
    h("pre", {}, "harmonium demo\nharmonium train --data moons --model gaussian-rbm\nharmonium train --data digits --model class-rbm"),
    h("p", {}, "Or begin with the ", h("a", { href: "#/tour" }, "guided tour"), ": eight steps from energy to likelihood, on data that are built in."));
}
