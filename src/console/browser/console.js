// What the console's pages do besides (pages/browser/live.js comes before this): they slide through history, and keep the
// lit state of a chart in sight.

Object.assign(hooks, { placeOf, restore });
Object.assign(hooks.prepare, { '.chart-box': centre, '[data-slider]': slide });

function placeOf(region) {
  const box = region.querySelector('.chart-box');
  return box ? { left: box.scrollLeft, top: box.scrollTop } : undefined;
}

function restore(region, scroll) {
  const box = region.querySelector('.chart-box');
  if (box && scroll) box.scrollTo(scroll);
}

/** The lit state in the middle of a chart that is wider than the screen. */
function centre(box) {
  const lit = box.querySelector('.leaf.active') ?? box.querySelector('.active');
  if (!lit) return;
  const [outer, inner] = [box.getBoundingClientRect(), lit.getBoundingClientRect()];
  box.scrollBy({
    left: inner.left + inner.width / 2 - outer.left - outer.width / 2,
    top: inner.top + inner.height / 2 - outer.top - outer.height / 2,
  });
}

let latest = 0;
function slide(form) {
  const range = form.querySelector('input[type="range"]');
  const output = form.querySelector('output');
  form.querySelector('button').hidden = true;
  range.addEventListener('input', async () => {
    output.textContent = `${range.value} / ${range.max}`;
    latest += 1;
    const mine = latest;
    await new Promise((resolve) => setTimeout(resolve, 60));
    if (mine !== latest) return;
    const address = new URL(form.action);
    address.search = new URLSearchParams(new FormData(form));
    if (range.value === range.max) address.searchParams.delete('step');
    history.replaceState(null, '', address);
    await show(address.href, { isForced: true }).catch(() => undefined);
    document.querySelector('[data-slider] input[type="range"]')?.focus({ preventScroll: true });
  });
}
