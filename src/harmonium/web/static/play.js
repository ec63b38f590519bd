// The plays that suit a model, one at a time.

import { get, newSession, post } from "./api.js";
import { empty, fill, h } from "./dom.js";

const PLAYS = {
  drawing: ["Draw", () => import("./drawing.js")],
  chains: ["Chains", () => import("./chains.js")],
  samples: ["Samples", () => import("./chains.js")],
  walk: ["Walk", () => import("./walk.js")],
  plane: ["Plane", () => import("./plane-play.js")],
  memory: ["Memory", () => import("./memory.js")],
  row: ["Fill in a row", () => import("./row.js")],
  sequel: ["Film", () => import("./sequel.js")],
  analogy: ["Analogy", () => import("./analogy.js")],
  shelf: ["Ratings", () => import("./shelf.js")],
};

/** Open the plays of a run; returns what wants to know of a new checkpoint. */
export async function showPlays(place, name, ends) {
  const { plays } = await get("plays", { run: name });
  const known = plays.filter((play) => PLAYS[play.name]).sort((a, b) => Object.keys(PLAYS).indexOf(a.name) - Object.keys(PLAYS).indexOf(b.name));
  if (ends.over) return {};
  if (!known.length) {
    fill(place, empty("Nothing to play with yet", "For this kind of model the page has curves and scores; its pictures are in report.html."));
    return {};
  }
  const stage = h("div", {});
  const opened = new Map();
  const api = { updated: () => opened.get(now)?.updated?.() };
  let now = "";
  const pills = h("div", { class: "pills", role: "group", "aria-label": "Plays" });
  const choose = async (play) => {
    opened.get(now)?.pause?.();
    now = play.name;
    for (const pill of pills.children) pill.setAttribute("aria-pressed", String(pill.dataset.play === now));
    if (!opened.has(now)) {
      const session = newSession();
      const { open } = await PLAYS[now][1]();
      const move = (values) => post("play", { run: name, play: play.name, session, move: values });
      opened.set(play.name, open(play.opening, move, ends, name));
    }
    fill(stage, opened.get(play.name).element);
    opened.get(play.name).shown?.();
    stage.dataset.play = play.name;
  };
  fill(pills, known.map((play) => h("button", { "data-play": play.name, "aria-pressed": "false", onclick: () => choose(play) }, PLAYS[play.name][0])));
  fill(place, known.length > 1 ? pills : "", stage);
  await choose(known[0]);
  return api;
}
