// Comfort only: every page works without it.

function show() {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll('button.copy')) button.hidden = false;
}

async function copy(button) {
  const code = button.closest('.code').querySelector('pre').textContent;
  await navigator.clipboard.writeText(code);
  button.textContent = 'Copied';
  setTimeout(() => {
    button.textContent = 'Copy';
  }, 1500);
}

// Another language without losing one's place. Where that fails, the link is followed as links are.
async function turnTo(link) {
  const { id } = link.closest('.sample');
  const top = link.getBoundingClientRect().top;
  const response = await fetch(link.href);
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  for (const part of ['main', '.contents nav', '.bar'])
    document.querySelector(part).replaceWith(document.adoptNode(page.querySelector(part)));
  history.replaceState(null, '', link.href);
  show();
  const chosen = document.getElementById(id).querySelector('[aria-current]');
  scrollBy({ top: chosen.getBoundingClientRect().top - top, behavior: 'instant' });
  chosen.focus({ preventScroll: true });
}

addEventListener('click', (event) => {
  const button = event.target.closest('button.copy');
  if (button) void copy(button);
  const link = event.target.closest('.languages a');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  turnTo(link).catch(() => {
    location.href = link.href;
  });
});

show();
