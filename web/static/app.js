"use strict";
// Everything works without this file. With it, an open page follows what happens, and a form is sent once.
(() => {
  const status = document.getElementById("live");
  const say = (text) => { if (status && status.textContent !== text) status.textContent = text; };
  let typed = null; // the form that it was typed into
  let touched = false; // somebody has typed something that a new page would lose
  let seen = status ? status.dataset.seen : "";
  let timer = 0;
  let loading = false;
  let resting = false;
  let again = false;

  document.addEventListener("input", (e) => { const form = e.target.closest("main form"); if (form) { touched = true; typed = form; } });
  document.addEventListener("submit", (e) => {
    if (e.defaultPrevented || e.target.method !== "post") return;
    if (e.target.dataset.sent) { e.preventDefault(); return; }
    e.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent; // somebody came back
  });

  if (!status || !status.dataset.live || !window.fetch || !window.DOMParser) return;

  // news returns what has changed on the page: its facts, and what to read first.
  const news = (was, is) => {
    const read = (main) => {
      const all = new Map();
      main.querySelectorAll("dl.facts > dt").forEach((dt) => all.set(dt.textContent.trim(), dt.nextElementSibling.textContent.trim().replace(/\s+/g, " ")));
      main.querySelectorAll("#warnings ~ * > li").forEach((li) => all.set(li.textContent.trim().replace(/\s+/g, " "), ""));
      return all;
    };
    const before = read(was);
    return [...read(is)].filter(([name, value]) => before.get(name) !== value).map(([name, value]) => value ? name + " is now: " + value : name);
  };

  // offer shows next to the form that the page has changed, and keeps the input.
  const offer = (main) => {
    let note = document.getElementById("changed-note");
    if (!note) {
      note = document.createElement("div");
      note.id = "changed-note";
      note.className = "mild";
      note.setAttribute("role", "status");
      const button = document.createElement("button");
      button.id = "show-changes";
      button.type = "button";
      button.textContent = "Show what is new";
      button.addEventListener("click", () => { touched = false; resting = false; load(); });
      note.append(document.createElement("p"), button);
      (typed && typed.isConnected ? typed : status).before(note);
    }
    const what = news(document.getElementById("main"), main);
    const text = "This page has changed. What you typed is still there, and a decision holds for the words that you see. " + what.join(". ");
    if (note.firstChild.textContent !== text) note.firstChild.textContent = text;
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
      if (touched) { offer(main); return; }
      const old = document.getElementById("main");
      const open = [...old.querySelectorAll("details")].map((d) => d.open);
      [...main.querySelectorAll("details")].forEach((d, i) => { d.open = Boolean(open[i]); });
      const focus = document.activeElement && old.contains(document.activeElement) ? document.activeElement.id : "";
      const said = old.querySelector(".notice"); // a notice stays until the person goes on
      main.querySelectorAll(".notice").forEach((n) => { if (said) n.replaceWith(said); else n.remove(); });
      old.replaceWith(main);
      const back = focus && document.getElementById(focus);
      if (back) back.focus({ preventScroll: true });
      const note = document.getElementById("changed-note");
      if (note) note.remove();
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

  // follow asks every second whether the page has changed. A hidden page does not ask.
  let asking = false;
  let lost = true;
  const follow = async () => {
    if (document.hidden || asking) return;
    asking = true;
    try {
      const answer = await fetch(status.dataset.live, { redirect: "error" });
      if (!answer.ok) throw new Error(String(answer.status));
      const version = await answer.text();
      if (lost && !touched) say("Up to date.");
      lost = false;
      if (version !== seen) { seen = version; load(); }
    } catch {
      lost = true;
      say("This page may be behind: heed does not answer. It tries again.");
    } finally {
      asking = false;
    }
  };
  window.setInterval(follow, 1000);
  document.addEventListener("visibilitychange", follow);
  follow();
})();
