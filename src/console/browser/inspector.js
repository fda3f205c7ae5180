// Draws what the inspector's stream tells: who there is, where each stands on its chart, and who said what to whom.
// The messages are those of @statelyai/inspect; nothing is ever sent.

const inspector = document.getElementById('inspector');
const line = document.getElementById('inspector-line');
const list = document.getElementById('inspector-actors');
const sequence = document.getElementById('inspector-sequence');
const past = document.getElementById('inspector-past');

/** More steps than this are not drawn: the oldest go. */
const stepsMax = 400;
const retryMs = 2_000;
const signedOut = 4401;

/** By id: charts and outsiders, in the order in which they were announced. */
let actors = new Map();
let steps = [];
let stepsEver = 0;
/** The actor that is looked at; until somebody chooses, the one that moved last. */
let chosen;
let isChosen = false;
/** The step that is looked at; none for now. */
let chosenStep;
let isDrawing = false;

const takes = {
  '@xstate.actor': ({ sessionId, definition, snapshot }) => {
    const chart = JSON.parse(definition);
    const machine = chart.states ? chart.id : undefined;
    actors.set(sessionId, { id: sessionId, machine, snapshot, visited: [] });
  },
  '@xstate.event': ({ sessionId, sourceId, event, createdAt }) => {
    stepsEver += 1;
    steps.push({ number: stepsEver, to: sessionId, from: sourceId, event, at: Number(createdAt) });
    if (steps.length > stepsMax) steps = steps.slice(-stepsMax);
  },
  '@xstate.snapshot': ({ sessionId, snapshot }) => {
    const actor = actors.get(sessionId);
    if (!actor) return;
    const isKnown = Object.keys(snapshot.context ?? {}).length > 0;
    actor.snapshot = isKnown ? snapshot : { ...actor.snapshot, value: snapshot.value };
    actor.visited.push(stateOf(snapshot));
    if (!isChosen) chosen = sessionId;
    const step = steps.findLast(({ to }) => to === sessionId);
    if (!step || step.state !== undefined) return;
    step.state = stateOf(snapshot);
    step.context = isKnown ? snapshot.context : undefined;
    step.visited = actor.visited.length;
  },
};

function connect() {
  const stream = new WebSocket(inspector.dataset.stream);
  stream.onopen = () => {
    actors = new Map();
    steps = [];
    chosenStep = undefined;
    say('live');
  };
  stream.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    takes[message.type]?.(message);
    draw();
  };
  stream.onclose = ({ code }) => {
    if (code === signedOut) return location.reload();
    say('not connected, trying again');
    setTimeout(connect, retryMs);
  };
}

function say(text) {
  line.textContent = text;
  line.className = text === 'live' ? 'pill good' : 'pill care';
}

/** Many messages, one drawing. */
function draw() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    drawActors();
    drawChart();
    drawSequence();
  });
}

function stateOf({ value }) {
  if (typeof value === 'string') return value;
  const [name, inner] = Object.entries(value ?? {})[0] ?? ['', ''];
  return inner === '' ? name : `${name}.${stateOf({ value: inner })}`;
}

const spaced = (text) => text.replace(/([a-z])([A-Z])/g, (_all, one, two) => `${one} ${two.toLowerCase()}`);
/** `created.pushing.sending` → `created › sending` */
function wordsOf(state) {
  const names = state.split('.').map(spaced);
  return names.length > 1 ? `${names[0]} › ${names.at(-1)}` : names[0];
}
const shortOf = (id) => (id.length > 12 ? `…${id.slice(-8)}` : id);
/** A timer's event is named after its delay: `xstate.after.pushWindow.created` → `after push window`. */
const eventWords = ({ type }) =>
  type.startsWith('xstate.after.') ? `after ${spaced(type.split('.')[2])}` : type;

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function drawSvg(name, attributes = {}, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** The same actors keep their buttons, or whoever is on one would lose it at every step. */
function drawActors() {
  const charts = [...actors.values()].filter(({ machine }) => machine);
  const buttons = new Map([...list.children].map((item) => [item.dataset.actor, item]));
  for (const [id, item] of buttons) if (!actors.has(id)) item.remove();
  for (const { id, machine, snapshot } of charts) {
    let item = buttons.get(id);
    if (!item) {
      const button = make('button', { type: 'button', title: id }, make('b'), make('small'));
      button.addEventListener('click', () => choose(id));
      item = make('li', { 'data-actor': id }, button);
      list.prepend(item);
    }
    const [name, place] = item.firstChild.children;
    name.textContent = `${machine} ${shortOf(id)}`;
    place.textContent = wordsOf(stateOf(snapshot));
    item.firstChild.setAttribute('aria-pressed', String(id === chosen));
  }
}

function choose(id, step) {
  chosen = id;
  isChosen = true;
  chosenStep = step;
  draw();
}

function drawChart() {
  const actor = actors.get(chosen) ?? [...actors.values()].find(({ machine }) => machine);
  if (!actor) return;
  const step = chosenStep?.to === actor.id ? chosenStep : undefined;
  const state = step?.state ?? stateOf(actor.snapshot);
  const visited = actor.visited.slice(0, step?.visited ?? actor.visited.length);
  const holds = (path, inner) => inner === path || inner.startsWith(`${path}.`);
  for (const box of inspector.querySelectorAll('[data-chart]')) {
    box.hidden = box.dataset.chart !== actor.machine;
    if (box.hidden) continue;
    for (const group of box.querySelectorAll('[data-state]')) {
      const { state: path } = group.dataset;
      group.classList.toggle('active', holds(path, state));
      group.classList.toggle(
        'visited',
        visited.some((each) => holds(path, each)),
      );
    }
    bringIntoView(box, `${actor.id} ${state}`);
  }
  const link = make('a', { href: `${inspector.dataset.actors}${encodeURIComponent(actor.id)}` }, 'its page');
  document.getElementById('inspector-title').textContent = `${actor.machine} ${shortOf(actor.id)}`;
  document.getElementById('inspector-place').replaceChildren(`${wordsOf(state)} · `, link);
  const known = step ? (step.context ?? 'not kept for this step') : actor.snapshot.context;
  document.getElementById('inspector-context').textContent =
    typeof known === 'string'
      ? known
      : JSON.stringify({ ...(step ? { event: step.event } : {}), ...known }, null, 2);
  past.hidden = !step;
}

/** Scrolls the chart, once for each new place, so that the lit state is in the middle. */
function bringIntoView(box, there) {
  if (box.dataset.there === there) return;
  box.dataset.there = there;
  const lit = box.querySelector('.leaf.active')?.getBoundingClientRect();
  if (!lit) return;
  const frame = box.getBoundingClientRect();
  box.scrollBy({
    left: lit.left + lit.width / 2 - frame.left - frame.width / 2,
    top: lit.top + lit.height / 2 - frame.top - frame.height / 2,
  });
}

const place = { left: 84, row: 40, head: 46, right: 84, label: 84, columnMin: 118, columnMax: 220 };
const clock = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'Africa/Dar_es_Salaam',
  timeStyle: 'medium',
});

