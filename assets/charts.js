// Stops Altair's html output from asking a CDN for libraries that the page
// has already, and redraws charts when the reader switches the colour theme.
(function () {
  "use strict";
  window.VEGA_DEBUG = { vega_version: "6", vegalite_version: "6.4.1", vegaembed_version: "7" };
  var embed = window.vegaEmbed;
  var charts = [];

  function colour(name, fallback) {
    var value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    return value || fallback;
  }

  function themed() {
    var text = colour("--pst-color-text-base", "#222");
    var muted = colour("--pst-color-text-muted", "#555");
    var border = colour("--pst-color-border", "#ccc");
    var heading = colour("--pst-color-heading", text);
    var sans = colour("--book-sans", "sans-serif");
    return {
      background: null,
      font: sans,
      axis: {
        labelColor: muted, titleColor: text, domainColor: muted, tickColor: muted, gridColor: border,
        gridOpacity: 0.55, labelFontSize: 12.5, titleFontSize: 13.5, titleFontWeight: 500,
        titlePadding: 8, labelOverlap: true
      },
      legend: { labelColor: text, titleColor: text, labelFontSize: 13, titleFontSize: 13, titleFontWeight: 500 },
      header: { labelColor: text, titleColor: text, labelFontSize: 13, titleFontSize: 13.5 },
      title: {
        color: heading, subtitleColor: muted, fontSize: 16, fontWeight: 600, subtitleFontSize: 13.5,
        anchor: "start", frame: "group", offset: 12, subtitlePadding: 5, lineHeight: 20
      },
      text: { color: text, fontSize: 13 },
      rule: { color: muted },
      view: { stroke: border }
    };
  }

  function keepParams(spec, view) {
    (spec.params || []).forEach(function (param) {
      if (param.select) { return; }
      try { param.value = view.signal(param.name); } catch (error) { /* not a top-level signal */ }
    });
  }

  // Breaks the lines of a title that are wider than the chart's box, as on a phone.
  var pen = document.createElement("canvas").getContext("2d");
  function broken(line, width) {
    var lines = [];
    line.split(" ").forEach(function (word) {
      var longer = lines.length ? lines[lines.length - 1] + " " + word : word;
      if (lines.length && pen.measureText(longer).width <= width) { lines[lines.length - 1] = longer; } else { lines.push(word); }
    });
    return lines;
  }

  function fitTitle(spec, element) {
    var title = typeof spec.title === "object" && spec.title ? spec.title : { text: spec.title };
    var lines = [].concat(title.text);
    var width = element.clientWidth - 70;
    if (width < 120 || !lines.every(function (line) { return typeof line === "string"; })) { return; }
    pen.font = "600 16px " + colour("--book-sans", "sans-serif");
    title.text = lines.reduce(function (all, line) {
      return all.concat(pen.measureText(line).width > width ? broken(line, width) : [line]);
    }, []);
    spec.title = title;
  }

  function draw(chart) {
    var options = Object.assign({ renderer: "svg", actions: { export: true, source: false, compiled: false, editor: false } }, chart.options);
    options.config = Object.assign({}, themed(), chart.options.config || {});
    var spec = JSON.parse(JSON.stringify(chart.spec));
    var box = typeof chart.element === "string" ? document.querySelector(chart.element) : chart.element;
    fitTitle(spec, box);
    return embed(chart.element, spec, options).then(function (result) {
      chart.result = result;
      var menu = (result.embedOptions ? result.view.container().closest(".vega-embed") : null);
      var summary = menu && menu.querySelector("details > summary");
      if (summary) { summary.setAttribute("aria-label", "Save this chart"); }
      return result;
    });
  }

  // A layer that a slider has emptied is called a picture by Vega, and has no words to say what of.
  function nameless(element) {
    element.querySelectorAll("svg.marks g[role='graphics-symbol']:not([aria-label])").forEach(function (group) {
      group.removeAttribute("role");
      group.removeAttribute("aria-roledescription");
    });
  }

  function wrapped(element, spec, options) {
    if (spec.config) { delete spec.config.background; }
    var chart = { element: element, spec: spec, options: options || {} };
    charts.push(chart);
    var target = typeof element === "string" ? document.querySelector(element) : element;
    new MutationObserver(function () { nameless(target); })
      .observe(target, { attributes: true, attributeFilter: ["role"], childList: true, subtree: true });
    return draw(chart);
  }
  Object.assign(wrapped, embed);
  window.vegaEmbed = wrapped;

  new MutationObserver(function () {
    charts.forEach(function (chart) {
      if (!chart.result) { return; }
      keepParams(chart.spec, chart.result.view);
      chart.result.finalize();
      draw(chart);
    });
  }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
})();
