// Images on canvases: bytes in base64 from the server, one square of pixels each.

import { h } from "./dom.js";

export function bytes(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

export function base64(values) {
  let text = "";
  for (const value of values) text += String.fromCharCode(value);
  return btoa(text);
}

const GRAY = (v, out, at) => { out[at] = out[at + 1] = out[at + 2] = v; };

/** Blue below zero, white at zero, red above: told apart with any color vision. */
function signed(v, out, at) {
  const t = (v - 127.5) / 127.5;
  const end = t < 0 ? [5, 80, 160] : [178, 32, 24];
  const size = Math.abs(t) ** 0.85;
  for (let i = 0; i < 3; i += 1) out[at + i] = 250 + (end[i] - 250) * size;
}

/** From deep blue (low energy) to pale: a map of heights. */
export function height(v, out, at) {
  const stops = [[8, 29, 70], [16, 92, 150], [92, 167, 198], [190, 220, 226], [246, 246, 240]];
  const t = (v / 255) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(t));
  for (let c = 0; c < 3; c += 1) out[at + c] = stops[i][c] + (stops[i + 1][c] - stops[i][c]) * (t - i);
}

const SHADES = { gray: GRAY, signed, height };

/** One image as ImageData. */
export function imageData(pixels, [channels, rows, columns], start = 0, shade = "gray") {
  const data = new ImageData(columns, rows);
  const n = rows * columns;
  for (let i = 0; i < n; i += 1) {
    if (channels === 3) for (let c = 0; c < 3; c += 1) data.data[4 * i + c] = pixels[start + c * n + i];
    else SHADES[shade](pixels[start + i], data.data, 4 * i);
    data.data[4 * i + 3] = 255;
  }
  return data;
}

/** Draw images (`values`, or `pixels` in base64) into a canvas, `columns` in a row, a narrow gap between; small ones are made larger. */
export function drawGrid(canvas, images, columns, shade = "gray") {
  const [, tall, wide] = images.shape;
  const scale = Math.max(1, Math.ceil(24 / Math.max(tall, wide)));
  const gap = scale > 6 ? 3 : scale > 1 ? 2 : 1;
  const rows = Math.ceil(images.n / columns);
  const size = images.shape.reduce((a, b) => a * b);
  canvas.width = columns * (wide * scale + gap) - gap;
  canvas.height = rows * (tall * scale + gap) - gap;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  const one = new OffscreenCanvas(wide, tall);
  const pixels = images.values ?? bytes(images.pixels);
  for (let i = 0; i < images.n; i += 1) {
    one.getContext("2d").putImageData(imageData(pixels, images.shape, i * size, shade), 0, 0);
    const at = [(i % columns) * (wide * scale + gap), Math.floor(i / columns) * (tall * scale + gap)];
    context.drawImage(one, ...at, wide * scale, tall * scale);
  }
  canvas.style.aspectRatio = `${canvas.width} / ${canvas.height}`;
  return canvas;
}

/** A canvas for pictures, with words for those who do not see it. */
export function canvas(label, kind = "") {
  return h("canvas", { class: `picture ${kind}`, role: "img", "aria-label": label });
}

/** Small images as buttons in a strip. */
export function strip(images, label, onpick, names = null) {
  const size = images.shape.reduce((a, b) => a * b);
  const pixels = bytes(images.pixels);
  const buttons = Array.from({ length: images.n }, (_, i) => {
    const picture = h("canvas", { width: images.shape[2], height: images.shape[1], "aria-hidden": "true" });
    picture.getContext("2d").putImageData(imageData(pixels, images.shape, i * size), 0, 0);
    const text = names?.[i] === undefined || names === null ? `${label} ${i + 1}` : `${label} ${i + 1}, ${names[i]}`;
    return h("button", { class: "thumb", "aria-label": text, title: text, onclick: () => onpick(i, pixels.slice(i * size, (i + 1) * size)) }, picture);
  });
  return h("div", { class: "strip", role: "group", "aria-label": `${label}s to pick from` }, buttons);
}

/** Show which button of a strip is chosen. */
export function mark(place, chosen) {
  [...place.children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === chosen)));
}

/** A color of the page, for canvases. */
export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Redraw when the reader's light or dark changes. */
export function onScheme(ends, redraw) {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", redraw);
  ends.add(() => scheme.removeEventListener("change", redraw));
}
