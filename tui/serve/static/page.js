"use strict";
// The key of this browser comes once, behind the #, which is sent to no server. It is kept in the
// storage of this origin: a cookie alone would be sent to every port of this host.
const given = location.hash.slice(1);
if (given) {
  localStorage.setItem("backscroll", given);
}
if (given || location.search) {
  history.replaceState(null, "", "/");
}
const terminal = document.getElementById("terminal");
const key = encodeURIComponent(localStorage.getItem("backscroll") || "none");
terminal.dataset.sessionWebsocketUrl = `ws://${location.host}/ws/${key}`;
document.getElementById("again").addEventListener("click", () => location.reload());

// The terminal measures its cells once: the font has to be there before.
document.fonts.load("15px 'Roboto Mono'").finally(() => {
  const script = document.createElement("script");
  script.src = "/static/textual.js";
  script.onload = () => {
    if (document.readyState === "complete") {
      window.onload();
    }
  };
  document.head.append(script);
});

// Keys go to the terminal as soon as it is connected, and again after a click beside it.
function takeKeys() {
  const field = document.querySelector(".xterm-helper-textarea");
  if (field && document.body.classList.contains("-loaded")) {
    field.focus();
  }
}
new MutationObserver(takeKeys).observe(document.body, { attributeFilter: ["class"] });
window.addEventListener("focus", takeKeys);