/** Those who took part, outsiders first: a request comes from the left. */
function columnsOf() {
  const seen = new Set(steps.flatMap(({ from, to }) => [from, to]));
  const all = [...actors.values()].filter(({ id }) => seen.has(id));
  const sorted = [...all.filter(({ machine }) => !machine), ...all.filter(({ machine }) => machine)];
  const room = (sequence.clientWidth - place.left - place.right) / Math.max(1, sorted.length);
  const column = Math.min(place.columnMax, Math.max(place.columnMin, Math.floor(room)));
  const xOf = (index) => place.left + column * (index + 0.5);
  return new Map(sorted.map((actor, index) => [actor.id, { actor, x: xOf(index), end: xOf(index + 0.5) }]));
}

function drawSequence() {
  const columns = columnsOf();
  const isAtEnd = sequence.scrollTop + sequence.clientHeight >= sequence.scrollHeight - 8;
  const width = ([...columns.values()].at(-1)?.end ?? place.left) + place.right;
  const height = place.row * steps.length + 8;
  const heads = drawSvg('svg', { class: 'heads', width, height: place.head });
  const body = drawSvg('svg', { width, height });
  for (const { actor, x } of columns.values()) {
    heads.append(drawSvg('text', { x, y: 19 }, actor.machine ?? shortOf(actor.id)));
    heads.append(drawSvg('text', { x, y: 36, class: 'kind' }, actor.machine ? shortOf(actor.id) : ''));
    body.append(drawSvg('line', { class: 'life', x1: x, x2: x, y1: 0, y2: height }));
  }
  for (const [index, step] of steps.entries()) body.append(drawStep(step, index, columns, width));
  const focused = sequence.contains(document.activeElement) && document.activeElement.dataset.number;
  sequence.replaceChildren(heads, body);
  if (focused) body.querySelector(`[data-number="${focused}"]`)?.focus({ preventScroll: true });
  if (!isAtEnd || chosenStep) return;
  sequence.scrollTop = sequence.scrollHeight;
  // Where not all of it fits, the end of the last arrow does.
  const last = columns.get(steps.at(-1)?.to);
  if (last) sequence.scrollLeft = last.end + place.right - sequence.clientWidth;
}

function drawStep(step, index, columns, width) {
  const [from, to] = [columns.get(step.from)?.x, columns.get(step.to)?.x];
  const top = index * place.row;
  const y = top + 24;
  const group = drawSvg('g', {
    class: 'step',
    tabindex: 0,
    role: 'button',
    'aria-pressed': String(step === chosenStep),
    'data-to': step.to,
    'data-number': step.number,
    'data-event': step.event.type,
  });
  const side = to > from ? 1 : -1;
  // Near the head, which is what is scrolled to where the arrow is longer than the screen.
  const middle = to - side * Math.min(Math.abs(to - from) / 2, place.label);
  group.append(
    drawSvg('rect', { x: 0, y: top, width, height: place.row }),
    drawSvg('text', { class: 'time', x: 0, y: y + 4 }, clock.format(step.at)),
    drawSvg('line', { x1: from, x2: to - 7 * side, y1: y, y2: y }),
    drawSvg('path', { class: 'head', d: `M ${to} ${y} l ${-9 * side} -4 v 8 z` }),
    drawSvg('text', { class: 'event', x: middle, y: y - 6 }, eventWords(step.event)),
    drawSvg('text', { class: 'state', x: to + 6, y: y + 13 }, step.state ? wordsOf(step.state) : ''),
  );
  const open = () => choose(step.to, step);
  group.addEventListener('click', open);
  group.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' || event.key === ' ') open();
  });
  return group;
}

past.querySelector('button').addEventListener('click', () => choose(chosen));
connect();
