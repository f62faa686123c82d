// What the page can do beyond being read: sort tables, copy commands, unfold what a link leads to.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  function sort(head, place) {
    const down = head.getAttribute("aria-sort") === "ascending";
    const body = head.closest("table").tBodies[0];
    const key = (row) => row.cells[place].textContent.trim();
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
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(command.querySelector("code").textContent);
      button.textContent = "Copied";
    });
    command.append(button);
  });

  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    let details = target?.closest("details");
    for (; details; details = details.parentElement.closest("details")) details.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
