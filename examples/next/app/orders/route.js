/** No session and no cookie, so there is nothing that a forged form could misuse. */
export async function POST(request) {
  const { id, phone } = Object.fromEntries(await request.formData());
  const isWhole = /^[0-9a-f-]{36}$/.test(id) && typeof phone === 'string' && phone.length <= 30;
  if (!isWhole) return new Response(null, { status: 400 });
  const { place } = await import('../../orders.js');
  await place(id, phone);
  return new Response(null, { status: 303, headers: { Location: `/orders/${id}` } });
}
