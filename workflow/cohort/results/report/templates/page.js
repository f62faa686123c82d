// What the page can do beyond being read: filter (kept in the URL), sort, copy commands, print folded parts.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const form = document.getElementById("filter");

  // a choice of several values that share a title has them separated by spaces
  function matches(element, chosen) {
    return chosen.every(([name, values]) => !(name in element.dataset)
      || element.dataset[name].split(" ").some((value) => values.split(" ").includes(value)));
  }

  function filterTable(table, chosen) {
    const heads = [...table.tHead.rows[0].cells];
    const shown = heads.map((head) => matches(head, chosen));
    for (const row of table.rows) {
      [...row.cells].forEach((cell, place) => { cell.hidden = !shown[place]; });
      if (row.parentElement.tagName === "TBODY") row.hidden = !matches(row, chosen);
    }
  }

  const pressed = () => all(".choice [aria-pressed=true]").map(({ dataset: { side, verdict } }) => [side, verdict]);

  // of the verdicts chosen for a side, a claim must have one
  function isJudgedSo(claim, verdicts) {
    return ["paper", "ours"].every((side) => {
      const allowed = verdicts.filter(([name]) => name === side).map(([, verdict]) => verdict);
      return !allowed.length || allowed.includes(claim.dataset[side]);
    });
  }

  function filter() {
    const [chosen, verdicts] = [[...new FormData(form)].filter(([, value]) => value), pressed()];
    const items = all(".claim, figure[id], .waiting li, .group");
    for (const item of items) {
      item.hidden = !matches(item, chosen) || (item.matches(".claim") && !isJudgedSo(item, verdicts));
    }
    for (const group of all(".claims")) group.hidden = all(".claim", group).every((claim) => claim.hidden);
    all("table.sortable").forEach((table) => filterTable(table, chosen));
    const left = items.filter((item) => !item.hidden).length;
    const asked = [...chosen, ...verdicts];
    form.querySelector("output").textContent = asked.length ? `${left} of ${items.length} shown` : "";
    const query = new URLSearchParams(asked).toString();
    history.replaceState(null, "", location.pathname + (query && `?${query}`) + location.hash);
  }

  if (form) {
    const asked = new URLSearchParams(location.search);
    for (const select of form.elements) {
      const value = asked.get(select.name);
      if (value && [...select.options].some((option) => option.value === value)) select.value = value;
    }
    for (const choice of all(".choice")) {
      const button = document.createElement("button");
      const { side, verdict } = Object.assign(button.dataset, choice.dataset);
      const press = (on) => button.setAttribute("aria-pressed", on);
      press(asked.getAll(side).includes(verdict));
      button.append(...choice.childNodes);
      choice.append(button);
      button.addEventListener("click", () => { press(button.getAttribute("aria-pressed") !== "true"); filter(); });
      form.addEventListener("reset", () => press(false));
    }
    form.hidden = false;
    form.addEventListener("change", filter);
    form.addEventListener("reset", () => setTimeout(filter));
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  }

  function sort(head, place) {
    const down = head.getAttribute("aria-sort") === "ascending";
    const body = head.closest("table").tBodies[0];
    const key = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent.trim();
    const number = (text) => parseFloat(text.replace(/[,\s]/g, "").replace("−", "-"));
    const rows = [...body.rows].sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      const [x, y] = [number(a), number(b)];
      if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1; // what has no number comes last
      return (isNaN(x) ? a.localeCompare(b) : x - y) * (down ? -1 : 1);
    });
    all("th[aria-sort]", head.parentElement).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows);
  }

  all("table.sortable thead th").forEach((head) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(head, head.cellIndex));
  });

  all(".command").forEach((command) => {
    const button = document.createElement("button");
    const text = command.querySelector("code").textContent;
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${text}`);
    button.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
      catch { getSelection().selectAllChildren(command.querySelector("code")); button.textContent = "Press Ctrl+C"; }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    command.append(button);
  });

  const hints = new ResizeObserver((entries) => entries.forEach(({ target }) => {
    const box = target.closest(".scroll");
    const [wide, long] = [box.scrollWidth > box.clientWidth + 1, box.scrollHeight > box.clientHeight + 1];
    const more = [wide && "more columns to the right", long && "more rows below"].filter(Boolean).join(" and ");
    box.classList.toggle("wide", wide);
    box.classList.toggle("long", long);
    box.toggleAttribute("tabindex", wide || long);
    if (wide || long) box.tabIndex = 0;
    if (box.nextElementSibling?.matches(".more")) box.nextElementSibling.remove();
    if (more) box.insertAdjacentHTML("afterend", `<p class="more">The table scrolls: ${more}.</p>`);
  }));
  all(".scroll > table").forEach((table) => { hints.observe(table); hints.observe(table.parentElement); });

  if (matchMedia("(min-width: 60rem)").matches) all(".contents").forEach((list) => { list.open = true; });

  const reveal = () => document.getElementById(location.hash.slice(1))?.closest("details")?.setAttribute("open", "");
  addEventListener("hashchange", reveal);
  reveal();

  let folded = [];
  addEventListener("beforeprint", () => { folded = all("details:not([open])"); folded.forEach((one) => { one.open = true; }); });
  addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
})();
