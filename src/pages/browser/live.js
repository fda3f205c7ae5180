// What pages do beside being read: they move by themselves, count, and copy. Everything works without this, by links and
// forms. What a place adds comes after it in the same file, and hooks in here.

const body = document.body;
/** Added to this computer's clock: the service's time counts. */
const offsetMs = Number(body.dataset.now) - Date.now();
const now = () => Date.now() + offsetMs;

function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const units = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  const first = units.findIndex(([each]) => seconds >= each);
  if (first < 0) return '0 s';
  const [size, unit] = units[first];
  const [rest, restUnit] = units[first + 1] ?? [0, ''];
  const lesser = rest ? Math.floor((seconds % size) / rest) : 0;
  return `${Math.floor(seconds / size)} ${unit}${lesser ? ` ${lesser} ${restUnit}` : ''}`;
}

/** What a place does besides: where a region was scrolled to, and what is prepared when it is there. */
const hooks = { placeOf: () => undefined, restore: () => undefined, prepare: { '[data-copy]': copy } };

function tick() {
  for (const time of document.querySelectorAll('[data-due]')) {
    const leftMs = Number(time.dataset.due) - now();
    const text = leftMs > 0 ? span(leftMs) : 'now';
    if (time.textContent !== text) time.textContent = text;
  }
  for (const time of document.querySelectorAll('[data-since]')) {
    const text = span(now() - Number(time.dataset.since));
    if (time.textContent !== text) time.textContent = text;
  }
}

/** Somebody is writing in this region: it is not changed under their hands. */
function isInUse(region) {
  const fields = region.querySelectorAll('textarea, input[type="text"], select');
  const isTouched = [...fields].some((field) => field.value !== initialOf(field));
  const at = document.activeElement;
  return isTouched || (region.contains(at) && at.matches('textarea, input, select'));
}

function initialOf(field) {
  if (field.tagName !== 'SELECT') return field.defaultValue;
  const chosen = [...field.options].find((option) => option.defaultSelected) ?? field.options[0];
  return chosen?.value ?? '';
}

/** Reads an address of this place and puts its regions in the place of ours. */
async function show(address, { isForced = false } = {}) {
  const response = await fetch(address, { headers: { Accept: 'text/html' }, redirect: 'follow' });
  if (new URL(response.url).pathname.endsWith('/sign-in')) return location.reload();
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  for (const region of document.querySelectorAll('[data-live][id]')) {
    const next = fresh.getElementById(region.id);
    if (!next || sameText(next, region)) continue;
    if (!isForced && isInUse(region)) {
      document.getElementById('moved').hidden = false;
      continue;
    }
    const open = [...region.querySelectorAll('details[open] > form[id]')].map(({ id }) => id);
    const scroll = hooks.placeOf(region);
    region.replaceWith(next);
    for (const id of open)
      next
        .querySelector(`#${CSS.escape(id)}`)
        ?.closest('details')
        .setAttribute('open', '');
    hooks.restore(next, scroll);
    tell(region, next);
    next.classList.add('fresh');
    setTimeout(() => next.classList.remove('fresh'), 1200);
  }
  prepare();
  tick();
}

/** Counters run by themselves and are no difference; nor is a form's key, new for each reader, nor what this script added. */
function sameText(one, other) {
  const plain = (element) => {
    const copy = element.cloneNode(true);
    copy.classList.remove('fresh');
    for (const time of copy.querySelectorAll('[data-due], [data-since]')) time.textContent = '';
    for (const once of copy.querySelectorAll('input[name=once]')) once.removeAttribute('value');
    for (const details of copy.querySelectorAll('details')) details.removeAttribute('open');
    for (const ready of copy.querySelectorAll('[data-ready]')) ready.removeAttribute('data-ready');
    for (const button of copy.querySelectorAll('button')) button.removeAttribute('hidden');
    return copy.outerHTML;
  };
  return plain(one) === plain(other);
}

/** For whoever hears the page: what changed by itself, when the reader has finished. */
function tell(before, after) {
  const { say } = after.dataset;
  const place = document.getElementById('said');
  if (place && say && say !== before.dataset.say) place.textContent = say;
}

/** One refresh at a time, and one more if something happened meanwhile. */
const refresher = { isBusy: false, isWanted: false };
async function refresh() {
  refresher.isWanted = true;
  if (refresher.isBusy) return;
  refresher.isBusy = true;
  while (refresher.isWanted) {
    refresher.isWanted = false;
    await show(location.href).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
  refresher.isBusy = false;
}

function listen() {
  const everyMs = Number(body.dataset.every);
  if (everyMs) setInterval(() => document.hidden || refresh(), everyMs);
  const address = body.dataset.stream;
  if (!address) return;
  const stream = new EventSource(address);
  stream.addEventListener('step', refresh);
  stream.addEventListener('open', () => {
    body.classList.add('listening');
    // What happened before anybody listened was not heard.
    void refresh();
  });
  stream.addEventListener('error', () => body.classList.remove('listening'));
  addEventListener('pagehide', () => stream.close());
}

function copy(button) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    const text = document.getElementById(button.dataset.copy)?.textContent ?? '';
    await navigator.clipboard.writeText(text);
    button.textContent = button.dataset.copied ?? 'Copied';
  });
}

function prepare() {
  for (const [selector, use] of Object.entries(hooks.prepare)) {
    for (const element of document.querySelectorAll(selector)) {
      if (element.dataset.ready) continue;
      element.dataset.ready = '1';
      use(element);
    }
  }
}

// A form is sent once, however often its button is pressed.
document.addEventListener('submit', ({ target, submitter }) => {
  if (target.method !== 'post') return;
  setTimeout(() => {
    for (const button of target.querySelectorAll('button')) button.disabled = true;
    submitter?.classList.add('busy');
  });
});
addEventListener('pageshow', ({ persisted }) => persisted && location.reload());

// After what the place adds below.
document.addEventListener('DOMContentLoaded', () => {
  document.querySelector('.pages [aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' });
  prepare();
  tick();
  setInterval(tick, 1000);
  listen();
});
