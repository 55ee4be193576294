// Small accessibility repairs to the theme's own markup.
document.addEventListener("DOMContentLoaded", function () {
  "use strict";
  document.querySelectorAll(".bd-sidebar-primary summary").forEach(function (summary) {
    var link = summary.closest("li") && summary.closest("li").querySelector("a");
    summary.setAttribute("aria-label", "Pages under " + (link ? link.textContent.trim() : "this part"));
  });
  document.querySelectorAll("div.math, div.highlight pre, div.cell_output").forEach(function (box) {
    if (box.scrollWidth > box.clientWidth + 1) { box.tabIndex = 0; }
  });
});
// Tooltips call MathJax even on pages that have no maths and so no MathJax.
document.addEventListener("DOMContentLoaded", function () {
  "use strict";
  if (window.MathJax) { return; }
  var loading = null;
  window.MathJax = {
    typesetPromise: function (nodes) {
      if (!loading) {
        loading = new Promise(function (done) {
          var hub = window.MathJax.Hub;
          window.MathJax = { startup: { typeset: false }, Hub: hub };
          var script = document.createElement("script");
          script.src = document.documentElement.dataset.content_root + "_static/vendor/mathjax/tex-chtml.js";
          script.onload = function () {
            if (hub) { window.MathJax.Hub = hub; }
            window.MathJax.startup.promise.then(done);
          };
          document.head.appendChild(script);
        });
      }
      return loading.then(function () { return window.MathJax.typesetPromise(nodes); });
    }
  };
});
