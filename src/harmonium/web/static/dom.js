// Elements in one call, and the few words that every view needs.

/** Make an element: h("button", {class: "quiet", onclick: f}, "Stop"). Text is text: nothing is parsed. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replace what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A number with as many digits as tell something. */
export function short(x) {
  if (x === null || x === undefined) return "–";
  const size = Math.abs(x);
  if (size < 1e-12) return "0";
  if (Number.isInteger(x) && size < 1e6) return x.toLocaleString("en").replace("-", "−");
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return x.toExponential(2).replace("-", "−");
  return x.toFixed(size >= 100 ? 1 : size >= 1 ? 2 : 4).replace("-", "−");
}

export function share(p) {
  return `${(100 * p).toFixed(p > 0.0995 ? 0 : 1)} %`;
}

/** A sentence with true minus signs. */
export function minus(text) {
  return text.replace(/(^|[\s([])-(?=\d)/g, "$1−");
}

/** Seconds since, in words. */
export function ago(seconds) {
  const s = Math.max(0, Date.now() / 1000 - seconds);
  if (s < 5) return "now";
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) if (s >= size) return `${Math.floor(s / size)} ${unit} ago`;
  return `${Math.floor(s)} s ago`;
}

let timer;
/** Say something that passes. */
export function toast(text, isError = false) {
  const place = document.getElementById("toast");
  place.textContent = text;
  place.className = `shown${isError ? " error" : ""}`;
  clearTimeout(timer);
  timer = setTimeout(() => { place.className = ""; }, isError ? 8000 : 4000);
}

/** A panel that says why there is nothing, and what to do. */
export function empty(title, text, ...more) {
  return h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, text), ...more);
}

export const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** What a view does at its end: stop timers, close streams. */
export class Ends {
  constructor() { this.list = []; this.over = false; }
  add(end) { if (this.over) end(); else this.list.push(end); return end; }
  every(ms, f) { const t = setInterval(f, ms); this.add(() => clearInterval(t)); return t; }
  close() { this.over = true; for (const end of this.list.splice(0)) end(); }
}

/** Run a function again and again, each time after the last has ended; at most `rate` times a second. */
export function loop(ends, rate, f) {
  let on = false;
  const step = async () => {
    while (on && !ends.over) {
      const start = performance.now();
      if (!document.hidden) { if ((await f()) === false) { on = false; break; } }
      await new Promise((done) => setTimeout(done, Math.max(10, 1000 / rate - (performance.now() - start))));
    }
    control.onchange?.(on);
  };
  const control = {
    get on() { return on; },
    start() { if (!on) { on = true; control.onchange?.(true); step(); } },
    stop() { on = false; control.onchange?.(false); },
    toggle() { if (on) control.stop(); else control.start(); },
  };
  ends.add(() => { on = false; });
  return control;
}

/** The button of a loop. */
export function runButton(control, label = "Run") {
  const button = h("button", { class: "primary", onclick: () => control.toggle(), "aria-pressed": "false" }, label);
  const before = control.onchange;
  control.onchange = (on) => {
    before?.(on);
    button.textContent = on ? "Pause" : label;
    button.setAttribute("aria-pressed", String(on));
  };
  return button;
}
