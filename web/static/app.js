"use strict";
// Everything works without this file. With it, a form is sent once.
document.addEventListener("submit", (e) => {
  if (e.defaultPrevented || e.target.method !== "post") return;
  if (e.target.dataset.sent) { e.preventDefault(); return; }
  e.target.dataset.sent = "yes";
});
window.addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent; // somebody came back
});
