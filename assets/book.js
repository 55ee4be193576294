// Small repairs to the theme's own markup, most of them for readers who use a keyboard or a screen reader.
document.addEventListener("DOMContentLoaded", function () {
  "use strict";
  document.querySelectorAll(".bd-sidebar-primary summary").forEach(function (summary) {
    var link = summary.closest("li") && summary.closest("li").querySelector("a");
    summary.setAttribute("aria-label", "Pages under " + (link ? link.textContent.trim() : "this part"));
  });
  // The entries of a bibliography have a role that no list may hold.
  document.querySelectorAll(".citation-list[role='list']").forEach(function (list) { list.removeAttribute("role"); });
  // What scrolls sideways can be scrolled with the keyboard.
  document.querySelectorAll(
    "div.math, div.highlight pre, div.cell_output, div.cell_output .output, .pst-scrollable-table-container"
  ).forEach(function (box) {
    if (box.scrollWidth > box.clientWidth + 1) { box.tabIndex = 0; }
  });
});

// Cards call MathJax even on pages that have no maths and so no MathJax: load it on the first call.
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
