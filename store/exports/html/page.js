"use strict";
(() => {
  const root = document.documentElement;
  const main = document.querySelector("main");
  const messages = [...main.querySelectorAll(".m")];
  const field = document.getElementById("find");
  const count = document.getElementById("count");
  const MOST_MARKED = 3000;
  root.classList.add("js");

  // Dark and light: the system decides until the switch is used.
  const themeButton = document.getElementById("theme");
  const isDark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const turnTheme = () => { root.dataset.theme = isDark() ? "light" : "dark"; };
  themeButton.addEventListener("click", turnTheme);

  // The message that keys start from.
  let here = null;
  const barHeight = () => document.querySelector(".bar").offsetHeight;
  function atTop() {
    const edge = barHeight() + 8;
    let low = 0, high = messages.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (messages[middle].getBoundingClientRect().bottom <= edge) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, messages.length - 1);
  }
  function inSight(element) {
    const box = element.getBoundingClientRect();
    return box.bottom > barHeight() && box.top < innerHeight;
  }
  // Sizes are guesses until something is drawn, and then the page moves. What a key has put into
  // its place is put there again with each frame until it stays; so long it counts as in sight.
  const STILL_FRAMES = 3, MOST_FRAMES = 60;
  let held = 0, isHeld = false;
  function release() { held += 1; isHeld = false; }
  function hold(element, put) {
    release();
    isHeld = true;
    const mine = held;
    let top = NaN, still = 0, frames = 0;
    const again = () => {
      if (mine !== held) return;
      put();
      const now = element.getBoundingClientRect().top;
      still = now === top ? still + 1 : 0;
      top = now;
      if (still < STILL_FRAMES && ++frames < MOST_FRAMES) requestAnimationFrame(again);
      else release();
    };
    again();
  }
  for (const kind of ["wheel", "touchmove", "pointerdown"])
    addEventListener(kind, release, { passive: true });
  const current = () => here && (isHeld || inSight(here)) ? messages.indexOf(here) : -1;
  const reading = () => current() < 0 ? messages[atTop()] : here;
  function choose(element, scroll = true) {
    release();
    if (here) here.classList.remove("here");
    here = element;
    if (!here) return;
    here.classList.add("here");
    if (scroll) hold(element, () => element.scrollIntoView({ block: "start" }));
    markTurn();
  }
  function step(by, fits) {
    const from = current();
    let at = from < 0 ? atTop() + (by > 0 ? -1 : 1) : from;
    if (from < 0 && by < 0) at = atTop();
    do { at += by; } while (at >= 0 && at < messages.length && !fits(messages[at]));
    if (at >= 0 && at < messages.length) choose(messages[at]);
  }
  const turnLinks = new Map(
    [...document.querySelectorAll(".turns li a")].map(link => [link.hash.slice(1), link]));
  const turnOf = new Map();
  let turn = null;
  for (const message of messages) {
    turn = turnLinks.get(message.id) || (message.matches("section > .m:first-of-type") ? null : turn);
    turnOf.set(message, turn);
  }
  let marked = null;
  function markTurn() {
    const at = reading();
    const link = at ? turnOf.get(at) : null;
    if (link === marked) return;
    if (marked) marked.removeAttribute("aria-current");
    marked = link;
    if (!link) return;
    link.setAttribute("aria-current", "true");
    const list = link.closest(".turns"), box = link.getBoundingClientRect();
    const frame = list.getBoundingClientRect();
    if (box.top < frame.top || box.bottom > frame.bottom)
      list.scrollTop += box.top - frame.top - frame.height / 3;
  }
  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; markTurn(); });
  }, { passive: true });

  // Folds.
  function reveal(element) {
    for (let at = element; at && at !== main; at = at.parentElement)
      if (at.tagName === "DETAILS") at.open = true;
  }
  function foldHere() {
    const at = reading();
    const folds = at ? [...at.querySelectorAll(".p > details:not(.empty)")] : [];
    const open = folds.some(fold => !fold.open);
    for (const fold of folds) fold.open = open;
  }
  function foldAll(selector) {
    const folds = [...main.querySelectorAll(selector)];
    const open = folds.some(fold => !fold.open);
    const at = reading();
    const before = at ? at.getBoundingClientRect().top : 0;
    for (const fold of folds) fold.open = open;
    if (at) hold(at, () => scrollBy(0, at.getBoundingClientRect().top - before));
  }

  // Finding: every part's text, once; hits are found in it, and marked without changing the page.
  let parts = null;
  let hits = [], place = -1, needle = null;
  function readParts() {
    parts = [...main.querySelectorAll("h1, .p, .m > .head, .divider")].map(element => {
      const nodes = [], starts = [];
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      let text = "", node;
      while ((node = walker.nextNode())) {
        nodes.push(node); starts.push(text.length); text += node.data;
      }
      return { element, nodes, starts, text };
    });
  }
  function spot(part, offset) {
    let low = 0, high = part.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (part.starts[middle] <= offset) low = middle; else high = middle - 1;
    }
    return [part.nodes[low], offset - part.starts[low]];
  }
  function rangeOf(hit) {
    const range = new Range();
    range.setStart(...spot(hit.part, hit.start));
    const [node, offset] = spot(hit.part, hit.end - 1);
    range.setEnd(node, offset + 1);
    return range;
  }
  const canMark = typeof Highlight === "function" && CSS.highlights;
  function mark(name, some) {
    if (canMark) CSS.highlights.set(name, new Highlight(...some.map(rangeOf)));
  }
  let typing = 0;
  function find(words) {
    clearTimeout(typing);
    needle = words;
    hits = []; place = -1;
    if (words) {
      if (!parts) readParts();
      const pattern = new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu");
      for (const part of parts)
        for (const found of part.text.matchAll(pattern))
          hits.push({ part, start: found.index, end: found.index + found[0].length });
    }
    mark("hits", hits.slice(0, MOST_MARKED));
    mark("hit", []);
    tell();
  }
  function tell() {
    count.classList.toggle("none", Boolean(needle) && !hits.length);
    count.value = !needle ? "" : !hits.length ? "not here"
      : place < 0 ? `${hits.length} found` : `${place + 1} of ${hits.length}`;
  }
  function goToHit(by) {
    if (field.value !== (needle || "")) find(field.value);
    if (!hits.length) return;
    if (place < 0) {
      const top = messages[atTop()];
      place = hits.findIndex(hit => !(
        top && top.compareDocumentPosition(hit.part.element) & Node.DOCUMENT_POSITION_PRECEDING));
      if (place < 0) place = 0;
      if (by < 0) place = (place + hits.length - 1) % hits.length;
    } else place = (place + by + hits.length) % hits.length;
    const hit = hits[place], range = rangeOf(hit), element = range.startContainer.parentElement;
    reveal(element);
    choose(hit.part.element.closest(".m"), false);
    if (place >= MOST_MARKED) mark("hits", hits.slice(place - 50, place + 50));
    mark("hit", [hit]);
    hold(element, () => {
      element.scrollIntoView({ block: "center" });
      const box = range.getBoundingClientRect();
      if (box.top < barHeight() || box.bottom > innerHeight - 40)
        scrollBy(0, box.top - innerHeight / 2);
    });
    tell();
  }
  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => find(field.value), 120);
  });
  field.addEventListener("keydown", event => {
    if (event.key === "Enter") { goToHit(event.shiftKey ? -1 : 1); event.preventDefault(); }
    if (event.key === "Escape") { field.value = ""; find(""); field.blur(); }
    event.stopPropagation();
  });
  document.getElementById("next").addEventListener("click", () => goToHit(1));
  document.getElementById("previous").addEventListener("click", () => goToHit(-1));

  // A link to a message opens what hides it.
  function follow() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && main.contains(target)) {
      reveal(target);
      if (target.matches(".m")) choose(target);
    }
  }
  addEventListener("hashchange", follow);
  main.addEventListener("click", event => {
    const message = event.target.closest(".m");
    if (message && String(getSelection()) === "") choose(message, false);
  });

  const any = () => true;
  const keys = {
    j: () => step(1, any), k: () => step(-1, any),
    "]": () => step(1, message => turnLinks.has(message.id)),
    "[": () => step(-1, message => turnLinks.has(message.id)),
    e: () => step(1, message => message.querySelector(".p.error")),
    E: () => step(-1, message => message.querySelector(".p.error")),
    n: () => goToHit(1), N: () => goToHit(-1),
    "/": () => { field.focus(); field.select(); },
    o: foldHere, t: () => foldAll(".call > details:not(.empty)"),
    i: () => foldAll(".reasoning > details"),
    g: () => { scrollTo(0, 0); choose(null); }, G: () => choose(messages[messages.length - 1]),
    D: turnTheme,
  };
  // Letters act by their place on layouts without Latin ones; brackets may need AltGr.
  function pressed(event) {
    const letter = /^Key([A-Z])$/.exec(event.code);
    if (Object.hasOwn(keys, event.key) || !letter || event.key.charCodeAt(0) < 128) return event.key;
    return event.shiftKey ? letter[1] : letter[1].toLowerCase();
  }
  addEventListener("keydown", event => {
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    const key = pressed(event);
    if ((modified && !event.getModifierState("AltGraph")) || !Object.hasOwn(keys, key)) {
      release();
      return;
    }
    event.preventDefault();
    keys[key]();
  });
  follow();
  markTurn();
})();
