// The rules that each page is held to. The value is a list of faults, each "rule: what".
(() => {
  const faults = [];
  const fault = (rule, what) => faults.push(rule + ": " + (typeof what === "string" ? what : name(what)));
  const name = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + (typeof e.className === "string" && e.className ? "." + e.className : "") +
    " «" + (e.textContent || "").trim().slice(0, 60) + "»";
  const all = (selector) => [...document.querySelectorAll(selector)];
  const seen = (e) => e.checkVisibility({ visibilityProperty: true });
  const wide = document.documentElement.clientWidth;

  // Text nodes that are shown, with their parents and boxes.
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!node.data.trim() || !seen(e) || e.closest("option, .skip")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    texts.push({ e, boxes: [...range.getClientRects()].filter((r) => r.width && r.height) });
  }

  // width: the page does not scroll sideways, and no text is outside of it or of what has it.
  if (document.documentElement.scrollWidth > wide) fault("width", "the page is " + document.documentElement.scrollWidth + " wide");
  const scrolls = (e) => { const s = getComputedStyle(e); return (s.overflowX === "auto" || s.overflowX === "scroll") && e; };
  for (const { e, boxes } of texts) {
    const own = getComputedStyle(e), hangs = own.whiteSpaceCollapse === "preserve" ? parseFloat(own.fontSize) / 2 : 1.5; // a space at the end of a line
    let region = e;
    while (region && !scrolls(region)) region = region.parentElement;
    for (const r of boxes) {
      if (!region && (r.left < -0.5 || r.right > wide + 0.5)) fault("width", e);
      for (let box = e; box && box !== region && box !== document.body; box = box.parentElement) {
        const s = getComputedStyle(box), b = box.getBoundingClientRect();
        if (s.display !== "inline" && s.display !== "contents" && (r.left < b.left - 1.5 || r.right > b.right + hangs)) { fault("width", box); break; }
      }
    }
  }
  // cut: nothing hides a part of its text.
  for (const e of all("body *")) {
    const s = getComputedStyle(e);
    if (!seen(e) || e.closest("svg") || !(e.textContent || "").trim()) continue;
    if (/hidden|clip/.test(s.overflowX + s.overflowY) && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)) fault("cut", e);
    if (s.textOverflow === "ellipsis" || s.webkitLineClamp !== "none") fault("cut", e);
  }
  // overlap: no text lies on another one.
  const lines = texts.flatMap(({ e, boxes }) => boxes.map((r) => ({ e, r })));
  for (let i = 0; i < lines.length; i++) for (let j = i + 1; j < lines.length && j < i + 60; j++) {
    const a = lines[i].r, b = lines[j].r;
    if (lines[i].e.contains(lines[j].e) || lines[j].e.contains(lines[i].e)) continue;
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > Math.min(a.height, b.height) / 2)
      fault("overlap", name(lines[i].e) + " and " + name(lines[j].e));
  }

  // contrast: WCAG 2, 1.4.3 for texts and 1.4.11 for the borders of fields.
  const color = (text) => { const n = text.match(/[\d.]+/g).map(Number); return { r: n[0], g: n[1], b: n[2], a: n.length > 3 ? n[3] : 1 }; };
  const over = (top, low) => ({ r: top.r * top.a + low.r * (1 - top.a), g: top.g * top.a + low.g * (1 - top.a), b: top.b * top.a + low.b * (1 - top.a), a: 1 });
  const behind = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) { const c = color(getComputedStyle(e).backgroundColor); layers.push(c); if (c.a === 1) break; }
    return layers.reverse().reduce((low, top) => over(top, low), { r: 255, g: 255, b: 255, a: 1 });
  };
  const light = (c) => [c.r, c.g, c.b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const x = light(a), y = light(b); return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
  const fields = all("input:not([type=hidden]), textarea, select").filter(seen);
  for (const e of new Set([...texts.map((t) => t.e), ...fields])) {
    const s = getComputedStyle(e), size = parseFloat(s.fontSize), back = behind(e);
    const least = size >= 24 || (size >= 18.66 && Number(s.fontWeight) >= 700) ? 3 : 4.5;
    const found = contrast(over(color(s.color), back), back);
    if (found < least) fault("contrast", found.toFixed(2) + " of " + name(e));
    if (Number(s.opacity) < 1) fault("contrast", "opacity of " + name(e));
  }
  for (const e of fields) {
    const s = getComputedStyle(e);
    if (e.type !== "radio" && e.type !== "checkbox" && contrast(color(s.borderTopColor), behind(e.parentElement)) < 3) fault("contrast", "border of " + name(e));
  }

  // language, title, headings, landmarks
  if (!document.documentElement.lang) fault("language", "none");
  if (!document.title.trim()) fault("title", "none");
  if (all("h1").length !== 1) fault("headings", all("h1").length + " of h1");
  let level = 0;
  for (const e of all("h1, h2, h3, h4, h5, h6")) {
    const next = Number(e.tagName[1]);
    if (next > level + 1) fault("headings", e);
    if (!e.textContent.trim()) fault("headings", "empty " + name(e));
    level = next;
  }
  for (const one of ["main", "body > header"]) if (all(one).length !== 1) fault("landmarks", all(one).length + " of " + one);
  for (const { e } of texts) if (!e.closest("main, body > header")) fault("landmarks", e);
  for (const e of all("nav, [role=region], [role=search] ~ [role=search]")) if (!named(e)) fault("landmarks", e);
  const regions = all("nav, [role=region]").map((e) => e.tagName + " " + named(e));
  regions.filter((one, i) => regions.indexOf(one) !== i).forEach((one) => fault("landmarks", "twice: " + one));
  const skip = document.querySelector("a");
  if (!skip || skip.getAttribute("href") !== "#main" || !document.getElementById("main")) fault("skip", "the first link does not lead to the content");

  // names, labels, references
  function named(e) {
    const by = (e.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean).map((id) => document.getElementById(id)).filter(Boolean).map((n) => n.textContent).join(" ");
    return (e.getAttribute("aria-label") || by || "").trim();
  }
  for (const e of all("a[href], button, summary")) if (seen(e) && !(named(e) || e.textContent.trim())) fault("name", e);
  for (const e of all("input:not([type=hidden]), textarea, select")) if (!(named(e) || [...e.labels].map((l) => l.textContent.trim()).join(""))) fault("label", e);
  for (const e of all("fieldset")) if (!e.querySelector("legend")) fault("label", e);
  const ids = all("[id]").map((e) => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => fault("id", "twice: " + id));
  for (const attribute of ["for", "aria-labelledby", "aria-describedby"]) for (const e of all("[" + attribute + "]"))
    for (const id of e.getAttribute(attribute).split(/\s+/)) if (!document.getElementById(id)) fault("reference", attribute + " " + id);
  for (const e of all("[tabindex]")) if (e.tabIndex > 0) fault("order", e);
  for (const e of all("[aria-hidden=true] *, [aria-hidden=true]")) if (e.tabIndex >= 0 && e.matches("a, button, input, select, textarea, [tabindex]")) fault("hidden", e);

  // tables and pictures
  for (const e of all("table")) {
    const box = e.closest("[role=region], [role=group]");
    if (!e.querySelector("caption") && !(box && named(box))) fault("table", "no name: " + name(e));
    if (!e.querySelector("thead th") || [...e.querySelectorAll("th")].some((th) => !th.scope)) fault("table", "headers: " + name(e));
    for (const row of e.querySelectorAll("tr")) {
      const cells = [...row.cells].reduce((sum, c) => sum + c.colSpan, 0), heads = e.querySelectorAll("thead th").length;
      if (cells !== heads) fault("table", cells + " cells below " + heads + " headers");
    }
  }
  for (const e of all("body *")) if (seen(e) && scrolls(e) && e.tagName !== "TEXTAREA" && !(e.tabIndex === 0 && named(e))) fault("region", e);
  for (const e of all("svg")) if (e.getAttribute("aria-hidden") !== "true" && !(e.getAttribute("role") === "img" && named(e))) fault("picture", e);
  // WCAG 2.2, 2.5.8: what is no link within a text has 24 pixels.
  for (const e of all("button, input:not([type=hidden]):not([type=radio]):not([type=checkbox]), textarea, select, header nav a, .button, summary")) {
    const r = e.getBoundingClientRect();
    if (seen(e) && (r.width < 23.5 || r.height < 23.5)) fault("target", r.width.toFixed(0) + "x" + r.height.toFixed(0) + " " + name(e));
  }
  return [...new Set(faults)];
})()
