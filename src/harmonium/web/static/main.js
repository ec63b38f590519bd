// The views by their addresses, one at a time.

import { Refused, takeToken } from "./api.js";
import { Ends, empty, fill, h } from "./dom.js";

const VIEWS = {
  "": () => import("./runs.js"),
  run: () => import("./run.js"),
  compare: () => import("./compare.js"),
  tour: () => import("./tour.js"),
};

let ends = new Ends();

/** Say how the line to the server is. */
export function line(state, error) {
  const place = document.getElementById("line");
  const text = { open: "live", broken: "reconnecting …", refused: "not connected" }[state] ?? "";
  if (place.textContent !== text) place.textContent = text;
  place.className = `line ${state}`;
  place.title = error?.message ?? "";
}

/** Show what went wrong, in place of a view. */
export function failed(place, error) {
  const title = error instanceof Refused
    ? { 0: "The server does not answer", 401: "This page needs its link", 404: "There is nothing here" }[error.status] ?? "This did not work"
    : "Something went wrong on this page";
  const more = error.status === 401
    ? h("p", {}, "The link that ", h("code", {}, "harmonium serve"), " printed has the key in it. After a restart there is a new one.")
    : h("p", {}, h("a", { href: "#/" }, "Back to the runs"));
  fill(place, empty(title, error.message, more));
}

async function show() {
  takeToken();
  ends.close();
  ends = new Ends();
  const mine = ends;
  const main = document.getElementById("main");
  const [path] = location.hash.slice(1).split("?");
  const [, name = "", ...rest] = path.split("/").map(decodeURIComponent);
  for (const link of document.querySelectorAll("[data-nav]")) {
    const here = link.dataset.nav === (name === "tour" ? "tour" : "runs");
    if (here) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  const view = VIEWS[name];
  try {
    if (!view) throw new Refused(404, "There is no such page.");
    const place = h("div", { class: "view" });
    fill(main, place);
    const { show: open } = await view();
    if (!mine.over) await open(place, rest, mine);
  } catch (error) {
    if (!mine.over && error.name !== "AbortError") failed(main, error);
  }
}

addEventListener("hashchange", () => {
  if (location.hash === "#main") return;
  show().then(() => { document.getElementById("main").focus({ preventScroll: true }); scrollTo(0, 0); });
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
show();
