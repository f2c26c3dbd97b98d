"use strict";
// Everything works without this file. With it, an open page follows what happens, and a form is sent once.
(() => {
  const status = document.getElementById("live");
  const say = (text) => { if (status && status.textContent !== text) status.textContent = text; };
  let touched = false; // somebody has typed something that a new page would lose
  let seen = status ? status.dataset.seen : "";
  let source = null;
  let timer = 0;
  let loading = false;
  let resting = false;
  let again = false;

  document.addEventListener("input", (e) => { if (e.target.closest("main form")) touched = true; });
  document.addEventListener("submit", (e) => {
    if (e.defaultPrevented || e.target.method !== "post") return;
    if (e.target.dataset.sent) { e.preventDefault(); return; }
    e.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent; // somebody came back
  });

  if (!status || !status.dataset.live || !window.EventSource || !window.DOMParser) return;

  const offer = () => {
    if (document.getElementById("show-changes")) return;
    const button = document.createElement("button");
    button.id = "show-changes";
    button.type = "button";
    button.textContent = "Show what is new";
    button.addEventListener("click", () => { touched = false; resting = false; load(); });
    say("This page has changed. What you typed is still there.");
    status.after(button);
  };

  // load puts the page as it is now in the place of the one that is shown. It keeps what is open, and where the focus is.
  const load = async () => {
    if (loading || resting) { again = true; return; }
    loading = true;
    resting = true;
    const began = performance.now();
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
      if (!answer.ok && answer.status !== 404) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const main = page.getElementById("main");
      if (!main) throw new Error("no page");
      if (touched) { offer(); return; }
      const old = document.getElementById("main");
      const open = [...old.querySelectorAll("details")].map((d) => d.open);
      [...main.querySelectorAll("details")].forEach((d, i) => { d.open = Boolean(open[i]); });
      const focus = document.activeElement && old.contains(document.activeElement) ? document.activeElement.id : "";
      main.querySelectorAll(".notice").forEach((n) => n.remove());
      old.replaceWith(main);
      const back = focus && document.getElementById(focus);
      if (back) back.focus({ preventScroll: true });
      const button = document.getElementById("show-changes");
      if (button) button.remove();
      say("Up to date. Last change seen at " + new Date().toLocaleTimeString() + ".");
    } catch {
      say("This page may be behind: heed does not answer. It tries again.");
      window.clearTimeout(timer);
      timer = window.setTimeout(() => { resting = false; load(); }, 5000);
    } finally {
      loading = false;
      // A page that takes long to make is loaded seldom.
      const rest = Math.max(1000, 10 * (performance.now() - began));
      window.setTimeout(() => { resting = false; if (again) { again = false; load(); } }, rest);
    }
  };

  const connect = () => {
    if (source) return;
    source = new EventSource(status.dataset.live + "?seen=" + encodeURIComponent(seen));
    source.addEventListener("open", () => { if (!touched) say("Up to date."); });
    source.addEventListener("changed", (e) => {
      seen = e.data;
      if (touched) offer(); else load();
    });
    source.addEventListener("behind", () => say("This page may be behind: heed can't read its store."));
    source.addEventListener("error", () => {
      say("This page may be behind: there is no connection. It tries again.");
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        window.setTimeout(() => { if (!document.hidden) connect(); }, 5000);
      }
    });
  };
  const disconnect = () => { if (source) { source.close(); source = null; } };

  // A browser has few connections for one host, so a page that nobody sees has none.
  document.addEventListener("visibilitychange", () => { if (document.hidden) disconnect(); else connect(); });
  window.addEventListener("pagehide", disconnect);
  connect();
})();
