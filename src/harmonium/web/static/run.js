// One run: what it learns, live; what it can be played with; its settings.

import { follow, get, post } from "./api.js";
import { empty, fill, h, minus, toast } from "./dom.js";
import { panelChart, panelsOf } from "./curves.js";
import { failed, line } from "./main.js";
import { address, chip, progress } from "./runs.js";
import { Looks } from "./looks.js";
import { showPlays } from "./play.js";

const TABS = { "": "Watch", play: "Play", settings: "Settings" };

export async function show(place, [name, tab = ""], ends) {
  document.title = `${name} · Harmonium`;
  const words = await get("words");
  const state = h("div", { class: "state" });
  const tools = h("div", { class: "tools" });
  const notes = h("div", {});
  const view = h("div", {});
  const tabs = h("nav", { class: "tabs", "aria-label": "Views of the run" }, Object.entries(TABS).map(([key, text]) =>
    h("a", { href: address(name, key), "aria-current": key === tab ? "page" : null }, text)));
  fill(place, h("div", { class: "heading" }, h("h1", {}, name), state, tools), notes, tabs, view);
  const shown = { "": watchView, play: playView, settings: settingsView }[tab];
  if (!shown) return failed(view, new Error("There is no such view of a run."));
  const part = shown(view, name, words, ends);
  let records = [];
  let rate = null;
  let failure = "";
  ends.add(follow({ run: name }, {
    line: (how, error) => { line(how, error); if (how === "refused") failed(place, error); },
    reset: () => { records = []; part.records?.(records); },
    epochs: (more) => {
      const fresh = more.filter(Boolean);
      records.push(...fresh);
      rate = pace(rate, records);
      part.records?.(records);
      messages(notes, records, failure);
    },
    state: async (row) => {
      fill(state, chip(row.status), row.error ? "" : progress(row), h("span", { class: "soft left" }, left(row, rate)));
      fill(tools, ...buttons(row));
      if (row.error) fill(notes, h("p", { class: "notice bad" }, `This run cannot be read: ${row.error}`));
      part.state?.(row);
      place.dataset.status = row.status;
      place.dataset.ready = "true";
      if (row.status === "stopped" || row.status === "finished") {
        const found = await get("run", { run: name }).catch(() => null);
        failure = found?.failure ?? "";
        if (!row.error) messages(notes, records, failure);
      }
    },
    gone: () => {
      fill(place, empty("This run is gone", `The folder of ${name} was deleted or moved.`, h("p", {}, h("a", { href: "#/" }, "Back to the runs"))));
      ends.close();
    },
  }));
}

function pace(before, records) {
  const now = { at: performance.now(), epoch: records.at(-1)?.epoch ?? 0 };
  if (!before || now.epoch < before.first.epoch) return { first: now, now };
  return { ...before, now };
}

function left(row, rate) {
  if (row.status !== "training" || !rate || rate.now.epoch <= rate.first.epoch || rate.now.at - rate.first.at < 3000) return "";
  const seconds = ((row.epochs - row.n_epochs) * (rate.now.at - rate.first.at)) / 1000 / (rate.now.epoch - rate.first.epoch);
  return seconds < 90 ? `about ${Math.ceil(seconds)} s left` : seconds < 5400 ? `about ${Math.round(seconds / 60)} min left` : `about ${(seconds / 3600).toFixed(1)} h left`;
}

function buttons(row) {
  const act = (what) => async (event) => {
    event.target.disabled = true;
    try { toast((await post(what, { run: row.name })).message); } catch (error) { toast(error.message, true); event.target.disabled = false; }
  };
  if (row.status === "training") return [h("button", { onclick: act("stop") }, "Stop")];
  if (row.status === "stopping") return [h("button", { disabled: true }, "Stopping …")];
  if (row.status === "stopped") return [h("button", { class: "primary", onclick: act("resume") }, "Resume")];
  return [];
}

function messages(place, records, failure) {
  const found = records.flatMap((record) => (record.messages ?? []).map((text) => [record.epoch, text]));
  fill(place,
    failure ? h("p", { class: "notice bad" }, `The resume failed: ${failure}`) : "",
    found.length ? h("div", { class: "notice", role: "note", "aria-label": "Health messages" }, h("strong", {}, "What looks wrong"),
      h("ul", {}, found.slice(-5).map(([epoch, text]) => h("li", {}, text, h("span", { class: "soft" }, ` (epoch ${epoch})`))))) : "");
}

function watchView(place, name, words, ends) {
  const scores = h("div", {});
  const grid = h("div", { class: "grid" });
  const nothing = h("div", {}, empty("Nothing measured yet", "The first curves appear at the end of the first epoch."));
  const looks = new Looks(name, ends);
  const curves = h("section", { "aria-label": "Learning curves" }, nothing, grid);
  fill(place, h("div", { class: "stack" }, scores, looks.element, curves));
  let records = [];
  let charts = [];
  let known = "";
  let waiting = false;
  const draw = () => {
    waiting = false;
    if (ends.over) return;
    const panels = panelsOf(words, records);
    if (JSON.stringify(panels) !== known) {
      known = JSON.stringify(panels);
      charts = panels.map((panel) => panelChart(ends, words, panel, () => records));
      fill(grid, charts.map((chart) => chart.element));
    }
    nothing.hidden = panels.length > 0;
    charts.forEach((chart) => chart.draw());
  };
  return {
    records: (all) => {
      records = all;
      if (!waiting) { waiting = true; requestAnimationFrame(draw); }
    },
    state: async (row) => {
      looks.refresh(row);
      if (!row.epochs) nothing.replaceChildren(); // nothing is learned in epochs: there will be no curves
      if (row.status !== "finished" && !row.score) return fill(scores);
      const found = await get("run", { run: name }).catch(() => null);
      if (found?.lines?.length) {
        fill(scores, h("section", { class: "card", "aria-label": "Scores" }, h("h2", {}, "How well it does"),
          h("ul", { class: "lines" }, found.lines.map((text) => h("li", {}, minus(text.trim()))))));
      }
    },
  };
}

function playView(place, name, words, ends) {
  fill(place, h("p", { class: "soft" }, "Opening the model …"));
  let opened = false;
  let version = "";
  let api = null;
  return {
    state: async (row) => {
      if (row.model_version !== version) { version = row.model_version; api?.updated?.(); }
      if (opened || !row.model_version) {
        if (!opened) fill(place, empty("No model yet", "There is something to play with after the first checkpoint, a second or more into the training."));
        return;
      }
      opened = true;
      try { api = await showPlays(place, name, ends); } catch (error) { opened = false; if (!ends.over) fill(place, empty("This model cannot be played with", error.message)); }
    },
  };
}

function settingsView(place, name) {
  get("run", { run: name }).then((found) => {
    if (!found.settings) return fill(place, empty("The settings cannot be read", found.row?.error ?? ""));
    fill(place, h("p", { class: "soft" }, found.summary), h("div", { class: "settings" }, Object.entries(found.settings).map(([section, values]) =>
      h("div", { class: "card" }, h("table", {}, h("caption", {}, section), h("tbody", {}, Object.entries(values).map(([key, value]) =>
        h("tr", {}, h("th", { scope: "row" }, key), h("td", {}, told(value))))))))));
  }).catch((error) => failed(place, error));
  return {};
}

/** A setting in words: what is empty is a dash. */
function told(value) {
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return ["", "[]", "{}", "null"].includes(text) ? "–" : text;
}
