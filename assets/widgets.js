// Runs only on pages with ipywidgets: after require.js, before embed-amd.js.
(function () {
  "use strict";
  var here = (document.documentElement.dataset.content_root || "./") + "_static/vendor/widgets";
  define("vega-embed", [], function () { return window.vegaEmbed; });
  requirejs.config({
    paths: {
      "@jupyter-widgets/base": here + "/base",
      "@jupyter-widgets/controls": here + "/controls",
      "@jupyter-widgets/output": here + "/output",
      "@jupyter-widgets/html-manager": here + "/html-manager",
      "@jupyter-widgets/html-manager/dist": here
    }
  });
  // ipywidgets leaves slider handles and Play buttons without a name.
  function nameControls() {
    document.querySelectorAll(".widget-slider, .widget-hslider").forEach(function (box) {
      var label = box.querySelector(".widget-label");
      box.querySelectorAll(".noUi-handle").forEach(function (handle) {
        if (label && label.textContent.trim()) { handle.setAttribute("aria-label", label.textContent.trim()); }
      });
    });
    document.querySelectorAll(".widget-play").forEach(function (box) {
      ["Play", "Stop", "Repeat"].forEach(function (name, i) {
        var button = box.querySelectorAll("button")[i];
        if (button) { button.setAttribute("aria-label", name); }
      });
    });
  }
  window.addEventListener("load", function () {
    new MutationObserver(nameControls).observe(document.body, { childList: true, subtree: true });
  });
  // ipywidgets still asks for MathJax 2's queue to typeset its labels.
  window.addEventListener("load", function () {
    if (window.MathJax && !window.MathJax.Hub) {
      window.MathJax.Hub = {
        Queue: function (job) {
          if (/\\\(|\$/.test(job[2].textContent)) { window.MathJax.typesetPromise([job[2]]); }
        }
      };
    }
  });
})();
