import { randomUUID } from 'node:crypto';
import { webhooks } from '@kusanya/client';
import express from 'express';
import { find, place, poll, price, take } from './orders.js';

const { KUSANYA_WEBHOOK_SECRET, PORT = '4242', POLL_SECONDS = '30' } = process.env;
const app = express();

// Before any parser: the signature is made over the bytes as they came.
const hooks = webhooks.handler({ secret: KUSANYA_WEBHOOK_SECRET, onEvent: take });
app.post('/hooks', webhooks.toNode(hooks));
app.use(express.urlencoded({ extended: false }));

app.get('/', (_request, response) => {
  response.send(`<title>Shop</title><h1>Coffee, 1 kg: TZS ${price.toLocaleString('en')}</h1>
    <form method="post" action="/orders"><input type="hidden" name="id" value="${randomUUID()}">
    <label>Phone <input name="phone" type="tel" required maxlength="30"></label> <button type="submit">Pay</button></form>`);
});

// No session and no cookie, so there is nothing that a forged form could misuse. With a session add a CSRF token.
app.post('/orders', async ({ body: { id, phone } = {} }, response) => {
  const isWhole = /^[0-9a-f-]{36}$/.test(id) && typeof phone === 'string' && phone.length <= 30;
  if (!isWhole) return response.sendStatus(400);
  await place(id, phone);
  response.redirect(303, `/orders/${id}`);
});

const words = {
  pending: 'Check your phone and enter your PIN.',
  paid: 'Paid. Thank you!',
  held: 'Your money came late. We will call you.',
};
const escaped = (text) => text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);
app.get('/orders/:id', ({ params }, response) => {
  const order = find(params.id);
  if (!order) return response.sendStatus(404);
  if (order.status === 'pending') response.set('Refresh', '3');
  const said = words[order.status] ?? `Not paid. ${escaped(order.note)} <a href="/">Try again</a>`;
  response.send(`<title>Order</title><p>${said}</p>`);
});

app.listen(Number(PORT));

for (;;) {
  await poll().catch((error) => console.error(`not polled: ${error.message}`));
  await new Promise((resolve) => setTimeout(resolve, Number(POLL_SECONDS) * 1_000));
}
