// Talking to the server: the token goes along with every request, in a header and never in an address.

const KEY = "harmonium-token";
let token = "";

/** Take the token out of the link (#/route?token=…) and keep it for this server. */
export function takeToken() {
  const [route, query] = location.hash.slice(1).split("?");
  const found = new URLSearchParams(query ?? "").get("token");
  if (found) {
    token = found;
    try { localStorage.setItem(KEY, found); } catch { /* a frame that may keep nothing */ }
    history.replaceState(null, "", `#${route || "/"}`);
    return;
  }
  try { token = token || localStorage.getItem(KEY) || ""; } catch { /* nothing is kept */ }
}

export class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { Authorization: `Bearer ${token}`, ...options.headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer. Is harmonium serve still running?");
  }
  if (response.ok) return response;
  let text = response.statusText;
  try { text = (await response.json()).error ?? text; } catch { /* no words */ }
  throw new Refused(response.status, text);
}

const query = (values) => {
  const known = Object.entries(values).filter(([, value]) => value !== undefined);
  return known.length ? `?${new URLSearchParams(known)}` : "";
};

/** Ask for something. */
export async function get(what, values = {}, signal) {
  return (await request(`/api/${what}${query(values)}`, { signal })).json();
}

/** Do something. */
export async function post(what, value, signal) {
  const body = JSON.stringify(value);
  return (await request(`/api/${what}`, { method: "POST", body, signal, headers: { "Content-Type": "application/json" } })).json();
}

/**
 * Follow a stream of events; `handlers` has a function for each kind, and `line(state, error)` hears how the line is.
 * A line that breaks is taken up again where it broke: with the id of the last event that was heard.
 */
export function follow(values, handlers) {
  const stop = new AbortController();
  let last = "", wait = 500;
  const listen = async () => {
    while (!stop.signal.aborted) {
      try {
        const headers = last ? { "Last-Event-ID": last } : {};
        const response = await request(`/api/watch${query(values)}`, { headers, signal: stop.signal });
        handlers.line?.("open");
        wait = 500;
        await read(response.body.pipeThrough(new TextDecoderStream()).getReader(), (event) => {
          if (event.id) last = event.id;
          if (event.name === "reset") last = "";
          handlers[event.name]?.(event.data);
        });
        if (handlers.over?.()) return;
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error instanceof Refused && [401, 403, 404, 421, 422].includes(error.status)) {
          handlers.line?.("refused", error);
          return;
        }
        handlers.line?.("broken", error);
      }
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(8000, wait * 2);
    }
  };
  listen();
  return () => stop.abort();
}

async function read(reader, hear) {
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const event = { name: "", id: "", data: null };
      for (const line of part.split("\n")) {
        if (line.startsWith("event: ")) event.name = line.slice(7);
        else if (line.startsWith("id: ")) event.id = line.slice(4);
        else if (line.startsWith("data: ")) event.data = JSON.parse(line.slice(6));
      }
      if (event.name) hear(event);
    }
  }
}

export const newSession = () => Array.from(crypto.getRandomValues(new Uint8Array(9)), (b) => b.toString(16).padStart(2, "0")).join("");
