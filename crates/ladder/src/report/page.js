"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  // A page that is opened as a file may have no storage.
  try { const kept = localStorage.getItem("warpfold-theme"); if (kept) root.dataset.theme = kept; } catch (e) { /* none */ }
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("warpfold-theme", root.dataset.theme); } catch (e) { /* none */ }
    label();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();

  // A table that is wider than its place is no table: each of its rows becomes a card, whose cells name their columns.
  for (const one of document.querySelectorAll(".scroll > table")) {
    const names = [...one.tHead.rows[0].cells].map((head) => head.textContent);
    for (const row of one.querySelectorAll("tbody > tr:not(.folded)"))
      [...row.cells].forEach((cell, i) => { if (i > 0) cell.dataset.h = names[i]; });
  }
  const fit = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.remove("stacked");
      if (box.clientWidth > 0) box.classList.toggle("stacked", box.scrollWidth > box.clientWidth + 1);
    }
  };
  addEventListener("resize", fit);
  document.addEventListener("toggle", fit, true);

  const table = document.getElementById("rungs");
  if (!table) fit();
  if (!table) return;
  const bodies = () => [...table.tBodies];
  const value = (body, column) => {
    const cell = body.rows[0].cells[column];
    return cell.dataset.v === undefined ? cell.textContent : cell.dataset.v === "" ? null : Number(cell.dataset.v);
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = bodies().map((body) => [value(body, column), body]);
      // What was not measured comes last, either way.
      keyed.sort(([a], [b]) => (a === null) - (b === null) || (a === null ? 0 : down ? compare(b, a) : compare(a, b)));
      table.append(...keyed.map(([, body]) => body));
    });
  });

  const group = document.getElementById("group");
  const show = () => {
    for (const body of bodies()) body.hidden = group.value !== "" && body.dataset.group !== group.value;
    fit();
  };
  if (group) {
    group.addEventListener("change", show);
    show();
  } else fit();
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!(target instanceof HTMLDetailsElement)) return;
    const body = target.closest("tbody");
    if (body && body.hidden) { group.value = body.dataset.group; show(); }
    target.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
})();
