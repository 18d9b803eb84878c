/* What the pages do beyond HTML and htmx: the reader's zone, failures said aloud, focus after an action, keys, copying.
   Every page works without this file. */
"use strict";

(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // --- the reader's zone: the server writes times in it and names it ---------------------------------

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone) {
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax${secure}`;
  }

  // --- saying things ----------------------------------------------------------------------------------

  const SAID_FOR = 12000;
  const timers = new Map();

  function fade(region) {
    clearTimeout(timers.get(region));
    timers.set(region, setTimeout(() => { region.textContent = ""; }, SAID_FOR));
  }

  function say(id, text) {
    const region = one(`#${id}`);
    region.textContent = text;
    fade(region);
  }

  const FAILURES = {
    400: "The server could not read this request. Reload the page and try again.",
    403: "Your role does not allow this, or the page is out of date. Reload it and try again.",
    404: "This is no longer there. Reload the page.",
    413: "This is too large.",
    429: "Too many requests. Wait a moment and try again.",
  };

  document.addEventListener("htmx:responseError", (event) => {
    say("alert", FAILURES[event.detail.xhr.status] || "Something broke on our side. Reload the page to see whether it was saved.");
  });
  document.addEventListener("htmx:sendError", () => say("alert", "The server cannot be reached. Nothing is lost here: try again."));
  document.addEventListener("htmx:timeout", () => say("alert", "The server took too long. Reload the page to see whether it was saved."));
  document.addEventListener("htmx:beforeRequest", (event) => {
    one("#alert").textContent = "";
    event.detail.target.setAttribute("aria-busy", "true");
  });
  document.addEventListener("htmx:afterRequest", (event) => event.detail.target.removeAttribute("aria-busy"));
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    if (event.detail.target.id === "live") fade(event.detail.target);
  });

  // --- focus after an action --------------------------------------------------------------------------

  let here = null;

  function entries() {
    return all(".entry:not(.entry--done)");
  }

  function stand(entry) {
    if (!entry) return;
    all(".entry--here").forEach((other) => other.classList.remove("entry--here"));
    entry.classList.add("entry--here");
    here = entry.id;
    entry.focus({ preventScroll: true });
    entry.scrollIntoView({ block: "nearest" });
  }

  function following(entry) {
    const rest = all(".entry");
    const after = rest.slice(rest.indexOf(entry) + 1).find((other) => !other.classList.contains("entry--done"));
    return after || entries().at(-1);
  }

  document.addEventListener("htmx:afterSettle", (event) => {
    const swapped = document.getElementById(event.detail.elt.id);
    if (swapped?.classList.contains("entry--done")) {
      stand(following(swapped));
      if (!entries().length) one("#results-summary")?.focus();
    } else if (swapped?.classList.contains("entry")) {
      stand(swapped);
    }
    count();
  });

  // --- picking rows -----------------------------------------------------------------------------------

  function count() {
    const picked = all('input[name="item"]:checked').length;
    all("[data-picked]").forEach((place) => { place.textContent = picked; });
    const every = one("[data-pick-all]");
    if (every) {
      const boxes = all('input[name="item"]');
      every.checked = boxes.length > 0 && picked === boxes.length;
      every.indeterminate = picked > 0 && picked < boxes.length;
    }
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-pick-all]")) {
      all('input[name="item"]').forEach((box) => { box.checked = event.target.checked; });
    }
    if (event.target.matches('[data-pick-all], input[name="item"]')) count();
    if (event.target.matches("[data-keys-switch]")) localStorage.setItem("keys", event.target.checked ? "on" : "off");
  });

  // --- keys: j k x a r / ? ----------------------------------------------------------------------------

  const keysOn = () => localStorage.getItem("keys") !== "off";
  const current = () => document.activeElement.closest?.(".entry") || (here && document.getElementById(here));
  const bulkMode = () => all('input[name="item"]:checked').length > 0;

  function step(by) {
    const rows = entries();
    const at = rows.indexOf(current());
    stand(rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)]);
  }

  function press(name) {
    const root = bulkMode() ? one("#bulk") : current();
    one(`[data-key="${name}"]`, root || document.createElement("p"))?.click();
  }

  function giveReason() {
    const root = bulkMode() ? one("#bulk") : current();
    const reason = root && one('[data-key="r"]', root);
    if (!reason) return;
    const folded = reason.closest("details");
    if (folded) folded.open = true;
    reason.focus();
  }

  const KEYS = {
    j: () => step(1),
    k: () => step(-1),
    x: () => one('input[name="item"]', current() || document.createElement("p"))?.click(),
    a: () => press("a"),
    r: giveReason,
    "/": () => one("[data-search]")?.focus(),
    "?": () => one("#keys")?.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    // A reason ends with Enter in the act it is a reason for, never in the form's first button.
    const { enter } = event.target.dataset ?? {};
    if (enter && event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      document.getElementById(enter).click();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, dialog[open]")) return;
    if (!one("[data-keys]") || !(keysOn() || event.key === "?") || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  // --- how far an import is: first what was sent, then what the server says of its own work --------------

  const POLL = 700;

  function tell(form, words, done, total) {
    const place = one("[data-progress-shown]", form);
    const bar = one("progress", place);
    place.hidden = false;
    one("[data-progress-words]", place).textContent = words;
    if (total) {
      bar.max = total;
      bar.value = done;
    } else {
      bar.removeAttribute("value");
    }
  }

  async function ask(form) {
    const answer = await fetch(form.dataset.progress, { headers: { Accept: "application/json" } });
    if (!answer.ok) return;
    const { stage, done, total } = await answer.json();
    if (stage === "reading") tell(form, `Reading file ${done} of ${total}.`, done - 1, total);
    if (stage === "writing" && done < total) tell(form, `Writing record ${done} of ${total}. Nothing counts before the last one.`, done, total);
    if (stage === "writing" && done === total) tell(form, "Saving.", 0, 0);
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    const form = event.detail.elt.closest("form[data-progress]");
    if (!form) return;
    tell(form, "Sending.", 0, 0);
    // An answer that fails or comes late only leaves the bar as it is; the import's own answer says what became of it.
    const timer = setInterval(() => { ask(form).catch(() => {}); }, POLL);
    event.detail.xhr.addEventListener("loadend", () => clearInterval(timer));
  });
  document.addEventListener("htmx:xhr:progress", (event) => {
    const form = event.target.closest("form[data-progress]");
    if (form && event.detail.lengthComputable && event.detail.loaded < event.detail.total) {
      tell(form, "Sending.", event.detail.loaded, event.detail.total);
    }
  });

  // --- dialogs and copying ----------------------------------------------------------------------------

  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    if (opener) document.getElementById(opener.dataset.opens)?.showModal();
    const copier = event.target.closest("[data-copies]");
    if (copier) {
      navigator.clipboard.writeText(document.getElementById(copier.dataset.copies).textContent)
        .then(() => say("live", "Copied."), () => say("alert", "The browser did not allow copying."));
    }
  });

  document.addEventListener("focusin", (event) => {
    // The browser has seen to it: htmx would do it again a moment later, and take the focus from where a key has led meanwhile.
    if (document.readyState === "complete") event.target.removeAttribute("autofocus");
    const entry = event.target.closest(".entry");
    if (entry && entry.id !== here) {
      all(".entry--here").forEach((other) => other.classList.remove("entry--here"));
      entry.classList.add("entry--here");
      here = entry.id;
    }
  });

  function ready(root) {
    all("[data-needs-script]", root).forEach((element) => { element.hidden = false; });
    count();
  }

  document.addEventListener("htmx:load", (event) => ready(event.detail.elt));
  document.addEventListener("DOMContentLoaded", () => {
    ready(document);
    all("[data-keys-switch]").forEach((box) => { box.checked = keysOn(); });
    // A page answered to a form that was not taken: the browser honours only the first autofocus, and not always.
    one(".main [autofocus]")?.focus();
  });
})();
