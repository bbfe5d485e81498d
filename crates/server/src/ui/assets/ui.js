"use strict";
// Pages work without this script. It renews parts of a page when their topic has changed, and follows logs.

const base = document.body.dataset.base || "";
const main = document.getElementById("main");

// The link of `meshwork dashboard` has its token behind #, which browsers do not send.
const byLink = document.querySelector("form[data-by-link]");
if (byLink && location.hash.length > 1) {
  byLink.elements.key.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname + location.search);
  byLink.submit();
}

const context = document.getElementById("context");
if (context) {
  context.form.classList.add("scripted");
  context.addEventListener("change", () => context.form.submit());
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) return;
  const pages = { o: "/", j: "/jobs", q: "/queues", w: "/workers", d: "/dead", s: "/schedules", f: "/flows" };
  if (event.key === "/") {
    document.getElementById("q")?.focus();
    event.preventDefault();
  } else if (pages[event.key]) {
    const link = document.querySelector(`nav.side a[href^="${base}${pages[event.key]}"]`);
    if (link) location.href = link.href;
  }
});

// Reads the page again, and replaces the parts that differ. Parts with the focus or a selection stay.
let reading = false;
let again = false;
async function renew() {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    const answer = await fetch(location.href, { headers: { "x-part": "1" } });
    if (answer.redirected) {
      location.reload();
      return;
    }
    if (answer.ok) replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
    show(answer.ok ? "live" : "away");
  } catch {
    show("away");
  } finally {
    reading = false;
    if (again) {
      again = false;
      setTimeout(renew, 500);
    }
  }
}

function replace(page) {
  for (const part of document.querySelectorAll("[data-part]")) {
    const next = page.getElementById(part.id);
    if (!next || next.outerHTML === part.outerHTML) continue;
    if (part.matches("[data-log]") && following) continue;
    if (part.contains(document.activeElement) || selects(part)) continue;
    const open = [...part.querySelectorAll("details")].map((it) => it.open);
    const places = [...part.querySelectorAll(".scroll, .table")].map((it) => it.scrollLeft);
    part.replaceWith(next);
    next.querySelectorAll("details").forEach((it, at) => (it.open = open[at] ?? it.open));
    next.querySelectorAll(".scroll, .table").forEach((it, at) => (it.scrollLeft = places[at] ?? 0));
  }
}

function selects(part) {
  const selection = document.getSelection();
  return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
}

function show(state) {
  const sign = document.getElementById("live");
  if (!sign) return;
  sign.hidden = false;
  sign.textContent = state === "live" ? " · live" : " · no connection, trying again";
}

const topic = main?.dataset.topic;
if (topic) {
  const query = new URLSearchParams({ topic });
  const now = new URLSearchParams(location.search).get("context");
  if (now) query.set("context", now);
  let source = null;
  const open = () => {
    source = new EventSource(`${base}/live?${query}`);
    source.addEventListener("change", renew);
    source.addEventListener("open", () => show("live"));
    source.addEventListener("error", () => {
      show("away");
      // A browser does not connect again after a refusal.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, 5000);
    });
  };
  open();
  // A page in the background costs nothing.
  document.addEventListener("visibilitychange", () => {
    source.close();
    if (!document.hidden) {
      renew();
      open();
    }
  });
}

// The log of a job, line by line.
let following = false;
const log = document.querySelector("[data-log]");
if (log && topic?.startsWith("job:")) follow(log);

function follow(part) {
  let box = part.querySelector(".log");
  const last = box?.lastElementChild?.dataset.id;
  const query = new URLSearchParams({ id: part.dataset.log });
  if (last) query.set("after", last);
  const source = new EventSource(`${base}/log?${query}`);
  source.addEventListener("line", (event) => {
    following = true;
    if (!box) box = empty(part);
    const line = JSON.parse(event.data);
    const stays = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
    const row = document.createElement("p");
    row.dataset.stream = line.stream;
    row.dataset.id = line.id;
    const time = document.createElement("time");
    time.textContent = line.at.slice(11, 19);
    time.title = line.at;
    const text = document.createElement("span");
    text.append(...coloured(line.line));
    row.append(time, text);
    box.append(row);
    // Older lines are read from the server again.
    if (box.childElementCount > 2000) box.firstElementChild.remove();
    if (stays && !part.classList.contains("paused")) box.scrollTop = box.scrollHeight;
  });
  for (const end of ["end", "closed"]) source.addEventListener(end, () => source.close());
  controls(part);
}

// Hidden characters as pictures or numbers, as on the pages of the server.
function seen(text) {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => {
    const code = c.codePointAt(0);
    if (code < 32) return String.fromCodePoint(0x2400 + code);
    return code === 127 ? "\u2421" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

// A line with the colours of a terminal.
function coloured(line) {
  let colour = "";
  let bold = false;
  const parts = [];
  for (const [at, text] of line.split(/\x1b\[([ -?]*[@-~])/).entries()) {
    if (at % 2 === 0) {
      if (!text) continue;
      const part = document.createElement(bold ? "b" : "span");
      part.className = colour;
      part.textContent = seen(text);
      parts.push(part);
    } else if (text.endsWith("m")) {
      for (const number of text.slice(0, -1).split(";").map(Number)) {
        if (number === 38 || number === 48) break;
        if (number === 0) [colour, bold] = ["", false];
        else if (number === 1) bold = true;
        else if (number === 22) bold = false;
        else if (number === 39) colour = "";
        else if ((number >= 30 && number <= 37) || (number >= 90 && number <= 97)) colour = `c${number % 10}`;
      }
    }
  }
  return parts;
}

function empty(part) {
  part.querySelectorAll(":scope > :not(h2):not(.buttons)").forEach((it) => it.remove());
  const box = document.createElement("div");
  box.className = "log";
  box.tabIndex = 0;
  box.setAttribute("role", "log");
  box.setAttribute("aria-label", "Log");
  part.append(box);
  return box;
}

function controls(part) {
  const buttons = document.createElement("span");
  buttons.className = "buttons";
  const pause = document.createElement("button");
  pause.type = "button";
  pause.textContent = "Pause";
  pause.addEventListener("click", () => {
    pause.textContent = part.classList.toggle("paused") ? "Follow" : "Pause";
  });
  const save = document.createElement("button");
  save.type = "button";
  save.textContent = "Download";
  save.addEventListener("click", () => {
    const lines = [...part.querySelectorAll(".log p")].map((row) => `${row.firstElementChild.title} ${row.dataset.stream} ${row.lastElementChild.textContent}`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/plain" }));
    link.download = `${part.dataset.log}.log`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  buttons.append(pause, save);
  part.querySelector("h2").append(buttons);
}
