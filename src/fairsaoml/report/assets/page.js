// A crosshair with the values under it. The page says everything without this.
for (const figure of document.querySelectorAll("figure[data-values]")) {
  const data = JSON.parse(document.getElementById(figure.dataset.values).textContent);
  const tip = figure.appendChild(document.createElement("div"));
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  let at = data.rounds.length - 1;

  const hide = () => {
    tip.hidden = true;
    for (const line of figure.querySelectorAll(".crosshair")) line.remove();
  };

  const show = (svg, place) => {
    hide();
    at = Math.min(Math.max(place, 0), data.rounds.length - 1);
    const [left, right, top, bottom] =
      ["left", "right", "top", "bottom"].map((edge) => Number(svg.dataset[edge]));
    const first = data.rounds[0], last = data.rounds[data.rounds.length - 1];
    const x = left + (right - left) * (last > first ? (data.rounds[at] - first) / (last - first) : 0);
    const line = svg.appendChild(document.createElementNS(svg.namespaceURI, "line"));
    line.setAttribute("class", "crosshair");
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", top], ["y2", bottom]])
      line.setAttribute(name, value);

    const row = (tag, name, value, style) => {
      const row = document.createElement(tag);
      const chip = document.createElement("i");
      chip.textContent = name;
      row.append(chip, value);
      if (style) {
        const dot = document.createElement("span");
        dot.className = "chip " + style;
        dot.style.display = "inline-block";
        chip.prepend(dot);
      }
      return row;
    };
    tip.replaceChildren();
    const head = tip.appendChild(document.createElement("b"));
    head.textContent = data.labels[at];
    for (const panel of data.panels) {
      const title = tip.appendChild(document.createElement("b"));
      title.textContent = panel.title;
      for (const curve of panel.curves) {
        const value = curve.values[at];
        tip.append(row("span", curve.name, value === null ? "undefined" : value.toFixed(3), curve.style));
      }
    }
    tip.hidden = false;
    const box = svg.getBoundingClientRect(), outer = figure.getBoundingClientRect();
    const middle = box.left - outer.left + x * box.width / svg.viewBox.baseVal.width;
    const room = document.documentElement.clientWidth - outer.left;
    const after = middle + 14 + tip.offsetWidth <= room;
    tip.style.left = Math.max(after ? middle + 14 : middle - 14 - tip.offsetWidth, 0) + "px";
    tip.style.top = box.top - outer.top + 30 + "px";
  };

  for (const svg of figure.querySelectorAll("svg.chart")) {
    const nearest = (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
      const part = (x - svg.dataset.left) / (svg.dataset.right - svg.dataset.left || 1);
      show(svg, Math.round(part * (data.rounds.length - 1)));
    };
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("pointermove", nearest);
    svg.addEventListener("pointerdown", nearest);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      show(svg, at + step);
    });
  }
}

// What is folded on the screen is printed too.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.open = true;
    addEventListener("afterprint", () => { folded.open = false; }, { once: true });
  }
});
