// Controls that several plays share.

import { h, toast } from "./dom.js";

/** A slider for the temperature T = 1/β: from the model itself to twelve times as hot. */
export function temperature(onchange, top = 12) {
  const out = h("output", {}, "1");
  const slider = h("input", { type: "range", min: 0, max: 100, step: 1, value: 0, "aria-label": "Temperature" });
  const value = () => Math.exp((Number(slider.value) / 100) * Math.log(top));
  slider.addEventListener("input", () => {
    out.textContent = value().toFixed(value() < 10 ? 2 : 1).replace(/\.?0+$/, "");
    slider.setAttribute("aria-valuetext", `temperature ${out.textContent}`);
    onchange?.();
  });
  return { element: h("label", { class: "field" }, h("span", {}, "Temperature T ", out), slider), beta: () => 1 / value() };
}

/** Run a request with only the newest one waiting: what is drawn meanwhile is sent when the last has come back. */
export function newest(send) {
  let busy = false, next = null;
  const go = async (value) => {
    busy = true;
    try { await send(value); } catch (error) { if (error.name !== "AbortError") toast(error.message, true); }
    busy = false;
    if (next !== null) { const value = next; next = null; go(value); }
  };
  return (value) => { if (busy) next = value; else go(value); };
}

/** A button that asks the server, and says what went wrong. */
export function action(text, f, props = {}) {
  return h("button", { ...props, onclick: async () => { try { await f(); } catch (error) { toast(error.message, true); } } }, text);
}

/** Buttons that choose with what a sheet is drawn on. */
export function toolButtons(sheet, tools) {
  const buttons = tools.map(([tool, text]) => h("button", { "data-tool": tool, "aria-pressed": String(tool === sheet.tool), onclick: () => {
    sheet.tool = tool;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.tool === tool));
  } }, text));
  return buttons;
}
